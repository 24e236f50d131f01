#include "group/level_set.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>

#include "base/result.h"
#include "engine/address_choice.h"
#include "group/welcome.h"

namespace mcastcoll::group {
namespace {

constexpr std::uint32_t kMaxRetransmit = 65536;
// Longest vector that goes up the tree whole. Longer vectors are faster if members combine them piece by
// piece, while later pieces still arrive.
constexpr std::uint32_t kMaxGathered = 65536;

// The largest group whose places a host leader reports: a larger picture would be unreadable.
constexpr std::size_t kMaxReported = 4096;

static_assert(topology::Algorithm::kMaxSegmentArity == engine::kMaxArity);

wire::Protection protection_of(const wire::Agreement& agreement, const wire::JoinKey& key,
                               std::string_view purpose, std::uint64_t number = 0) {
    const auto security = static_cast<wire::Security>(agreement.security);
    if (security == wire::Security::off || !key) return {wire::Security::off, {}, {}};
    return {security, static_cast<wire::MacKind>(agreement.mac),
            key_of_group(agreement, *key, purpose, number)};
}

levels::MessageConfig message_config(const wire::Agreement& agreement, const levels::Placement& placement,
                                     const Means& means, const wire::Protection& protection) {
    return {.key = agreement.key,
            .epoch = agreement.epoch,
            .checksum = protection.checksum(),
            .self = placement.self(),
            .members = placement.members(),
            .message_bytes = means.message_bytes};
}

engine::GroupConfig engine_config(const wire::Welcome& welcome, const levels::Placement& placement,
                                  const Means& means, const wire::Protection& protection) {
    engine::GroupConfig config;
    config.self = rank_of(placement.segment_self());
    config.members = static_cast<std::uint32_t>(placement.segment().size());
    const std::uint64_t segment = placement.segment_of(placement.self());
    config.key = static_cast<GroupKey>(static_cast<std::uint64_t>(welcome.key) + segment);
    config.epoch = welcome.epoch;
    config.checksum = protection.checksum();
    config.fragment_bytes = welcome.fragment_bytes;
    // A small message is sent as one burst, without waiting for reports of the receivers' progress. Several
    // such bursts must fit into the receivers' buffers.
    const std::uint64_t room = std::uint64_t{welcome.window} * welcome.fragment_bytes;
    config.retransmit_bytes = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(room / 8, config.retransmit_bytes, kMaxRetransmit));
    config.retransmit_bytes = std::max(config.retransmit_bytes, welcome.fragment_bytes);
    config.window = welcome.window;
    config.repair = static_cast<engine::Repair>(welcome.repair);
    config.redundancy = static_cast<engine::Redundancy>(welcome.redundancy);
    config.channels = welcome.channels;
    config.root_sync = static_cast<engine::RootSync>(welcome.root_sync);
    config.root_delay = Nanoseconds::from_us(welcome.root_delay_us);
    config.memory = means.memory;
    config.gather_bytes = kMaxGathered;
    config.message_bytes = means.message_bytes;
    config.ranges = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(welcome.group_addresses.size()));
    for (const std::uint32_t rank : placement.segment()) config.range_of.push_back(welcome.range_of[rank]);
    config.relay = static_cast<engine::AddressScheme>(welcome.address_scheme) == engine::AddressScheme::tree;
    if (config.members > 64) config.probes = 2;
    config.stall_timeout = means.stall_timeout;
    return config;
}

}  // namespace

LevelSet::LevelSet(Standing&& standing, Rank self, const Means& means, Roster& roster, Port& port,
                   levels::Hierarchy::Owner& owner)
    : roster_(roster),
      port_(port),
      key_(standing.agreement.key),
      policy_(topology::decode_policy(standing.agreement.policy).value_or(topology::Policy{})),
      placement_(index_of(self), standing.table.places()),
      protection_(protection_of(standing.agreement, means.key, "messages")),
      engine_protection_(
          protection_of(standing.agreement, means.key, "segment", placement_.segment_of(placement_.self()))),
      selection_(levels::Selection::decode(standing.agreement.selection).value_or(levels::Selection())),
      site_level_(placement_, {message_config(standing.agreement, placement_, means, protection_),
                               policy_.algorithms.at(topology::Level::wan),
                               policy_.algorithms.at(topology::Level::site)}),
      host_level_(std::move(standing.host)) {
    if (placement_.leads_host()) {
        connections_ = topology::describe_levels(*standing.map);
        if (placement_.members() <= kMaxReported)
            for (const wire::Peer& peer : standing.welcome->peers) places_.push_back(peer.place);
        if (placement_.segment().size() > 1) make_engine(*standing.welcome, means);
    }
    if (placement_.hosts() > 1)
        exchange_level_ = std::make_unique<levels::ExchangeLevel>(
            levels::ExchangeConfig{message_config(standing.agreement, placement_, means, protection_)});
    planner_ = std::make_unique<levels::Planner>(
        placement_,
        std::array<levels::Level*, levels::kLevels>{host_level_.get(), segment_level_.get(), &site_level_,
                                                    exchange_level_.get()},
        means.max_open, owner, selection_);
}

void LevelSet::make_engine(const wire::Welcome& welcome, const Means& means) {
    Multicast& multicast = port_.multicast();
    multicast.join(welcome, placement_);
    engine::GroupConfig config = engine_config(welcome, placement_, means, engine_protection_);
    config.multicast = multicast.joined();
    no_multicast_ = multicast.why_not();
    // The other algorithms of a segment (chain, K-ary) are message trees inside the engine.
    const topology::Algorithm algorithm = policy_.algorithms.at(topology::Level::segment);
    if (algorithm.shape().name != "multicast") {
        config.multicast = false;
        no_multicast_ = fmt::format("FI_MCASTCOLL_TOPOLOGY={}@segment", algorithm.name());
        config.tree_arity = config.large_tree_arity = std::max<std::uint32_t>(1, algorithm.arity);
    }
    engine_ = std::make_unique<engine::Engine>(config);
    // The barrier at the end of the join waits for late members until the join's deadline, not the stall
    // timeout.
    if (several()) engine_->count_stalls_from(kNever);
    segment_level_ = std::make_unique<levels::SegmentLevel>(*engine_);
}

void LevelSet::start(Nanoseconds now) {
    site_level_.start(now);
    if (engine_) engine_->start(now);
}

bool LevelSet::is_proven(wire::Protection& protection, MutableBytes packet, Rank to) {
    const bool proven = protection.unseal(packet, to);
    unproven_ += !proven;
    return proven;
}

void LevelSet::on_message(MutableBytes message, Nanoseconds now) {
    const wire::Kind kind = wire::peek_kind(message);
    const bool of_site = site_level_.takes(kind);
    if (of_site || (exchange_level_ && exchange_level_->takes(kind))) {
        if (!is_proven(protection_, message, rank_of(placement_.self()))) return;
        if (of_site)
            site_level_.on_message(message, now);
        else
            exchange_level_->on_message(message, now);
    } else if (engine_ && is_proven(engine_protection_, message, engine_->config().self)) {
        engine_->on_message(message, now);
    }
}

bool LevelSet::on_datagram(MutableBytes datagram, Nanoseconds now) {
    if (!engine_ || !is_proven(engine_protection_, datagram, kNoRank)) return false;
    const std::uint64_t valid_before = engine_->counters().datagrams_received;
    engine_->on_packet(datagram, now);
    return engine_->counters().datagrams_received > valid_before;
}

void LevelSet::on_timeout(Nanoseconds now) {
    if (engine_ && engine_->next_deadline() <= now) engine_->on_timeout(now);
}

bool LevelSet::carry_out(Nanoseconds now) {
    if (!engine_) return false;
    Multicast& multicast = port_.multicast();
    engine::Effect effect;
    const auto rank = [&] { return placement_.segment()[index_of(effect.to)]; };
    bool any = false;
    for (;; any = true) {
        const engine::Allowed allowed{.multicast = multicast.can_send(), .message = port_.can_send()};
        if (!engine_->poll_effects(allowed, effect)) break;
        switch (effect.kind) {
            case engine::Effect::Kind::multicast:
                if (!multicast.joined()) break;
                effect.payload = engine_protection_.seal(effect.header, effect.payload, kNoRank);
                multicast.send(effect.header, effect.payload, effect.range);
                break;
            case engine::Effect::Kind::message:
                if (const auto peer = roster_.peer(rank(), port_)) {
                    effect.payload = engine_protection_.seal(effect.header, effect.payload, effect.to);
                    port_.send_message(*peer, effect.header, effect.payload);
                }
                break;
            case engine::Effect::Kind::gathered:
                segment_level_->on_gathered(effect.operation);
                break;
            case engine::Effect::Kind::complete:
                segment_level_->on_complete(effect.operation, effect.status);
                break;
            case engine::Effect::Kind::watch:
                if (const auto peer = roster_.peer(rank(), port_))
                    port_.watch(*peer, roster_.watch_point(rank()), now);
                break;
            case engine::Effect::Kind::joined:
                engine_joined_ = true;
                break;
            case engine::Effect::Kind::failed:
                engine_failure_ = {effect.to == kNoRank ? kNoRank : rank_of(rank()), effect.status};
                break;
            case engine::Effect::Kind::left:
                break;
        }
    }
    if (multicast.joined()) multicast.flush();
    return any;
}

bool LevelSet::move_messages() {
    bool moved = false;
    const auto send_all = [&](auto& level) {
        for (levels::Outgoing message; port_.can_send() && level.poll_outgoing(message);) {
            if (const auto peer = roster_.peer(message.to, port_)) {
                message.payload = protection_.seal(message.header, message.payload, rank_of(message.to));
                port_.send_message(*peer, message.header, message.payload);
            }
            moved = true;
        }
        for (std::uint32_t rank; level.poll_watch(rank);) awaited_long_.push_back(rank);
    };
    send_all(site_level_);
    if (exchange_level_) send_all(*exchange_level_);
    return moved;
}

Losses::Loss LevelSet::host_failure() const {
    if (!host_level_ || host_level_->failure() == 0) return {};
    return {lost_here(), host_level_->failure()};
}

Rank LevelSet::lost_here() const {
    if (!host_level_ || host_level_->lost() >= placement_.host().size()) return kNoRank;
    return rank_of(placement_.host()[host_level_->lost()]);
}

Rank LevelSet::lost_elsewhere() const {
    Rank rank = host_level_ ? host_level_->lost_elsewhere() : kNoRank;
    if (rank == kNoRank && engine_) rank = engine_->named_loss();
    return index_of(rank) < placement_.members() ? rank : kNoRank;
}

bool LevelSet::engine_loses(Rank rank, int error, Nanoseconds now) {
    const auto& segment = placement_.segment();
    const auto found = std::find(segment.begin(), segment.end(), index_of(rank));
    if (!engine_ || found == segment.end()) return false;
    engine_->on_peer_lost(rank_of(static_cast<std::size_t>(found - segment.begin())), error, now);
    return true;
}

void LevelSet::lose(Rank rank) {
    site_level_.lose(index_of(rank));
    if (exchange_level_) exchange_level_->lose(index_of(rank));
}

bool LevelSet::needs(std::uint32_t rank) const {
    return site_level_.needs(rank) || (exchange_level_ && exchange_level_->needs(rank));
}

engine::PollHint LevelSet::poll_hint() const {
    engine::PollHint all = engine_ ? engine_->poll_hint() : engine::PollHint{};
    all.messages |= site_level_.busy() || exchanges();
    return all;
}

Rank LevelSet::awaited() const {
    const std::uint32_t far = exchange_level_ ? exchange_level_->awaited() : levels::kNotThere;
    if (far != levels::kNotThere) return rank_of(far);
    const std::uint32_t near = host_level_ ? host_level_->awaited() : levels::kNotThere;
    return near < placement_.host().size() ? rank_of(placement_.host()[near]) : kNoRank;
}

void LevelSet::fail(int error, Rank lost, Nanoseconds now) {
    const Rank named = lost != kNoRank ? lost : lost_elsewhere();
    if (engine_ && named != kNoRank) engine_->name_loss(named);
    if (host_level_) {
        const auto here = placement_.host();
        const auto found = std::find(here.begin(), here.end(), index_of(lost));
        if (found != here.end())
            host_level_->end_because_of(static_cast<std::uint32_t>(found - here.begin()), error);
        else if (named != kNoRank)
            host_level_->name_lost_elsewhere(named);
    }
    // The engine's members then know the lost rank and which members are to be informed.
    attempt([&] { engine_loses(lost, error, now); });
    attempt([&] { planner_->fail(error, now); });
}

}  // namespace mcastcoll::group
