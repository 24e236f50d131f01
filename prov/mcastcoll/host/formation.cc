#include "host/formation.h"

#include <errno.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>

#include "base/system.h"
#include "host/collectives.h"
#include "host/process.h"

namespace mcastcoll::host {
namespace {

constexpr std::uint32_t kMaxSlotBytes = 64 * 1024;

Result<void> check(const TeamConfig& config) {
    if (config.size < 1 || config.size > kMaxMembers)
        return Error{config.size < 1 ? EINVAL : E2BIG,
                     fmt::format("a team has 1 to {} members, not {}", kMaxMembers, config.size)};
    if (config.self >= config.size)
        return Error{EINVAL, fmt::format("member {} of {} does not exist", config.self, config.size)};
    if (config.slots != 0 && (config.slots < 2 || config.slots > kLines))
        return Error{EINVAL, fmt::format("a member has 2 to {} slots, not {}", kLines, config.slots)};
    if (config.slot_bytes > kMaxSlotBytes || config.slot_bytes % kLineBytes != 0)
        return Error{EINVAL, fmt::format("a slot has a multiple of {} bytes up to {}, not {}", kLineBytes,
                                         kMaxSlotBytes, config.slot_bytes)};
    if (!config.clusters.empty() && config.clusters.size() != config.size)
        return Error{EINVAL, fmt::format("the clusters of {} members are given, but the team has {}",
                                         config.clusters.size(), config.size)};
    return {};
}

CoreSet own_cores() {
    static_assert(kCores == CPU_SETSIZE);
    CoreSet cores{};
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (unsigned core = 0; core < kCores; ++core)
        if (CPU_ISSET(core, &set)) cores[core / 64] |= std::uint64_t{1} << core % 64;
    return cores;
}

std::uint32_t current_core() {
    return static_cast<std::uint32_t>(::sched_getcpu());
}

Result<Formation::Found> make_segment(const TeamConfig& config) {
    const std::uint32_t slots = config.slots != 0 ? config.slots : 8;
    const auto spare = Segment::spare();
    if (!spare) return spare.error();
    const std::uint32_t slot_bytes =
        config.slot_bytes != 0 ? config.slot_bytes : slot_bytes_for(config.size, slots, spare.value());
    const Shape shape{config.size, slots, slot_bytes};
    const std::size_t rings = Rings::bytes_for(shape);
    auto segment = Segment::create(config.name, rings + config.table.size());
    if (!segment) return segment.error();
    std::ranges::copy(config.table, segment.value()->data() + rings);
    Header& header = *reinterpret_cast<Header*>(segment.value()->data());
    header.key = config.key;
    header.layout = kLayout;
    header.size = config.size;
    header.slots = slots;
    header.slot_bytes = slot_bytes;
    header.magic.store(kMagic, std::memory_order_release);
    return Formation::Found{std::move(segment).value(), shape};
}

// Reads a value exactly once, because another process may be overwriting it.
std::uint32_t once(const std::uint32_t& number) {
    return *static_cast<const volatile std::uint32_t*>(&number);
}

}  // namespace

Result<Shape> Formation::shape_of(const Segment& segment, std::uint64_t key) {
    const Header& header = *reinterpret_cast<const Header*>(segment.data());
    const std::uint64_t magic = header.magic.load(std::memory_order_acquire);
    if (magic == 0) return Error{EAGAIN, fmt::format("{} is still being created", segment.name())};
    if (magic != kMagic || header.layout != kLayout)
        return Error{EPROTO, fmt::format("{} is not the memory of a team of this version", segment.name())};
    if (header.key != key)
        return Error{EPROTO, fmt::format("{} belongs to another team: its key differs", segment.name())};
    const Shape shape{once(header.size), once(header.slots), once(header.slot_bytes)};
    if (shape.members < 1 || shape.members > kMaxMembers || shape.slots < 2 || shape.slots > kLines ||
        shape.slot_bytes % kLineBytes != 0 || shape.slot_bytes == 0 || shape.slot_bytes > kMaxSlotBytes ||
        segment.bytes() < Rings::bytes_for(shape))
        return Error{EPROTO, fmt::format("{} does not have the size that its header gives", segment.name())};
    return shape;
}

Result<Formation::Found> Formation::open_segment(const TeamConfig& config) {
    if (auto checked = check(config); !checked) return checked.error();
    if (config.self == 0) return make_segment(config);
    auto found =
        config.segment ? look_into(config.segment, config.key) : find_segment(config.name, config.key);
    if (found && found.value().shape.members != config.size)
        return Error{EPROTO,
                     fmt::format("{} belongs to another team: {} members instead of {}",
                                 found.value().segment->name(), found.value().shape.members, config.size)};
    return found;
}

Result<Formation::Found> Formation::find_segment(const std::string& name, std::uint64_t key) {
    auto segment = Segment::open(name, sizeof(Header));
    if (!segment) return segment.error();
    return look_into(segment.value(), key);
}

Result<Formation::Found> Formation::look_into(const std::shared_ptr<Segment>& segment, std::uint64_t key) {
    const auto shape = shape_of(*segment, key);
    if (!shape) return shape.error();
    return Found{segment, shape.value()};
}

std::span<const std::byte> Formation::table_of(const Found& found) {
    const std::size_t rings = Rings::bytes_for(found.shape);
    return {found.segment->data() + rings, found.segment->bytes() - rings};
}

Formation::Formation(const TeamConfig& config, const Found& found)
    : config_(config), found_(found), header_(*reinterpret_cast<Header*>(found_.segment->data())) {
    if (config_.self != 0) config_.clusters = {};
}

Result<void> Formation::arrive(Rings& rings) {
    MemberRecord& record = rings.record(config_.self);
    Stage none = Stage::absent;
    if (!record.stage.compare_exchange_strong(none, Stage::arriving, std::memory_order_acq_rel))
        return Error{EADDRINUSE,
                     fmt::format("{} already has a member {}", found_.segment->name(), config_.self)};
    if (auto drawn = kernel_random(std::as_writable_bytes(std::span(&nonce_, 1))); !drawn)
        return drawn.error();
    const Process self = this_process();
    record.pid = self.pid;
    record.start_time = self.start_time;
    record.nonce = nonce_;
    record.nonce_address = reinterpret_cast<std::uintptr_t>(&nonce_);
    record.cores = own_cores();
    record.credentials = config_.size > Memories::kMaxAllMet ? own_credentials() : 0;
    record.slots_address = reinterpret_cast<std::uintptr_t>(rings.slots_of(config_.self));
    record.has_membarrier.store(Alarm::enroll() ? 1 : 0, std::memory_order_relaxed);
    rings.enter();
    record.stage.store(Stage::attached, std::memory_order_seq_cst);
    // If several members arrive last at the same time, at least one of them sees the complete team and rings
    // all bells. No member can continue before that.
    if (all_are_at(Stage::attached, rings)) {
        found_.segment->unlink();
        rings.alarm.ring_all();
    }
    return {};
}

void Formation::leave(Rings& rings) {
    rings.record(config_.self).stage.store(Stage::left, std::memory_order_seq_cst);
    if (state_ != State::over && config_.self == 0) found_.segment->unlink();
    rings.alarm.published();
}

bool Formation::all_are_at(Stage stage, Rings& rings) {
    if (counted_ != stage) counted_at_ = 0;
    counted_ = stage;
    for (; counted_at_ < config_.size; ++counted_at_) {
        if (rings.record(counted_at_).stage.load(std::memory_order_seq_cst) >= stage) continue;
        rings.await(counted_at_);
        return false;
    }
    return true;
}

void Formation::probe(Context& c) {
    const bool can_copy = config_.single_copy && c.memories.can_read_all(c.self, c.size);
    MemberRecord& record = c.rings.record(c.self);
    // The measurement needs the slots in this core's cache, like data being sent.
    if (c.self == 1)
        std::memset(c.rings.slots_of(1), 1,
                    std::min<std::size_t>(c.rings.slots() * c.rings.slot_bytes(), kMeasuredBytes));
    record.filled_on = current_core();
    record.can_copy.store(can_copy ? 1 : 0, std::memory_order_relaxed);
    record.stage.store(Stage::probed, std::memory_order_seq_cst);
    state_ = State::probed;
    // Member 0 waits for all.
    if (all_are_at(Stage::probed, c.rings)) c.rings.alarm.ring_all();
}

// Measures copies between members 0 and 1, which represent all pairs. If both run on the same core, as on a
// busy machine, the result would describe one core's cache.
CopyCosts Formation::measure_costs(Context& c) const {
    if (c.size < 2 || header_.agreement.crowded != 0 || header_.agreement.single_copy == 0) return {};
    const MemberRecord& record = c.rings.record(1);
    if (record.filled_on == current_core()) return {};
    return measure_copies(c.memories.of(1), {c.rings.slots_of(1), c.rings.slots() * c.rings.slot_bytes()},
                          record.slots_address);
}

// Called on member 0.
void Formation::agree(Context& c) {
    Agreement& agreement = header_.agreement;
    CoreSet cores{};
    bool single_copy = true, membarrier = true;
    for (std::uint32_t member = 0; member < c.size; ++member) {
        const MemberRecord& record = c.rings.record(member);
        for (std::size_t i = 0; i < cores.size(); ++i) cores[i] |= record.cores[i];
        single_copy = single_copy && record.can_copy.load(std::memory_order_relaxed) != 0;
        membarrier = membarrier && record.has_membarrier.load(std::memory_order_relaxed) != 0;
    }
    for (const std::uint64_t word : cores) agreement.cores += static_cast<std::uint32_t>(std::popcount(word));
    agreement.crowded = config_.crowding == TeamConfig::Crowding::measured
                            ? c.size > agreement.cores
                            : config_.crowding == TeamConfig::Crowding::crowded;
    agreement.single_copy = single_copy;
    agreement.membarrier = membarrier;
    agreement.costs = measure_costs(c);
    Thresholds& chosen = agreement.thresholds;
    chosen = thresholds(c.size, agreement.crowded != 0, c.rings.slot_bytes(), agreement.costs);
    for (const auto from :
         {&Thresholds::single_copy_from, &Thresholds::both_copy_from, &Thresholds::share_from,
          &Thresholds::blocks_direct_from, &Thresholds::reduce_direct_from})
        if (config_.thresholds.*from != 0) chosen.*from = config_.thresholds.*from;
    agreement.reduce_by_shares = config_.thresholds.share_from != 0;
    const Clusters::Ids leaders = Clusters::choose_leaders(
        agreement.crowded != 0 ? std::vector<Clusters::Ids>{} : config_.clusters, c.size);
    for (std::uint32_t member = 0; member < c.size; ++member) c.rings.record(member).leader = leaders[member];
    config_.clusters = {};
    agreement.ready.store(1, std::memory_order_release);
    c.rings.alarm.published();
}

void Formation::adopt(Context& c) {
    c.bounds = bounds_of(header_.agreement, c.size, c.rings.slot_bytes());
    Clusters::Ids leaders;
    for (std::uint32_t member = 0; member < c.size; ++member)
        leaders.push_back(c.rings.record(member).leader);
    c.clusters = Clusters::of(c.self, leaders);
    c.rings.alarm.use_membarrier(header_.agreement.membarrier != 0);
    state_ = State::over;
}

bool Formation::advance(Context& c) {
    if (state_ == State::arrived) {
        if (!all_are_at(Stage::attached, c.rings)) return false;
        probe(c);
    }
    if (header_.agreement.ready.load(std::memory_order_acquire) == 0) {
        if (c.self != 0) return c.rings.await(0), false;
        if (!all_are_at(Stage::probed, c.rings)) return false;
        agree(c);
    }
    adopt(c);
    return true;
}

std::string Formation::explain(const Context& c) const {
    const std::string& name = found_.segment->name();
    if (!is_over()) return fmt::format("team {}: {} members, not all here", name, c.size);
    const Agreement& agreement = header_.agreement;
    const Bounds& bounds = c.bounds;
    const auto from = [](std::size_t bytes) {
        return bytes == SIZE_MAX ? std::string("never") : fmt::format("from {} bytes on", bytes);
    };
    std::string text = fmt::format(
        "team {}: {} members on {} cores ({}), {} KiB shared, {} slots of {} bytes for each member; "
        "broadcasts up to {} bytes beside the flag, larger ones through slots; direct copies between "
        "processes: broadcasts {}, broadcasts copied by root and receiver {}, blocks {}, allreduce and "
        "reduce_scatter {}; allreduces by shares from {} bytes on; barriers {}; sleeping members {}",
        name, c.size, agreement.cores,
        bounds.crowded ? "more processes than cores: waiters yield" : "a core for each process: waiters spin",
        found_.segment->bytes() / 1024, c.rings.slots(), c.rings.slot_bytes(), kInlineBytes,
        from(bounds.single_copy_from), from(bounds.both_copy_from), from(bounds.from(Kind::gather)),
        from(bounds.from(Kind::allreduce)), bounds.share_from,
        c.clusters.leaders.empty() ? std::string(c.size > kMaxFlat ? "through the first member" : "flat")
                                   : fmt::format("through {} leaders of clusters", c.clusters.leaders.size()),
        agreement.membarrier != 0 ? "use membarrier" : "cost the others a fence per message");
    if (bounds.single_copy_from == SIZE_MAX)
        return text +
               "; no direct copies, because the kernel or the settings forbid copying between processes";
    const CopyCosts& costs = agreement.costs;
    if (costs.measured == 0) return text + "; sizes by rule, not measured";
    return text +
           fmt::format(
               "; sizes from measurement: a direct copy takes {:.2f} us and {:.3f} us per KiB, a copy into "
               "a slot {:.3f} and out of a slot {:.3f} us per KiB",
               costs.call_ns * 1e-3, costs.direct_ns_per_kib * 1e-3, costs.in_ns_per_kib * 1e-3,
               costs.out_ns_per_kib * 1e-3);
}

}  // namespace mcastcoll::host
