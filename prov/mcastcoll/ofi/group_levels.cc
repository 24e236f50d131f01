// The levels of a group: which there are for this member, how they come to be, what happens when one fails.
//
// Everybody reads the places of all members in the welcome and comes to the same clusters. A host's leader
// makes its shared memory and the engine; the others find the memory by its name, which has the group's key
// in it. When there is more than one level a join ends with a barrier over all of them, so that nobody speaks
// to a member that does not know the group yet.
#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "group/places.h"
#include "ofi/group.h"
#include "ofi/live_station.h"
#include "ofi/message_form.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {
namespace {

constexpr std::uint32_t kMostStash = 65536;
// Longer vectors are worth being combined piece by piece while the rest is still under way.
constexpr std::uint32_t kMostGathered = 65536;

// Between two looks for shared memory that the host's leader has not made yet.
constexpr Nanoseconds kAttachInterval = Nanoseconds::from_us(500);

// Children of a member in the engine's trees that come nearest to this shape.
std::uint32_t arity_of(const topology::Algorithm& algorithm) {
    if (algorithm.shape().name == "chain") return 1;
    if (algorithm.arity() == 0) return engine::kMaxArity;  // flat, binomial: as wide as can be
    return std::min<std::uint32_t>(algorithm.arity(), engine::kMaxArity);
}

std::byte* map_pages(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* const pages =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(pages);
}

void unmap_pages(std::byte* pages, std::size_t bytes) {
    if (pages != nullptr) ::munmap(pages, bytes);
}

}  // namespace

Group::Keys Group::keys() const {
    if (!formed()) return {};
    if (!engine_ || engine_->config().key == key_) return {{key_}, 1};
    return {{key_, engine_->config().key}, 2};
}

// All or nothing: who has no memory for the levels has none of them.
void Group::form(const wire::Welcome& welcome, Nanoseconds now) {
    try {
        make_levels(welcome, now);
    } catch (...) {
        conductor_.reset();
        host_level_.reset();
        exchange_level_.reset();
        site_level_.reset();
        segment_level_.reset();
        engine_.reset();
        placement_.reset();
        map_.reset();
        places_.clear();
        throw;
    }
}

void Group::make_levels(const wire::Welcome& welcome, Nanoseconds now) {
    for (const wire::Peer& peer : welcome.peers) places_.push_back(peer.place);
    map_ = std::make_unique<topology::Map>(group::make_map(places_, welcome.policy));
    placement_ = std::make_unique<levels::Placement>(index_of(plan_.self), group::places_in(*map_));
    selection_ = levels::Selection::decode(welcome.selection).value_or(levels::Selection());
    const bool leads = placement_->leads_host();
    if (leads && placement_->segment().size() > 1) make_engine(welcome);
    levels::SiteConfig config;
    config.key = key_;
    config.epoch = epoch_;
    config.message_bytes = kMessageBytes;
    config.algorithm = map_->policy().algorithms.at(topology::Level::wan);
    config.within_algorithm = map_->policy().algorithms.at(topology::Level::site);
    site_level_ = std::make_unique<levels::SiteLevel>(*placement_, config);
    site_level_->start(now);
    if (placement_->hosts() > 1) make_exchange();
    make_conductor();
    if (engine_) engine_->start(now);
    if (placement_->host().size() == 1) return;
    leader_point_ = welcome.peers[placement_->host().front()].watch_point;
    make_team(now);
}

void Group::make_conductor() {
    conductor_ = std::make_unique<levels::Conductor>(
        *placement_,
        std::array<levels::Level*, levels::kLevels>{host_level_.get(), segment_level_.get(),
                                                    site_level_.get(), exchange_level_.get()},
        kMostOpen, selection_);
}

void Group::make_exchange() {
    levels::ExchangeConfig config;
    config.key = key_;
    config.epoch = epoch_;
    config.self = index_of(plan_.self);
    config.members = placement_->members();
    config.message_bytes = kMessageBytes;
    exchange_level_ = std::make_unique<levels::ExchangeLevel>(config);
}

void Group::make_engine(const wire::Welcome& welcome) {
    join_address(welcome);
    engine::GroupConfig config;
    config.self = rank_of(placement_->segment_self());
    config.members = static_cast<std::uint32_t>(placement_->segment().size());
    const std::uint64_t site = placement_->site_of(placement_->self());
    config.key = static_cast<GroupKey>(static_cast<std::uint64_t>(key_) + site);
    config.epoch = epoch_;
    config.fragment_bytes = welcome.fragment_bytes;
    // What goes without reports: several of them must fit into the receivers' buffers.
    const std::uint64_t room = std::uint64_t{welcome.window} * welcome.fragment_bytes;
    config.stash_bytes =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room / 8, config.stash_bytes, kMostStash));
    config.stash_bytes = std::max(config.stash_bytes, welcome.fragment_bytes);
    config.window = welcome.window;
    config.initial_window = std::min(config.initial_window, welcome.window);
    config.repair = agreed_.repair;
    config.channels = agreed_.channels;
    config.root_sync = agreed_.root_sync;
    config.root_delay = Nanoseconds::from_us(agreed_.root_delay_us);
    config.memory = {map_pages, unmap_pages};
    config.gather_bytes = kMostGathered;
    config.message_bytes = kMessageBytes;
    config.multicast = !outlets_.empty();
    // Any other algorithm than the multicast is a tree of messages here, and the engine's are k-ary.
    const topology::Algorithm algorithm = map_->policy().algorithms.at(topology::Level::segment);
    if (algorithm.shape().name != "multicast") {
        config.multicast = false;
        no_multicast_ = fmt::format("FI_MCASTCOLL_TOPOLOGY={}@segment", algorithm.name());
        config.tree_arity = config.large_tree_arity = arity_of(algorithm);
    }
    config.ranges = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(welcome.group_addresses.size()));
    for (const std::uint32_t rank : placement_->segment()) config.range_of.push_back(welcome.range_of[rank]);
    config.relay = address_plan_ == engine::Plan::tree;
    if (config.members > 64) config.probes = 2;
    if (const int seconds = station_.settings().stall_timeout_s; seconds > 0)
        config.stall_timeout = Nanoseconds::from_ms(std::int64_t{1000} * seconds);
    engine_ = std::make_unique<engine::Engine>(config);
    segment_level_ = std::make_unique<levels::SegmentLevel>(*engine_, kMostOpen);
}

// Who knows the leader's process and the group's key knows the name; others can find what a crash leaves
// behind.
std::string Group::team_name() const {
    const auto leader = decode_watch_point(leader_point_);
    return host::Segment::name_of(
        leader ? leader.value().pid : 0, leader ? leader.value().start_time : 0,
        fmt::format("{:016x}{:08x}", static_cast<std::uint64_t>(key_), static_cast<std::uint32_t>(epoch_)));
}

// The leader's exists at once; the others look for it until it is there or the join's time is over.
void Group::make_team(Nanoseconds now) {
    attach_at_ = kNever;
    host::TeamConfig config;
    config.name = team_name();
    config.key = static_cast<std::uint64_t>(key_);
    config.self = placement_->host_self();
    config.size = static_cast<std::uint32_t>(placement_->host().size());
    config.clusters = group::clusters_in_host(*map_, placement_->host());
    auto team = placement_->leads_host() ? host::Team::create(config) : host::Team::attach(config);
    if (!team) {
        const bool not_yet = team.error().code == ENOENT || team.error().code == EAGAIN;
        if (!placement_->leads_host() && not_yet) {
            attach_at_ = now + kAttachInterval;
            return;
        }
        station_.log(Level::warn, "{}: no shared memory with {} other processes of this host: {}", name(),
                     config.size - 1, team.error().message);
        return fail_group(team.error().code, kNoRank, now);
    }
    host_level_ = std::make_unique<HostLevel>(std::move(team).value(), kMostOpen);
    try {
        make_conductor();
    } catch (...) {
        // The conductor there is knows nothing of it.
        host_level_.reset();
        attach_at_ = now + kAttachInterval;
        throw;
    }
}

// A join over several levels ends with a barrier over all of them.
void Group::check_formed(Nanoseconds now) {
    if (error_ != 0 || (engine_ && !engine_joined_)) return;
    if (!has_levels()) return on_joined();
    if (join_posted_ || !site_level_->greeted() || (placement_->host().size() > 1 && !host_level_)) return;
    join_posted_ = true;
    levels::Request barrier;
    barrier.kind = levels::Kind::barrier;
    barrier.cookie = kJoinCookie;
    if (const int error = conductor_->submit(barrier, now); error != 0)
        return fail_group(error, kNoRank, now);
    move(now);
}

void Group::on_joined() {
    joined_ = true;
    shortcut_ = host_level_ && placement_->hosts() == 1 && station_.settings().stall_timeout_s == 0;
    station_.groups_changed();
    explain_join();
    station_.report_join(mc_.fid, 0);
}

// What goes between sites, and among all members; true if anything did.
bool Group::move_messages(Nanoseconds now) {
    bool moved = false;
    const auto send_all = [&](auto& level) {
        for (levels::Outgoing message; station_.messenger().can_send() && level.poll_outgoing(message);) {
            station_.messenger().send(members_[message.to].messenger_peer, message.header, message.payload);
            moved = true;
        }
        for (std::uint32_t rank; level.poll_watch(rank);)
            station_.watch(members_[rank].messenger_peer, members_[rank].watch_point, now);
    };
    send_all(*site_level_);
    if (exchange_level_) send_all(*exchange_level_);
    return moved;
}

void Group::take_completions(Nanoseconds now) {
    for (levels::Completion done; conductor_->take_completion(done);) {
        if (done.cookie == kJoinCookie) {
            if (done.error == 0 && !ended_) on_joined();
            continue;
        }
        const auto cookie = static_cast<std::uint32_t>(done.cookie);
        const Pending pending = std::exchange(pending_[cookie], {});
        if (pending.copies && done.error == 0) pending.copies->deliver();
        free_pending_.push_back(cookie);
        --outstanding_;
        if (pending.over != nullptr)
            *pending.over = done.error;
        else
            station_.complete(pending.context, pending.flags, done.error);
    }
    // A level can fail by itself: the host's when a process dies.
    if (conductor_->error() != 0 && error_ == 0) fail_group(conductor_->error(), lost_here(), now);
}

// The process of this host whose death the shared memory tells of.
Rank Group::lost_here() const {
    if (!host_level_ || host_level_->team().lost() >= placement_->host().size()) return kNoRank;
    return rank_of(placement_->host()[host_level_->team().lost()]);
}

// When operations that came no further have waited too long. The engine sees to its own members; where there
// is one it knows better who is late, so the patience of the others is longer.
Nanoseconds Group::stall_at() const {
    const int seconds = station_.settings().stall_timeout_s;
    const bool ours = host_level_ || (exchange_level_ && exchange_level_->busy());
    if (seconds == 0 || outstanding_ == 0 || !ours || error_ != 0) return kNever;
    const std::int64_t patience_ms = std::int64_t{seconds} * (placement_->hosts() == 1 ? 1000 : 1500);
    return moved_at_ + Nanoseconds::from_ms(patience_ms);
}

void Group::check_stall(Nanoseconds now) {
    if (stall_at() > now) return;
    const std::uint32_t far = exchange_level_ ? exchange_level_->awaited() : levels::kNotThere;
    const std::uint32_t near = host_level_ ? host_level_->team().awaited() : levels::kNotThere;
    Rank late = kNoRank;
    if (far != levels::kNotThere)
        late = rank_of(far);
    else if (near < placement_->host().size())
        late = rank_of(placement_->host()[near]);
    fail_group(FI_ETIMEDOUT, late, now);
}

// Once, whoever finds out first: all levels that this member has part in end, and each tells its own.
void Group::fail_group(int error, Rank lost, Nanoseconds now) {
    if (error_ != 0) return;
    error_ = error;
    shortcut_ = false;
    attach_at_ = kNever;
    station_.groups_changed();
    succeeds([&] {
        station_.log(Level::warn, "{}: failed: {}{}", name(), fi_strerror(error), describe_loss(error, lost));
    });
    end_levels(error, lost, now);
    if (!joined_) return end_join(error);
    if (!closed_) station_.report_failure(mc_.fid, error, lost);
}

// Each step for itself: it may be for want of memory that the group ends.
void Group::end_levels(int error, Rank lost, Nanoseconds now) {
    if (host_level_) {
        const auto& here = placement_->host();
        const auto found = std::find(here.begin(), here.end(), index_of(lost));
        if (found != here.end())
            host_level_->team().fail(error, static_cast<std::uint32_t>(found - here.begin()));
    }
    succeeds([&] { conductor_->fail(error, now); });
    succeeds([&] { tell_others(error, lost); });
    succeeds([&] { take_completions(now); });
    succeeds([&] { carry_out(now); });
}

void Group::break_down(int error, Nanoseconds now) noexcept {
    touched_ = true;
    unfinished_ = false;
    if (formed())
        fail_group(error, kNoRank, now);
    else
        end_join(error);
    // Their buffers are the application's again.
    queue_.forget_payloads();
}

void Group::tell_others(int error, Rank lost) {
    std::vector<fi_addr_t> peers;
    for (const std::uint32_t rank : group::whom_to_tell(*placement_, lost, joined_))
        peers.push_back(members_[rank].messenger_peer);
    station_.messenger().tell(std::move(peers),
                              wire::encode(wire::Ended{plan_.id, static_cast<std::uint32_t>(error), lost}));
}

void Group::add_counters(engine::Counters& sum, LevelCounters& levels) const {
    if (engine_) {
        engine::Counters own = engine_->counters();
        own.bad_sender += wrong_source_;
        engine::add(sum, own);
    }
    if (host_level_) {
        const host::TeamCounters& own = host_level_->team().counters();
        levels.host_operations += own.operations;
        levels.host_single_copies += own.single_copies;
        levels.host_sleeps += own.sleeps;
    }
    if (conductor_) {
        const levels::PlanCounters& own = conductor_->counters();
        levels.plans_reduction += own.reductions;
        levels.plans_chains += own.chains;
        levels.plans_split += own.splits;
        levels.block_bytes_broadcast += own.block_bytes_broadcast;
    }
    if (site_level_) {
        const levels::CourierCounters& own = site_level_->counters();
        levels.site_pieces_sent += own.pieces_sent;
        levels.site_bytes_sent += own.bytes_sent;
        levels.site_bad_pieces += own.bad_pieces;
    }
    if (exchange_level_) {
        const levels::CourierCounters& own = exchange_level_->counters();
        levels.exchange_pieces_sent += own.pieces_sent;
        levels.exchange_bytes_sent += own.bytes_sent;
        levels.exchange_bad_pieces += own.bad_pieces;
    }
}

topology::ReportedGroup Group::report() const {
    topology::ReportedGroup report;
    report.key = static_cast<std::uint64_t>(key_);
    report.rank = plan_.self;
    for (const wire::ByteString& place : places_) report.places.push_back(group::decode_place(place));
    report.policy = map_->policy();
    report.state = error_ != 0 ? fmt::format("failed: {}", fi_strerror(error_))
                   : joined_   ? "ready"
                               : "forming";
    report.levels = topology::describe_levels(*map_);
    for (topology::ReportedLevel& level : report.levels) {
        if (level.level == topology::Level::host && host_level_) {
            level.lane = "shared memory";
            level.why = host_level_->team().explain();
        } else if (level.level == topology::Level::segment && engine_ && engine_joined_) {
            const std::size_t hearing = engine_->graph().hearing_count();
            level.lane = hearing > 0 ? "multicast" : "messages";
            level.algorithm = std::string(engine::name_of(engine_->config().repair));
            level.why = no_multicast_.empty() ? fmt::format("multicast {} reaches {} of {} hosts",
                                                            lane_name(), hearing, engine_->config().members)
                                              : no_multicast_;
        } else if (level.level == topology::Level::wan && placement_->sites().size() > 1) {
            level.lane = "messages";
            level.algorithm = std::string(site_level_->algorithm());
        }
    }
    return report;
}

std::string Group::describe_levels() const {
    std::string text;
    if (placement_->host().size() > 1)
        text += fmt::format("; {} processes of this host by shared memory, led by rank {}",
                            placement_->host().size(), placement_->host().front());
    if (has_levels() && placement_->segment().size() > 1)
        text += fmt::format("; {} hosts of this site by multicast, led by rank {}",
                            placement_->segment().size(), placement_->segment().front());
    if (placement_->sites().size() > 1)
        text += fmt::format("; {} sites by messages", placement_->sites().size());
    return text;
}

}  // namespace mcastcoll::ofi
