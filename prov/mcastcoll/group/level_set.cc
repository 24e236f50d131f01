#include "group/level_set.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>

#include "base/result.h"
#include "group/welcome.h"

namespace mcastcoll::group {
namespace {

constexpr std::uint32_t kMostRetransmit = 65536;
// Longer vectors are worth being combined piece by piece while the rest is still under way.
constexpr std::uint32_t kMostGathered = 65536;

// Between two looks for shared memory that the host's leader has not made yet.
constexpr Nanoseconds kAttachInterval = Nanoseconds::from_us(500);

static_assert(topology::Algorithm::kMostSegmentArity == engine::kMaxArity);

levels::MessageConfig message_config(const wire::Welcome& welcome, const levels::Placement& placement,
                                     const Means& means) {
    return {.key = welcome.key,
            .epoch = welcome.epoch,
            .self = placement.self(),
            .members = placement.members(),
            .message_bytes = means.message_bytes};
}

engine::GroupConfig engine_config(const wire::Welcome& welcome, const levels::Placement& placement,
                                  const Means& means) {
    engine::GroupConfig config;
    config.self = rank_of(placement.segment_self());
    config.members = static_cast<std::uint32_t>(placement.segment().size());
    const std::uint64_t segment = placement.segment_of(placement.self());
    config.key = static_cast<GroupKey>(static_cast<std::uint64_t>(welcome.key) + segment);
    config.epoch = welcome.epoch;
    config.fragment_bytes = welcome.fragment_bytes;
    // What goes without reports: several of them must fit into the receivers' buffers.
    const std::uint64_t room = std::uint64_t{welcome.window} * welcome.fragment_bytes;
    config.retransmit_bytes = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(room / 8, config.retransmit_bytes, kMostRetransmit));
    config.retransmit_bytes = std::max(config.retransmit_bytes, welcome.fragment_bytes);
    config.window = welcome.window;
    config.repair = static_cast<engine::Repair>(welcome.repair);
    config.channels = welcome.channels;
    config.root_sync = static_cast<engine::RootSync>(welcome.root_sync);
    config.root_delay = Nanoseconds::from_us(welcome.root_delay_us);
    config.memory = means.memory;
    config.gather_bytes = kMostGathered;
    config.message_bytes = means.message_bytes;
    config.ranges = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(welcome.group_addresses.size()));
    for (const std::uint32_t rank : placement.segment()) config.range_of.push_back(welcome.range_of[rank]);
    config.relay = static_cast<engine::Plan>(welcome.plan) == engine::Plan::tree;
    if (config.members > 64) config.probes = 2;
    config.stall_timeout = means.stall_timeout;
    return config;
}

}  // namespace

LevelSet::LevelSet(const wire::Welcome& welcome, Rank self, const Means& means, Roster& roster, Port& port,
                   levels::Owner& owner)
    : roster_(roster),
      port_(port),
      owner_(owner),
      key_(welcome.key),
      epoch_(welcome.epoch),
      most_open_(means.most_open),
      map_(make_map(welcome)),
      placement_(index_of(self), places_in(map_)),
      selection_(levels::Selection::decode(welcome.selection).value_or(levels::Selection())),
      site_level_(placement_, {message_config(welcome, placement_, means),
                               map_.policy().algorithms.at(topology::Level::wan),
                               map_.policy().algorithms.at(topology::Level::site)}) {
    if (placement_.leads_host())
        for (const wire::Peer& peer : welcome.peers) places_.push_back(peer.place);
    if (placement_.leads_host() && placement_.segment().size() > 1) make_engine(welcome, means);
    if (placement_.hosts() > 1)
        exchange_level_ = std::make_unique<levels::ExchangeLevel>(
            levels::ExchangeConfig{message_config(welcome, placement_, means)});
    make_planner();
}

void LevelSet::make_engine(const wire::Welcome& welcome, const Means& means) {
    Multicast& multicast = port_.multicast();
    multicast.join(welcome, placement_);
    engine::GroupConfig config = engine_config(welcome, placement_, means);
    config.multicast = multicast.joined();
    no_multicast_ = multicast.why_not();
    // A segment's other algorithms are chain and K-ary: trees of messages, which are the engine's.
    const topology::Algorithm algorithm = map_.policy().algorithms.at(topology::Level::segment);
    if (algorithm.shape().name != "multicast") {
        config.multicast = false;
        no_multicast_ = fmt::format("FI_MCASTCOLL_TOPOLOGY={}@segment", algorithm.name());
        config.tree_arity = config.large_tree_arity = std::max<std::uint32_t>(1, algorithm.arity);
    }
    engine_ = std::make_unique<engine::Engine>(config);
    // The barrier that ends the join waits for whoever is late with the join, until the join's deadline.
    if (several()) engine_->count_stalls_from(kNever);
    segment_level_ = std::make_unique<levels::SegmentLevel>(*engine_);
}

void LevelSet::make_planner() {
    planner_ = std::make_unique<levels::Planner>(
        placement_,
        std::array<levels::Level*, levels::kLevels>{host_level_.get(), segment_level_.get(), &site_level_,
                                                    exchange_level_.get()},
        most_open_, owner_, selection_);
}

int LevelSet::start(Nanoseconds now) {
    site_level_.start(now);
    if (engine_) engine_->start(now);
    return placement_.host().size() == 1 ? 0 : make_host(now);
}

// The leader's exists at once; the others look for it until it is there or the join's time is over.
int LevelSet::make_host(Nanoseconds now) {
    attach_at_ = kNever;
    const auto members = static_cast<std::uint32_t>(placement_.host().size());
    auto opened = port_.open_host({.key = key_,
                                   .epoch = epoch_,
                                   .self = placement_.host_self(),
                                   .size = members,
                                   .clusters = clusters_in_host(map_, placement_.host()),
                                   .leader_point = roster_.watch_point(placement_.host().front())});
    if (!opened) {
        const int error = opened.error().code;
        if (!placement_.leads_host() && (error == ENOENT || error == EAGAIN)) {
            attach_at_ = now + kAttachInterval;
            return 0;
        }
        port_.warn(fmt::format("no shared memory with {} other processes of this host: {}", members - 1,
                               opened.error().message));
        return error;
    }
    host_level_ = std::move(opened).value();
    try {
        make_planner();
    } catch (...) {
        // The planner there is knows nothing of it.
        host_level_.reset();
        attach_at_ = now + kAttachInterval;
        throw;
    }
    return 0;
}

void LevelSet::on_message(Bytes message, Nanoseconds now) {
    if (site_level_.takes(wire::peek_kind(message)))
        site_level_.on_message(message, now);
    else if (exchange_level_ && exchange_level_->takes(wire::peek_kind(message)))
        exchange_level_->on_message(message, now);
    else if (engine_)
        engine_->on_message(message, now);
}

int LevelSet::on_timeout(Nanoseconds now) {
    if (engine_ && engine_->next_deadline() <= now) engine_->on_timeout(now);
    return attach_at_ <= now ? make_host(now) : 0;
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
                if (multicast.joined()) multicast.send(effect.header, effect.payload, effect.range);
                break;
            case engine::Effect::Kind::message:
                if (const auto peer = roster_.peer(rank(), port_))
                    port_.send_message(*peer, effect.header, effect.payload);
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
            if (const auto peer = roster_.peer(message.to, port_))
                port_.send_message(*peer, message.header, message.payload);
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

Rank LevelSet::awaited() const {
    const std::uint32_t far = exchange_level_ ? exchange_level_->awaited() : levels::kNotThere;
    if (far != levels::kNotThere) return rank_of(far);
    const std::uint32_t near = host_level_ ? host_level_->awaited() : levels::kNotThere;
    return near < placement_.host().size() ? rank_of(placement_.host()[near]) : kNoRank;
}

void LevelSet::fail(int error, Rank lost, Nanoseconds now) {
    attach_at_ = kNever;
    if (host_level_) {
        const auto& here = placement_.host();
        const auto found = std::find(here.begin(), here.end(), index_of(lost));
        if (found != here.end())
            host_level_->end_because_of(static_cast<std::uint32_t>(found - here.begin()), error);
    }
    // The engine's members then know whose death it is, and who has to tell of it.
    attempt([&] { engine_loses(lost, error, now); });
    attempt([&] { planner_->fail(error, now); });
}

}  // namespace mcastcoll::group
