// How a group comes to be: greetings to rank 0 by datagram, again and again until it answers; its welcome to
// everybody over the private endpoints; then the engine's own probe and vote.
#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>

#include "ofi/group.h"
#include "ofi/live_station.h"
#include "transport/interceptor.h"
#include "transport/udp_multicast.h"
#include "wire/packet.h"

namespace mcastcoll::ofi {
namespace {

constexpr std::uint32_t kLeastFragment = 512;
constexpr std::uint32_t kMostFragment = 8192;
constexpr std::uint32_t kLeastWindow = 16;
constexpr std::uint32_t kMostWindow = 512;

}  // namespace

void Group::start(Nanoseconds now) {
    if (!leads()) return greet(now);
    greet_at_ = kNever;
    hellos_.resize(plan_.members.size());
    on_hello(station_.own_hello(plan_.id, plan_.self, plan_.members.size()), now);
}

void Group::greet(Nanoseconds now) {
    if (leads()) return;
    const wire::Hello hello = station_.own_hello(plan_.id, plan_.self, plan_.members.size());
    station_.greet(plan_.members.front(), attempt_, wire::encode(hello));
    // Quick at first, then patient: a leader that has not called join yet keeps greetings, one that is not
    // there cannot.
    const std::int64_t wait_ms =
        acknowledged_ ? 500 : std::min<std::int64_t>(std::int64_t{1} << std::min(attempt_, 5U), 20);
    greet_at_ = now + Nanoseconds::from_ms(wait_ms);
    ++attempt_;
}

void Group::on_hello(const wire::Hello& hello, Nanoseconds now) {
    if (!leads() || hello.members != plan_.members.size() || engine_ || ended_) return;
    std::optional<wire::Hello>& known = hellos_[index_of(hello.rank)];
    if (known) return;
    known = hello;
    if (++hello_count_ == plan_.members.size()) send_welcome(now);
}

void Group::send_welcome(Nanoseconds now) {
    wire::Welcome welcome;
    welcome.id = plan_.id;
    const auto made = station_.new_identity();
    if (!made) return end_join(made.error().code);
    const GroupIdentity& identity = made.value();
    welcome.key = identity.key;
    welcome.epoch = identity.epoch;
    welcome.repair = static_cast<std::uint8_t>(station_.settings().repair);
    std::uint32_t datagram = kMostFragment + wire::kHeaderBytes, window = kMostWindow;
    const std::uint8_t family = hellos_.front()->address_family;
    for (const auto& hello : hellos_) {
        welcome.peers.push_back(hello->peer);
        if (hello->datagram_bytes == 0 || hello->address_family != family) continue;  // it will be found deaf
        datagram = std::min(datagram, hello->datagram_bytes);
        window = std::min(window, hello->window);
    }
    if (hellos_.front()->datagram_bytes > 0 && plan_.members.size() > 1)
        welcome.group_address = encode_address(identity.address);
    welcome.fragment_bytes =
        std::max(datagram - static_cast<std::uint32_t>(wire::kHeaderBytes), kLeastFragment);
    welcome.window = std::max(window, kLeastWindow);

    const wire::ByteString bytes = wire::encode(welcome);
    for (std::size_t rank = 1; rank < hellos_.size(); ++rank) {
        auto peer = station_.messenger().peer(hellos_[rank]->peer.private_address);
        if (!peer || !station_.messenger().can_send() || bytes.size() > kMessageBytes)
            return end_join(peer ? FI_ENOMEM : peer.error().code);
        station_.messenger().send(peer.value(), bytes, {});
    }
    begin(welcome, now);
}

void Group::on_welcome(const wire::Welcome& welcome, Nanoseconds now) {
    if (engine_ || ended_ || leads() || welcome.peers.size() != plan_.members.size()) return;
    if (welcome.fragment_bytes < kLeastFragment || welcome.fragment_bytes > kMostFragment) return;
    if (welcome.window < kLeastWindow || welcome.window > kMostWindow || welcome.repair > 1) return;
    begin(welcome, now);
}

void Group::begin(const wire::Welcome& welcome, Nanoseconds now) {
    members_.resize(welcome.peers.size());
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
        if (rank_of(rank) == plan_.self) continue;
        const wire::Peer& peer = welcome.peers[rank];
        auto address = station_.messenger().peer(peer.private_address);
        if (!address) return end_join(address.error().code);
        members_[rank].messenger_peer = address.value();
        members_[rank].watch_point = peer.watch_point;
        if (auto source = decode_address(peer.multicast_source)) members_[rank].source = source->with_port(0);
    }
    open_transport(welcome);

    engine::GroupConfig config;
    config.self = plan_.self;
    config.members = static_cast<std::uint32_t>(members_.size());
    config.key = welcome.key;
    config.epoch = welcome.epoch;
    config.fragment_bytes = welcome.fragment_bytes;
    config.stash_bytes = std::max(config.stash_bytes, welcome.fragment_bytes);
    config.window = welcome.window;
    config.initial_window = std::min(config.initial_window, welcome.window);
    config.repair = static_cast<engine::Repair>(welcome.repair);
    config.message_bytes = kMessageBytes;
    config.multicast = transport_ != nullptr;
    if (config.members > 64) config.probes = 2;
    engine_ = std::make_unique<engine::Engine>(config);

    const std::size_t most = std::size_t{config.pending_operations} + config.operation_slots;
    pending_.resize(most);
    free_pending_.reserve(most);
    for (std::size_t i = most; i > 0; --i) free_pending_.push_back(static_cast<std::uint32_t>(i - 1));
    station_.on_keyed(*this);
    engine_->start(now);
    carry_out(now);
}

void Group::open_transport(const wire::Welcome& welcome) {
    if (members_.size() < 2) return;
    if (welcome.group_address.empty()) {
        no_multicast_ = "rank 0 has no multicast";
        return;
    }
    const auto address = decode_address(welcome.group_address);
    if (!address) {
        no_multicast_ = "the group's address is not understood";
        return;
    }
    const std::size_t self = index_of(plan_.self);
    bool neighbours = false;
    for (std::size_t rank = 0; rank < welcome.peers.size(); ++rank)
        neighbours |=
            rank != self && welcome.peers[rank].multicast_source == welcome.peers[self].multicast_source;
    auto opened = station_.open_multicast(*address, welcome.fragment_bytes + wire::kHeaderBytes, neighbours);
    if (opened)
        transport_ = std::move(opened).value();
    else
        no_multicast_ = opened.error().message;
}

void Group::on_abort(int error, Nanoseconds now) {
    if (engine_)
        engine_->abort(error, now);
    else
        end_join(error);
}

// The join is over without a group. The leader tells those who greeted it, so that they need not wait for
// their deadline.
void Group::end_join(int error) {
    if (ended_ || joined_) return;
    ended_ = true;
    station_.log(Level::warn, "{}: join failed: {}", name(), fi_strerror(error));
    if (leads() && !engine_) {
        const wire::ByteString bytes =
            wire::encode(wire::Answer{wire::JoinKind::abort, plan_.id, static_cast<std::uint32_t>(error)});
        for (std::size_t rank = 1; rank < hellos_.size(); ++rank) {
            if (!hellos_[rank] || !station_.messenger().can_send()) continue;
            if (auto peer = station_.messenger().peer(hellos_[rank]->peer.private_address))
                station_.messenger().send(peer.value(), bytes, {});
        }
        station_.remember_failed(plan_.id, error);
    }
    if (!closed_) station_.report_join(mc_.fid, error);
}

void Group::explain_join() {
    const engine::GroupConfig& config = engine_->config();
    const engine::SupplyGraph& graph = engine_->graph();
    if (config.members == 1) return station_.log(Level::info, "{}: joined, nobody else is in it", name());
    const std::string lane =
        graph.hearing_count() == 0
            ? std::string("no multicast, all is point-to-point")
            : fmt::format("multicast {} reaches {} of {} members",
                          transport_ ? transport_->group_address().to_string() : "(elsewhere)",
                          graph.hearing_count(), config.members);
    station_.log(Level::info,
                 "{}: joined as rank {}: {}{}; fragments of {} bytes, window {}, repair {}, round trip {} us",
                 name(), index_of(config.self), lane,
                 no_multicast_.empty() ? std::string() : fmt::format(" (here: {})", no_multicast_),
                 config.fragment_bytes, config.window,
                 config.repair == engine::Repair::push ? "push" : "pull", engine_->round_trip().value / 1000);
    if (graph.hearing_count() > 0 && graph.hearing_count() < config.members)
        for (std::uint32_t i = 0; i < config.members; ++i)
            if (graph.deaf(rank_of(i)))
                station_.log(Level::info,
                             "{}: rank {} cannot hear the multicast, it is served point-to-point", name(), i);
}

}  // namespace mcastcoll::ofi
