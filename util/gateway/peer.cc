// The streams of a trunk, the connections that cross it, and time; peer_writing.cc has what goes out.
#include "gateway/peer.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>

#include "gateway/gateway.h"

namespace mcastcoll::gateway {
namespace {

constexpr Nanoseconds kFirstPause = Nanoseconds::from_ms(50), kLongestPause = Nanoseconds::from_ms(2000);
constexpr Nanoseconds kWaitingEach = Nanoseconds::from_ms(100);
constexpr unsigned kRounds = 8;
constexpr std::size_t kMaxGreeting = 64;

trunk::Config trunk_config(const Gateway& gateway, bool connects) {
    const Settings& settings = gateway.settings();
    trunk::Config config;
    config.even = connects;
    config.first_window = gateway.first_window();
    config.opened_window = std::max(config.opened_window, config.first_window);
    config.send_memory = gateway.send_memory();
    config.max_channels = 2 * settings.max_connections;
    config.cap_bytes_per_second = settings.sites.trunks.cap_mbit * 125'000;
    config.heartbeat = settings.heartbeat;
    config.silence = settings.silence;
    return config;
}

}  // namespace

Peer::Peer(Gateway& gateway, const relay::Site& site)
    : gateway_(gateway),
      site_(site),
      connects_(gateway.settings().own_site().name < site.name),
      trunk_(trunk_config(gateway, connects_), gateway.pool(), *this),
      session_(random_number()),
      down_since_(gateway.now()) {
    connect_pause_.fill(kFirstPause);
}

std::string Peer::state() const {
    const unsigned up = trunk_.streams_up();
    if (up == 0) return "down";
    return up < gateway_.settings().sites.trunks.streams && connects_ ? "degraded" : "up";
}

trunk::Hello Peer::make_hello(unsigned stream) const {
    const Settings& settings = gateway_.settings();
    return {.with_key = settings.key.has_value(),
            .session = session_,
            .peer_session = bound_to_,
            .stream = stream,
            .streams = settings.sites.trunks.streams,
            .window = gateway_.first_window(),
            .from = settings.own_site().name,
            .to = site_.name,
            .nonce = random_secret()};
}

void Peer::connect_streams(Nanoseconds now) {
    if (!connects_ || gateway_.draining()) return;
    for (unsigned i = 0; i < gateway_.settings().sites.trunks.streams; ++i) {
        if (links_[i] != nullptr || connect_at_[i] > now) continue;
        connect_at_[i] = now + connect_pause_[i];
        connect_pause_[i] = std::min(Nanoseconds{connect_pause_[i].value * 2}, kLongestPause);
        auto socket = connect_to(site_.wan, gateway_.wan_source());
        if (!socket) {
            last_failure_ = socket.error().message;
            continue;
        }
        const int descriptor = socket.value().get();
        links_[i] = std::make_unique<Link>(*this, i, std::move(socket.value()));
        if (!gateway_.loop().add(descriptor, *links_[i])) links_[i]->close("cannot be watched");
    }
}

void Peer::greet(FileDescriptor socket, const trunk::Hello& hello, const trunk::HelloBytes& bytes,
                 bool known) {
    if (greeting_.size() >= kMaxGreeting) {
        ++gateway_.counters().crowded_out;
        const auto stranger = std::find_if(greeting_.begin(), greeting_.end(),
                                           [](const auto& one) { return !one->is_known(); });
        (stranger == greeting_.end() ? greeting_.front() : *stranger)->close("others came");
    }
    const int descriptor = socket.get();
    auto link = std::make_unique<Link>(*this, std::move(socket), hello, bytes, known);
    Link& greeted = *link;
    greeting_.push_back(std::move(link));
    if (!gateway_.loop().add(descriptor, greeted)) return greeted.close("cannot be watched");
    greeted.answer();
}

std::unique_ptr<Link> Peer::take_greeting(Link& link) {
    const auto found =
        std::find_if(greeting_.begin(), greeting_.end(), [&](const auto& one) { return one.get() == &link; });
    if (found == greeting_.end()) return nullptr;
    auto taken = std::move(*found);
    greeting_.erase(found);
    return taken;
}

// The acceptor's decision, once the link has proved that it has the key.
trunk::Welcome Peer::bind(Link& link) {
    switch (trunk::bind(session_, bound_to_, link.peer_hello())) {
        case trunk::Binding::refused:
            return {session_, 0, gateway_.first_window()};
        case trunk::Binding::renewed:
            abandon("the gateway there has started anew");
            break;
        case trunk::Binding::fresh:
        case trunk::Binding::same:
            break;
    }
    bound_to_ = link.peer_hello().session;
    auto& place = links_[link.stream()];
    if (place != nullptr) place->close("the gateway there has replaced it");
    place = take_greeting(link);
    return {session_, bound_to_, gateway_.first_window()};
}

// The connector's: false if the link is of no use.
bool Peer::welcomed(Link& link, const trunk::Welcome& welcome) {
    if (link.session() != session_) return false;  // said hello before the state was dropped
    if (welcome.peer_session != session_ || (bound_to_ != 0 && bound_to_ != welcome.session)) {
        violation_ = "the gateway there has started anew";
        return false;
    }
    bound_to_ = welcome.session;
    return true;
}

void Peer::link_up(Link& link, std::uint32_t window) {
    const Nanoseconds now = gateway_.now();
    if (trunk_.streams_up() == 0) gateway_.say(fmt::format("trunk to {} is up", site_.name));
    trunk_.set_peer_window(window);
    trunk_.stream_up(link.stream(), now);
    connect_pause_[link.stream()] = kFirstPause;
    last_failure_.clear();
    has_work_ = true;
}

void Peer::link_closed(Link& link, bool was_up, const char* why) {
    const Nanoseconds now = gateway_.now();
    last_failure_ = fmt::format("stream {}: {}", link.stream(), why);
    if (was_up) {
        trunk_.stream_down(link.stream(), now);
        connect_at_[link.stream()] = now;  // at once, then with pauses
        if (trunk_.streams_up() == 0) {
            down_since_ = now;
            gateway_.say(fmt::format("trunk to {} is down: {}", site_.name, last_failure_));
        }
    }
    if (auto& place = links_[link.stream()]; place.get() == &link)
        gateway_.loop().bury(std::move(place));
    else if (auto greeted = take_greeting(link); greeted != nullptr)
        gateway_.loop().bury(std::move(greeted));
    has_work_ = true;
}

void Peer::violated(const std::string& what) {
    violation_ = "the gateway there breaks the protocol: " + what;
}

// All connections are reset; what comes from the session before means nothing any more.
void Peer::abandon(const std::string& why) {
    if (bound_to_ != 0 || trunk_.channels() > 0)
        gateway_.say(fmt::format("the state of the trunk to {} is dropped: {}", site_.name, why));
    for (auto& link : links_)
        if (link != nullptr) link->close("the trunk's state was dropped");
    session_ = random_number();
    bound_to_ = 0;
    trunk_.abandon(gateway_.now());
}

void Peer::install(std::unique_ptr<Connection> connection, trunk::ChannelId channel) {
    Connection& installed = *connection;
    connections_[channel] = std::move(connection);
    if (!gateway_.loop().add(installed.descriptor(), installed)) {
        trunk_.reset(channel);
        installed.close(true);
    }
}

void Peer::adopt(FileDescriptor socket, const relay::Preface& preface) {
    GatewayCounters& counters = gateway_.counters();
    const auto refuse = [&](std::uint64_t& counter) {
        ++counter;
        close_with_reset(socket);
    };
    if (trunk_.streams_up() == 0 && gateway_.now() - down_since_ >= gateway_.settings().patience)
        return refuse(counters.trunk_down);
    const auto channel = trunk_.open_channel(relay::encode_preface(preface));
    if (!channel) return refuse(counters.over_limit);
    ++counters.connections;
    install(std::make_unique<Connection>(*this, *channel, std::move(socket)), *channel);
    has_work_ = true;
}

void Peer::opened(trunk::ChannelId channel, Bytes bytes) {
    has_work_ = true;
    GatewayCounters& counters = gateway_.counters();
    const auto refuse = [&](std::uint64_t& counter) {
        ++counter;
        trunk_.reset(channel);
    };
    const auto preface = relay::decode_preface(bytes);
    const relay::Site* where = preface ? gateway_.settings().sites.site_of(preface->target) : nullptr;
    if (where != &gateway_.settings().own_site()) return refuse(counters.no_route);
    if (gateway_.full()) return refuse(counters.over_limit);
    auto socket = connect_to(preface->target);
    if (!socket) return refuse(counters.targets_failed);
    ++counters.targets;
    install(std::make_unique<Connection>(*this, channel, std::move(socket.value()), *preface), channel);
}

Connection* Peer::find(trunk::ChannelId channel) const {
    const auto found = connections_.find(channel);
    return found == connections_.end() ? nullptr : found->second.get();
}

std::size_t Peer::deliver(trunk::ChannelId channel, Bytes bytes) {
    Connection* const connection = find(channel);
    return connection == nullptr ? bytes.size() : connection->deliver(bytes);
}

void Peer::finished(trunk::ChannelId channel) {
    if (Connection* const connection = find(channel)) connection->finish();
}

void Peer::was_reset(trunk::ChannelId channel) {
    if (Connection* const connection = find(channel)) connection->close(true);
}

void Peer::remove(trunk::ChannelId channel) {
    const auto found = connections_.find(channel);
    if (found == connections_.end()) return;
    waiting_.erase(found->second.get());
    gateway_.loop().bury(std::move(found->second));
    connections_.erase(found);
}

void Peer::reset_all() {
    std::vector<trunk::ChannelId> channels;
    for (const auto& [channel, connection] : connections_) channels.push_back(channel);
    for (const trunk::ChannelId channel : channels) {
        trunk_.reset(channel);
        was_reset(channel);
    }
}

void Peer::check_time(Nanoseconds now) {
    if (const Nanoseconds lost = gateway_.loop().overslept(); lost > gateway_.settings().heartbeat) {
        trunk_.forgive(now);
        down_since_ = std::min(now, down_since_ + lost);
    }
    trunk_.on_time(now);
    for (unsigned i = 0; i < trunk::kMaxStreams; ++i) {
        if (trunk_.stream(i).is_silent(gateway_.settings().silence, now))
            links_[i]->close("silent for too long");
        if (links_[i] != nullptr && links_[i]->deadline() <= now) links_[i]->close("no greeting in time");
    }
    while (!greeting_.empty() && greeting_.front()->deadline() <= now) {  // the oldest first
        ++gateway_.counters().greeting_timeouts;
        greeting_.front()->close("no greeting in time");
    }
    if (trunk_.streams_up() == 0 && now - down_since_ >= gateway_.settings().patience &&
        trunk_.channels() > 0)
        abandon(fmt::format("no stream for {} s", gateway_.settings().patience.value / 1'000'000'000));
    if (!violation_.empty()) abandon(std::exchange(violation_, {}));
    connect_streams(now);
    check_waiting(now);
}

void Peer::check_waiting(Nanoseconds now) {
    if (waiting_.empty() || now - waiting_checked_ < kWaitingEach) return;
    waiting_checked_ = now;
    std::vector<Connection*> due;
    for (const auto& [connection, deadline] : waiting_)
        if (deadline <= now) due.push_back(connection);
    for (Connection* connection : due) {
        waiting_.erase(connection);
        connection->on_deadline();
    }
}

void Peer::work(Nanoseconds now) {
    for (auto& link : links_)
        if (link != nullptr && link->read_more()) link->read();
    check_time(now);
    for (const trunk::ChannelId channel : std::exchange(again_, {}))
        if (Connection* const connection = find(channel)) connection->pump();
    for (unsigned round = 0; round < kRounds; ++round) {
        has_work_ = write_all(now);
        for (unsigned i = 0; i < 4096; ++i) {
            const auto channel = trunk_.next_sendable();
            if (!channel) break;
            if (Connection* const connection = find(*channel)) connection->pump();
        }
        if (!has_work_) break;
    }
    work_left_ = has_work_;
    for (auto& link : links_) work_left_ = work_left_ || (link != nullptr && link->read_more());
}

Nanoseconds Peer::next_deadline() const {
    Nanoseconds deadline = trunk_.next_deadline();
    for (const auto& link : links_)
        if (link != nullptr) deadline = std::min(deadline, link->deadline());
    for (const auto& link : greeting_) deadline = std::min(deadline, link->deadline());
    if (connects_)
        for (unsigned i = 0; i < gateway_.settings().sites.trunks.streams; ++i)
            if (links_[i] == nullptr) deadline = std::min(deadline, connect_at_[i]);
    if (trunk_.streams_up() == 0 && trunk_.channels() > 0)
        deadline = std::min(deadline, down_since_ + gateway_.settings().patience);
    if (!waiting_.empty()) deadline = std::min(deadline, waiting_checked_ + kWaitingEach);
    return deadline;
}

}  // namespace mcastcoll::gateway
