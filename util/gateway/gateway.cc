#include "gateway/gateway.h"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>

#include "base/system.h"

namespace mcastcoll::gateway {
namespace {

constexpr Nanoseconds kLookEach = Nanoseconds::from_ms(1000);
constexpr Nanoseconds kNoDescriptors = Nanoseconds::from_ms(100);
constexpr Nanoseconds kLastWords = Nanoseconds::from_ms(200);
constexpr unsigned kAcceptsInARow = 64;

}  // namespace

// How memory is divided: half of it are the first windows of all connections that may be, a quarter is what
// windows grow by, a quarter is what trunks have sent and keep until it is acknowledged.
Gateway::Gateway(const Settings& settings) : settings_(settings), pool_{(settings.memory_mib << 20) / 4} {}

trunk::Config Gateway::trunk_config(bool connects) const {
    const std::size_t memory = settings_.memory_mib << 20;
    const std::size_t peers = std::max<std::size_t>(settings_.sites.sites.size() - 1, 1);
    trunk::Config config;
    config.even = connects;
    config.first_window = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(memory / 2 / settings_.max_connections, trunk::kMinWindow, 64 * 1024));
    config.send_memory = std::max<std::size_t>(memory / 4 / peers, 1024 * 1024);
    config.max_channels = 2 * settings_.max_connections;
    config.cap_bytes_per_second = settings_.sites.trunks.cap_mbit * 125'000;
    config.heartbeat = settings_.heartbeat;
    config.silence = settings_.silence;
    return config;
}

std::optional<Endpoint> Gateway::wan_source() const {
    if (settings_.own_site().wan.family != settings_.listen.family) return std::nullopt;
    Endpoint source = settings_.own_site().wan;
    Endpoint any = settings_.listen;
    any.address.fill(std::byte{0});
    // Behind a translator of addresses the gateway has another one than the others see.
    if (!source.same_host(settings_.listen) && !settings_.listen.same_host(any)) return std::nullopt;
    source.port = 0;
    return source;
}

Result<void> Gateway::start() {
    if (auto opened = loop_.open(); !opened) return opened;
    started_ = loop_.now();
    if (auto watched = watch_signals(); !watched) return watched;
    auto listener = listen_at(settings_.listen);
    if (!listener) return listener.error();
    listener_ = std::move(listener.value());
    const std::string& congestion = settings_.sites.trunks.congestion;
    if (!congestion.empty())
        if (auto set = set_congestion(listener_.get(), congestion); !set) return set;
    if (auto added = loop_.add(listener_.get(), *this, EPOLLIN | EPOLLET); !added) return added;
    for (const relay::Site& site : settings_.sites.sites)
        if (&site != &settings_.own_site()) peers_.push_back(std::make_unique<Peer>(*this, site));
    return {};
}

Result<void> Gateway::watch_signals() {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &mask, nullptr);
    signals_ = FileDescriptor(signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC));
    if (!signals_.valid()) return system_error(errno, "signalfd");
    return loop_.add(signals_.get(), *this, EPOLLIN);
}

// Somebody connects, or there is a signal.
void Gateway::on_events(std::uint32_t) {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) begin_to_end();
    accepting_ = !draining_;
}

void Gateway::accept_all() {
    for (unsigned i = 0; accepting_ && i < kAcceptsInARow; ++i) {
        sockaddr_storage address;
        socklen_t size = sizeof address;
        FileDescriptor socket(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                      SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket.valid()) {
            if (errno == EAGAIN) accepting_ = false;
            // Of one connection that is gone already nothing follows for the next; but without descriptors it
            // has to wait.
            if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) continue;
            accepting_ = false;
            accept_again_ = now() + kNoDescriptors;
            return;
        }
        ++counters_.accepted;
        if (newcomers_.size() >= settings_.max_newcomers) crowd_out();
        const int descriptor = socket.get();
        newcomers_.push_back(std::make_unique<Newcomer>(
            *this, std::move(socket), Endpoint::of(reinterpret_cast<const sockaddr*>(&address), size)));
        Newcomer& newcomer = *newcomers_.back();
        if (!loop_.add(descriptor, newcomer))
            newcomer.close();
        else
            newcomer.on_events(EPOLLIN);  // most say who they are at once
    }
}

// The oldest of the strangers; without any, the oldest of whoever has most: who comes in crowds crowds out
// their own.
void Gateway::crowd_out() {
    ++counters_.crowded_out;
    const auto stranger =
        std::ranges::find_if(newcomers_, [](const auto& one) { return one->is_stranger(); });
    if (stranger != newcomers_.end()) return (*stranger)->close();
    std::map<Endpoint, std::size_t> crowds;
    for (const auto& newcomer : newcomers_) ++crowds[newcomer->host()];
    const auto largest = std::ranges::max_element(crowds, {}, [](const auto& crowd) { return crowd.second; });
    const auto oldest =
        std::ranges::find(newcomers_, largest->first, [](const auto& one) { return one->host(); });
    (*oldest)->close();
}

void Gateway::check_newcomers() {
    while (!newcomers_.empty() && newcomers_.front()->deadline() <= now()) {
        ++counters_.greeting_timeouts;
        newcomers_.front()->close();
    }
}

// The same descriptor is about to be watched by somebody else, who must not get the newcomer's events.
FileDescriptor Gateway::take(Newcomer& newcomer, FileDescriptor& socket) {
    loop_.remove(socket.get());
    FileDescriptor taken = std::move(socket);
    newcomer.close();
    return taken;
}

void Gateway::forget(Newcomer& newcomer) {
    const auto found = std::ranges::find(newcomers_, &newcomer, [](const auto& one) { return one.get(); });
    if (found == newcomers_.end()) return;
    loop_.bury(std::move(*found));
    newcomers_.erase(found);
}

std::size_t Gateway::connections() const {
    std::size_t count = 0;
    for (const auto& peer : peers_) count += peer->connections();
    return count;
}

bool Gateway::is_ours(const Endpoint& from, const Endpoint& to) const {
    const relay::Site* site = settings_.sites.site_of(from);
    if (site != nullptr) return site == &settings_.own_site();
    const bool loopback = from.family == relay::Family::v4 ? from.address[0] == std::byte{127}
                                                           : from.same_host(Endpoint::parse("::1").value());
    return loopback || from.same_host(to);
}

bool Gateway::is_gateway(const Endpoint& host) const {
    return std::ranges::any_of(peers_, [&](const auto& peer) { return host.same_host(peer->site().wan); });
}

Peer* Gateway::peer_of(const relay::Site* site) const {
    const auto found = std::ranges::find(peers_, site, [](const auto& peer) { return &peer->site(); });
    return found == peers_.end() ? nullptr : found->get();
}

void Gateway::say(const std::string& what) const {
    if (settings_.verbose) fmt::print(stderr, "mcastcoll-gateway: {}: {}\n", settings_.own_site().name, what);
}

void Gateway::begin_to_end() {
    if (draining_) {
        end_now_ = true;
        return;
    }
    say("told to end");
    draining_ = true;
    drained_at_ = now() + settings_.drain;
    listener_.reset();
    accepting_ = false;
    accept_again_ = kNever;
}

Nanoseconds Gateway::next_deadline() const {
    Nanoseconds deadline = std::min({accept_again_, drained_at_, look_at_});
    if (accepting_) return now();
    if (!newcomers_.empty()) deadline = std::min(deadline, newcomers_.front()->deadline());
    for (const auto& peer : peers_) {
        if (peer->wants_work_at_once()) return now();
        deadline = std::min(deadline, peer->next_deadline());
    }
    return deadline;
}

int Gateway::run() {
    bool cut = false;
    for (;;) {
        loop_.run_once(next_deadline(), settings_.spin);
        if (accept_again_ <= now()) {
            accept_again_ = kNever;
            accepting_ = !draining_;
        }
        accept_all();
        check_newcomers();
        for (const auto& peer : peers_) peer->work(now());
        if (look_at_ <= now()) {
            look_at_ = now() + kLookEach;
            for (const auto& peer : peers_) peer->look_at_links(now());
        }
        if (!draining_) continue;
        const bool late = end_now_ || drained_at_ <= now();
        if (connections() == 0) {
            // The last frames are still to be written and acknowledged.
            const bool done = std::ranges::all_of(peers_, [](const auto& peer) {
                return peer->trunk().outbound().memory_held() == 0 || peer->trunk().streams_up() == 0;
            });
            if (done || late) return cut ? 1 : 0;
        } else if (late) {
            cut = true;
            for (const auto& peer : peers_) peer->reset_all();
            drained_at_ = now() + kLastWords;
        }
    }
}

}  // namespace mcastcoll::gateway
