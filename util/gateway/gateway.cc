#include "gateway/gateway.h"

#include <errno.h>
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
constexpr Nanoseconds kFinalFlush = Nanoseconds::from_ms(200);
constexpr unsigned kAcceptsInARow = 64;

}  // namespace

Gateway::Gateway(const Settings& settings) : shared_(settings) {}

Result<void> Gateway::start() {
    if (auto opened = shared_.loop.open(); !opened) return opened;
    started_ = shared_.loop.now();
    if (auto watched = watch_signals(); !watched) return watched;
    auto listener = listen_at(shared_.settings.listen);
    if (!listener) return listener.error();
    listener_ = std::move(listener.value());
    const std::string& congestion = shared_.settings.sites.sessions.congestion;
    if (!congestion.empty())
        if (auto set = set_congestion(listener_.get(), congestion); !set) return set;
    if (auto added = shared_.loop.add(listener_.get(), *this, EPOLLIN | EPOLLET); !added) return added;
    for (const sites::Site& site : shared_.settings.sites.sites)
        if (&site != &shared_.settings.own_site()) peers_.push_back(std::make_unique<Peer>(shared_, site));
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
    return shared_.loop.add(signals_.get(), *this, EPOLLIN);
}

// Handles events of the listening socket and of the signals' descriptor.
void Gateway::on_events(std::uint32_t) {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) begin_to_end();
    accepting_ = !shared_.draining;
}

void Gateway::accept_all() {
    for (unsigned i = 0; accepting_ && i < kAcceptsInARow; ++i) {
        sockaddr_storage address;
        socklen_t size = sizeof address;
        FileDescriptor socket(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                      SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket.valid()) {
            if (errno == EAGAIN) accepting_ = false;
            // An error of one connection does not affect the next. A lack of descriptors or memory does: then
            // wait.
            if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) continue;
            accepting_ = false;
            accept_again_ = shared_.now() + kNoDescriptors;
            return;
        }
        ++shared_.counters.accepted;
        if (pending_.size() >= shared_.settings.max_pending) evict_pending();
        const int descriptor = socket.get();
        pending_.push_back(std::make_unique<PendingConnection>(
            *this, std::move(socket), Endpoint::of(reinterpret_cast<const sockaddr*>(&address), size)));
        PendingConnection& connection = *pending_.back();
        if (!shared_.loop.add(descriptor, connection))
            connection.close();
        else
            connection.on_events(EPOLLIN);  // most connections have sent their first bytes already
    }
}

// Closes the oldest foreign connection; without one, the oldest connection of the address with the most, so a
// flood from one address displaces its own connections.
void Gateway::evict_pending() {
    ++shared_.counters.evicted;
    const auto foreign = std::ranges::find_if(pending_, [](const auto& one) { return one->is_foreign(); });
    if (foreign != pending_.end()) return (*foreign)->close();
    std::map<Endpoint, std::size_t> counts;
    for (const auto& connection : pending_) ++counts[connection->host()];
    const auto largest = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    const auto oldest =
        std::ranges::find(pending_, largest->first, [](const auto& one) { return one->host(); });
    (*oldest)->close();
}

void Gateway::check_pending() {
    while (!pending_.empty() && pending_.front()->deadline() <= shared_.now()) {
        ++shared_.counters.hello_timeouts;
        pending_.front()->close();
    }
}

// Removes the descriptor from the loop first: its next owner must not get events of the connection.
FileDescriptor Gateway::take(PendingConnection& connection, FileDescriptor& socket) {
    shared_.loop.remove(socket.get());
    FileDescriptor taken = std::move(socket);
    connection.close();
    return taken;
}

void Gateway::forget(PendingConnection& connection) {
    const auto found = std::ranges::find(pending_, &connection, [](const auto& one) { return one.get(); });
    if (found == pending_.end()) return;
    shared_.loop.delete_later(std::move(*found));
    pending_.erase(found);
}

bool Gateway::is_of_site(const Endpoint& from, const Endpoint& to) const {
    const sites::Site* site = shared_.settings.sites.site_of(from);
    if (site != nullptr) return site == &shared_.settings.own_site();
    const bool loopback = from.family == sites::Family::v4 ? from.address[0] == std::byte{127}
                                                           : from.same_host(Endpoint::parse("::1").value());
    return loopback || from.same_host(to);
}

bool Gateway::is_gateway(const Endpoint& host) const {
    return std::ranges::any_of(peers_, [&](const auto& peer) { return host.same_host(peer->site().wan); });
}

Peer* Gateway::peer_of(const sites::Site* site) const {
    const auto found = std::ranges::find(peers_, site, [](const auto& peer) { return &peer->site(); });
    return found == peers_.end() ? nullptr : found->get();
}

void Gateway::begin_to_end() {
    if (shared_.draining) {
        end_now_ = true;
        return;
    }
    shared_.log("received a signal: refuses new connections, and ends with the last one, or after --drain");
    shared_.draining = true;
    drained_at_ = shared_.now() + shared_.settings.drain;
    listener_.reset();
    accepting_ = false;
    accept_again_ = kNever;
}

Nanoseconds Gateway::next_deadline() const {
    Nanoseconds deadline = std::min({accept_again_, drained_at_, look_at_});
    if (accepting_) return shared_.now();
    if (!pending_.empty()) deadline = std::min(deadline, pending_.front()->deadline());
    for (const auto& peer : peers_) {
        if (peer->wants_work_at_once()) return shared_.now();
        deadline = std::min(deadline, peer->next_deadline());
    }
    return deadline;
}

int Gateway::run() {
    bool cut = false;
    for (;;) {
        shared_.loop.run_once(next_deadline(), shared_.settings.spin);
        if (accept_again_ <= shared_.now()) {
            accept_again_ = kNever;
            accepting_ = !shared_.draining;
        }
        accept_all();
        check_pending();
        for (const auto& peer : peers_) peer->work(shared_.now());
        if (look_at_ <= shared_.now()) {
            look_at_ = shared_.now() + kLookEach;
            for (const auto& peer : peers_) peer->look_at_links(shared_.now());
        }
        if (!shared_.draining) continue;
        const bool late = end_now_ || drained_at_ <= shared_.now();
        if (shared_.connections == 0) {
            // Waits until the last frames have been written and acknowledged.
            const bool done = std::ranges::all_of(peers_, [](const auto& peer) {
                return peer->session().outbound().memory_held() == 0 || peer->session().streams_up() == 0;
            });
            if (done || late) return cut ? 1 : 0;
        } else if (late) {
            cut = true;
            for (const auto& peer : peers_) peer->reset_all();
            drained_at_ = shared_.now() + kFinalFlush;
        }
    }
}

}  // namespace mcastcoll::gateway
