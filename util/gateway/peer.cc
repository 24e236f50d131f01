// The streams, connections and deadlines of a session; peer_writing.cc has the output.
#include "gateway/peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "base/system.h"
#include "gateway/sockets.h"

namespace mcastcoll::gateway {
namespace {

constexpr Nanoseconds kFirstPause = Nanoseconds::from_ms(50), kLongestPause = Nanoseconds::from_ms(2000);
constexpr Nanoseconds kWaitingEach = Nanoseconds::from_ms(100);
constexpr unsigned kRounds = 8;

// Returns a random session number, which is never 0.
std::uint64_t draw_session_id() {
    std::uint64_t number = 0;
    while (number == 0)
        if (auto drawn = kernel_random(std::as_writable_bytes(std::span(&number, 1))); !drawn)
            throw std::runtime_error(drawn.error().message);
    return number;
}

}  // namespace

Peer::Peer(Shared& shared, const sites::Site& site)
    : shared_(shared),
      site_(site),
      connects_(shared.settings.own_site().name < site.name),
      session_(shared.settings.session_config(connects_), shared.pool, *this),
      session_id_(draw_session_id()),
      down_since_(shared.now()) {
    connect_pause_.fill(kFirstPause);
}

session::Hello Peer::own_hello(unsigned stream) const {
    return {.session = session_id_,
            .peer_session = bound_to_,
            .stream = stream,
            .streams = shared_.settings.sites.sessions.streams,
            .window = session_.config().first_window,
            .from = shared_.settings.own_site().name,
            .to = site_.name};
}

void Peer::connect_streams(Nanoseconds now) {
    if (!connects_ || shared_.draining) return;
    for (unsigned i = 0; i < shared_.settings.sites.sessions.streams; ++i) {
        if (links_[i] != nullptr || connect_at_[i] > now) continue;
        connect_at_[i] = now + connect_pause_[i];
        connect_pause_[i] = std::min(Nanoseconds{connect_pause_[i].value * 2}, kLongestPause);
        auto socket = connect_to(site_.wan, shared_.settings.wan_source());
        if (!socket) {
            last_failure_ = socket.error().message;
            continue;
        }
        install(std::make_unique<Link>(*this, shared_, session_, std::move(socket.value()), own_hello(i)));
    }
}

void Peer::install(std::unique_ptr<Link> link) {
    Link& installed = *link;
    links_[link->stream()] = std::move(link);
    if (!shared_.loop.add(installed.descriptor(), installed)) installed.close("cannot be watched");
}

void Peer::accept(FileDescriptor socket, const session::Hello& theirs, std::unique_ptr<Tls> tls) {
    const auto binding = session::bind(session_id_, bound_to_, theirs);
    if (binding == session::Binding::renewed) abandon("the gateway there has restarted");
    auto link = std::make_unique<Link>(*this, shared_, session_, std::move(socket), theirs, std::move(tls));
    Link& accepted = *link;
    if (binding != session::Binding::refused) {
        bound_to_ = theirs.session;
        if (auto& place = links_[link->stream()]; place != nullptr)
            place->close("the gateway there has replaced it");
        install(std::move(link));
    }
    accepted.welcome({session_id_, link == nullptr ? bound_to_ : 0, session_.config().first_window});
}

bool Peer::welcomed(Link& link, const session::Welcome& welcome) {
    if (link.session_id() != session_id_) return false;  // the session was dropped after this link's hello
    if (welcome.peer_session != session_id_ || (bound_to_ != 0 && bound_to_ != welcome.session)) {
        violation_ = "the gateway there has restarted";
        return false;
    }
    bound_to_ = welcome.session;
    return true;
}

void Peer::link_up(Link& link, std::uint32_t window) {
    const Nanoseconds now = shared_.now();
    if (session_.streams_up() == 0) shared_.log(fmt::format("session to {} is up", site_.name));
    session_.set_peer_window(window);
    session_.stream_up(link.stream(), now);
    connect_pause_[link.stream()] = kFirstPause;
    last_failure_.clear();
}

void Peer::link_closed(Link& link, bool was_up, const std::string& why) {
    const Nanoseconds now = shared_.now();
    last_failure_ = fmt::format("stream {}: {}", link.stream(), why);
    if (was_up) {
        session_.stream_down(link.stream());
        connect_at_[link.stream()] = now;  // at once, then with pauses
        if (session_.streams_up() == 0) {
            down_since_ = now;
            shared_.log(fmt::format("session to {} is down: {}", site_.name, last_failure_));
        }
    }
    if (auto& place = links_[link.stream()]; place.get() == &link)
        shared_.loop.delete_later(std::move(place));
}

// Resets all connections; frames of the old session are no longer accepted.
void Peer::abandon(const std::string& why) {
    if (bound_to_ != 0 || session_.channels() > 0)
        shared_.log(fmt::format("the session to {} is dropped, which resets its {} connections: {}",
                                site_.name, connections_.size(), why));
    for (auto& link : links_)
        if (link != nullptr) link->close("the session's state was dropped");
    session_id_ = draw_session_id();
    bound_to_ = 0;
    session_.abandon();
}

void Peer::install(session::ChannelId channel, FileDescriptor socket, const std::optional<Preface>& preface) {
    auto& place = connections_[channel];
    if (place == nullptr) ++shared_.connections;
    place = std::make_unique<Connection>(*this, channel, std::move(socket), preface);
    if (shared_.loop.add(place->descriptor(), *place)) return;
    session_.reset(channel);
    place->close(true);
}

void Peer::adopt(FileDescriptor socket, const Preface& preface) {
    GatewayCounters& counters = shared_.counters;
    const auto refuse = [&](std::uint64_t& counter) {
        ++counter;
        close_with_reset(socket);
    };
    if (session_.streams_up() == 0 && shared_.now() - down_since_ >= shared_.settings.session_timeout)
        return refuse(counters.session_down);
    const auto channel = session_.open_channel(encode_preface(preface));
    if (!channel) return refuse(counters.over_limit);
    ++counters.connections;
    install(*channel, std::move(socket), std::nullopt);
}

void Peer::opened(session::ChannelId channel, Bytes bytes) {
    GatewayCounters& counters = shared_.counters;
    const auto refuse = [&](std::uint64_t& counter) {
        ++counter;
        session_.reset(channel);
    };
    const auto refuse_target = [&](std::uint64_t& counter, const sites::Endpoint& source,
                                   const sites::Endpoint& target, const char* why) {
        shared_.warn(fmt::format("a connection from {} to {}, requested by the gateway of {}, is refused: {}",
                                 source.to_string(), target.to_string(), site_.name, why));
        refuse(counter);
    };
    const auto preface = decode_preface(bytes);
    const sites::Site* where = preface ? shared_.settings.sites.site_of(preface->target) : nullptr;
    if (where != &shared_.settings.own_site()) return refuse(counters.no_route);
    const sites::Endpoint &source = preface->source, &target = preface->target;
    // A source outside all sites is the host of the peer's gateway.
    const sites::Site* from = shared_.settings.sites.site_of(source);
    if (from != nullptr && from != &site_)
        return refuse_target(counters.false_sources, source, target, "this source is in another site");
    if (!site_.may_reach(target))
        return refuse_target(counters.out_of_reach, source, target,
                             "the sites file does not allow this target");
    if (shared_.full()) return refuse(counters.over_limit);
    auto socket = connect_to(preface->target);
    if (!socket) return refuse(counters.targets_failed);
    ++counters.targets;
    install(channel, std::move(socket.value()), preface);
}

Connection* Peer::find(session::ChannelId channel) const {
    const auto found = connections_.find(channel);
    return found == connections_.end() ? nullptr : found->second.get();
}

std::size_t Peer::deliver(session::ChannelId channel, Bytes bytes) {
    Connection* const connection = find(channel);
    return connection == nullptr ? bytes.size() : connection->deliver(bytes);
}

void Peer::finished(session::ChannelId channel) {
    if (Connection* const connection = find(channel)) connection->finish();
}

void Peer::was_reset(session::ChannelId channel) {
    if (Connection* const connection = find(channel)) connection->close(true);
}

void Peer::remove(session::ChannelId channel) {
    const auto found = connections_.find(channel);
    if (found == connections_.end()) return;
    waiting_.erase(found->second.get());
    shared_.loop.delete_later(std::move(found->second));
    connections_.erase(found);
    --shared_.connections;
}

void Peer::reset_all() {
    std::vector<session::ChannelId> channels;
    for (const auto& [channel, connection] : connections_) channels.push_back(channel);
    for (const session::ChannelId channel : channels) {
        session_.reset(channel);
        was_reset(channel);
    }
}

void Peer::check_time(Nanoseconds now) {
    if (const Nanoseconds lost = shared_.loop.overslept(); lost > shared_.settings.heartbeat) {
        session_.forgive(now);
        down_since_ = std::min(now, down_since_ + lost);
    }
    session_.on_time(now);
    for (unsigned i = 0; i < session::kMaxStreams; ++i) {
        if (session_.stream(i).is_silent(shared_.settings.silence, now))
            links_[i]->close("silent for too long");
        if (links_[i] != nullptr && links_[i]->deadline() <= now) links_[i]->close("no hello in time");
    }
    if (session_.streams_up() == 0 && now - down_since_ >= shared_.settings.session_timeout &&
        session_.channels() > 0)
        abandon(fmt::format("no stream for {} s", shared_.settings.session_timeout.value / 1'000'000'000));
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
    for (const session::ChannelId channel : std::exchange(again_, {}))
        if (Connection* const connection = find(channel)) connection->pump();
    for (unsigned round = 0; round < kRounds; ++round) {
        has_work_ = write_all(now);
        for (unsigned i = 0; i < 4096; ++i) {
            const auto channel = session_.next_sendable();
            if (!channel) break;
            if (Connection* const connection = find(*channel)) connection->pump();
        }
        if (!has_work_) break;
    }
    work_left_ = has_work_;
    for (auto& link : links_) work_left_ = work_left_ || (link != nullptr && link->read_more());
}

Nanoseconds Peer::next_deadline() const {
    Nanoseconds deadline = session_.next_deadline();
    for (const auto& link : links_)
        if (link != nullptr) deadline = std::min(deadline, link->deadline());
    if (connects_)
        for (unsigned i = 0; i < shared_.settings.sites.sessions.streams; ++i)
            if (links_[i] == nullptr) deadline = std::min(deadline, connect_at_[i]);
    if (session_.streams_up() == 0 && session_.channels() > 0)
        deadline = std::min(deadline, down_since_ + shared_.settings.session_timeout);
    if (!waiting_.empty()) deadline = std::min(deadline, waiting_checked_ + kWaitingEach);
    return deadline;
}

}  // namespace mcastcoll::gateway
