// How a team comes to be: the segment, everybody's card in it, and what all must agree on.
//
// Stages, each told by every member in its card: attached (who I am), probed (whom I can copy from). When all
// have attached, the segment's name is removed, so that a crash leaves nothing behind; when all have probed,
// member 0 writes down what everybody goes by. Nobody waits: operations that are posted before wait in the
// queue.
#include <errno.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/clock.h"
#include "base/system.h"
#include "host/calibration.h"
#include "host/liveness.h"
#include "host/team.h"

namespace mcastcoll::host {
namespace {

constexpr std::uint32_t kMaxSlotBytes = 64 * 1024;

std::size_t round_up(std::size_t value, std::size_t to) {
    return (value + to - 1) / to * to;
}

// A member's areas, beginning on a page of their own, so that they can lie in its own NUMA node.
std::size_t member_bytes(std::uint32_t slots, std::uint32_t slot_bytes) {
    return round_up(sizeof(MemberArea) + std::size_t{slots} * slot_bytes, 4096);
}

std::size_t segment_bytes(std::uint32_t size, std::uint32_t slots, std::uint32_t slot_bytes) {
    return sizeof(Header) + size * member_bytes(slots, slot_bytes);
}

Result<void> check(const TeamConfig& config) {
    if (config.size < 1 || config.size > kMaxMembers)
        return Error{EINVAL, fmt::format("a team has 1 to {} members, not {}", kMaxMembers, config.size)};
    if (config.self >= config.size)
        return Error{EINVAL, fmt::format("there is no member {} of {}", config.self, config.size)};
    if (config.slots != 0 && (config.slots < 2 || config.slots > kLines))
        return Error{EINVAL, fmt::format("a member has 2 to {} slots, not {}", kLines, config.slots)};
    if (config.slot_bytes > kMaxSlotBytes || config.slot_bytes % kLineBytes != 0)
        return Error{EINVAL, fmt::format("a slot has a multiple of {} bytes up to {}, not {}", kLineBytes,
                                         kMaxSlotBytes, config.slot_bytes)};
    if (!config.clusters.empty() && config.clusters.size() != config.size)
        return Error{EINVAL, fmt::format("the clusters of {} members are told, not of {}",
                                         config.clusters.size(), config.size)};
    return {};
}

std::array<std::uint64_t, 8> own_cores() {
    std::array<std::uint64_t, 8> cores{};
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (unsigned core = 0; core < 512; ++core)
        if (CPU_ISSET(core, &set)) cores[core / 64] |= std::uint64_t{1} << core % 64;
    return cores;
}

std::uint32_t current_core() {
    return static_cast<std::uint32_t>(::sched_getcpu());
}

}  // namespace

Result<std::unique_ptr<Team>> Team::create(const TeamConfig& config) {
    if (auto checked = check(config); !checked) return checked.error();
    if (config.self != 0) return Error{EINVAL, fmt::format("member 0 makes the team, not {}", config.self)};
    // Small teams are many, large ones few: tens of KiB for two members, less than a MiB for sixteen.
    const std::uint32_t slots = config.slots != 0 ? config.slots : 8;
    const std::uint32_t slot_bytes = config.slot_bytes != 0 ? config.slot_bytes
                                     : config.size <= 8     ? 8192
                                     : config.size <= 16    ? 6144
                                                            : 4096;
    auto segment = Segment::create(config.name, segment_bytes(config.size, slots, slot_bytes));
    if (!segment) return segment.error();
    Header& header = *reinterpret_cast<Header*>(segment.value()->data());
    header.key = config.key;
    header.layout = kLayout;
    header.size = config.size;
    header.slots = slots;
    header.slot_bytes = slot_bytes;
    header.magic.store(kMagic, std::memory_order_release);
    std::unique_ptr<Team> team(new Team(config, std::move(segment).value()));
    if (auto written = team->write_card(); !written) {
        team->segment_->unlink();
        return written.error();
    }
    return team;
}

Result<std::unique_ptr<Team>> Team::attach(const TeamConfig& config) {
    if (auto checked = check(config); !checked) return checked.error();
    if (config.self == 0) return Error{EINVAL, "member 0 makes the team, it does not attach"};
    std::shared_ptr<Segment> segment = config.segment;
    if (!segment) {
        auto opened = Segment::open(config.name, sizeof(Header));
        if (!opened) return opened.error();
        segment = std::move(opened).value();
    }
    const Header& header = *reinterpret_cast<const Header*>(segment->data());
    const std::uint64_t magic = header.magic.load(std::memory_order_acquire);
    if (magic == 0) return Error{EAGAIN, fmt::format("{} is still being made", segment->name())};
    if (magic != kMagic || header.layout != kLayout)
        return Error{EPROTO, fmt::format("{} is no team's memory of this version", segment->name())};
    if (header.key != config.key || header.size != config.size)
        return Error{EPROTO, fmt::format("{} is another team's: {} members instead of {}, or another key",
                                         segment->name(), header.size, config.size)};
    if (header.slots < 2 || header.slots > kLines || header.slot_bytes % kLineBytes != 0 ||
        header.slot_bytes == 0 || header.slot_bytes > kMaxSlotBytes ||
        segment->bytes() < segment_bytes(header.size, header.slots, header.slot_bytes))
        return Error{EPROTO, fmt::format("{} has not the size that it says", segment->name())};
    std::unique_ptr<Team> team(new Team(config, std::move(segment)));
    if (auto written = team->write_card(); !written) return written.error();
    return team;
}

Team::Team(const TeamConfig& config, std::shared_ptr<Segment> segment)
    : config_(config),
      segment_(std::move(segment)),
      header_(*reinterpret_cast<Header*>(segment_->data())),
      alarm_(header_),
      self_(config.self),
      size_(config.size),
      slots_(header_.slots),
      slot_bytes_(header_.slot_bytes),
      peers_(config.size) {
    std::byte* at = segment_->data() + sizeof(Header);
    for (Peer& peer : peers_) {
        auto* area = reinterpret_cast<MemberArea*>(at);
        peer = {&area->card, &area->left, area->lines.data(), at + sizeof(MemberArea), {}};
        at += member_bytes(header_.slots, header_.slot_bytes);
    }
}

Result<void> Team::write_card() {
    Card& card = *peers_[self_].card;
    Stage none = Stage::absent;
    if (!card.stage.compare_exchange_strong(none, Stage::arriving, std::memory_order_acq_rel))
        return Error{EADDRINUSE, fmt::format("{} has a member {} already", segment_->name(), self_)};
    if (auto drawn = kernel_random(std::as_writable_bytes(std::span(&witness_, 1))); !drawn)
        return drawn.error();
    const Process self = this_process();
    card.pid = self.pid;
    card.start_time = self.start_time;
    card.witness = witness_;
    card.witness_address = reinterpret_cast<std::uintptr_t>(&witness_);
    card.cores = own_cores();
    card.slots_address = reinterpret_cast<std::uintptr_t>(peers_[self_].slots);
    card.has_membarrier.store(Alarm::enroll() ? 1 : 0, std::memory_order_relaxed);
    peers_[self_].left->step.store(step_, std::memory_order_relaxed);
    card.stage.store(Stage::attached, std::memory_order_seq_cst);
    // Of those who come last at the same time at least one sees that all are here.
    if (all_are_at(Stage::attached)) segment_->unlink();
    alarm_.published();
    return {};
}

bool Team::all_are_at(Stage stage) {
    for (std::uint32_t member = 0; member < size_; ++member)
        if (peers_[member].card->stage.load(std::memory_order_seq_cst) < stage) {
            blocker_ = member;
            return false;
        }
    return true;
}

void Team::probe_peers() {
    bool can_copy = config_.single_copy;
    for (std::uint32_t member = 0; member < size_; ++member) {
        Peer& peer = peers_[member];
        peer.memory = {peer.card->pid, peer.card->witness_address, peer.card->witness};
        if (member != self_ && can_copy) can_copy = can_copy_from(peer.memory);
    }
    // For the measurement: in this core's cache, as what is just being sent.
    Card& card = *peers_[self_].card;
    if (self_ == 1) std::memset(peers_[1].slots, 1, slots_ * slot_bytes_);
    card.filled_on = current_core();
    card.can_copy.store(can_copy ? 1 : 0, std::memory_order_relaxed);
    card.stage.store(Stage::probed, std::memory_order_release);
    probed_ = true;
    alarm_.published();
}

// What copies between members 0 and 1 cost, who stand for all. On one and the same core, as on a busy
// machine, it would be what one core's cache does.
CopyCosts Team::measure_costs() const {
    if (size_ < 2 || header_.agreement.crowded != 0 || header_.agreement.single_copy == 0) return {};
    const Peer& peer = peers_[1];
    if (peer.card->filled_on == current_core()) return {};
    return measure_copies(peer.memory, {peer.slots, slots_ * slot_bytes_}, peer.card->slots_address);
}

void Team::agree() {
    Agreement& agreement = header_.agreement;
    std::array<std::uint64_t, 8> cores{};
    bool single_copy = true, membarrier = true;
    for (const Peer& peer : peers_) {
        for (std::size_t i = 0; i < cores.size(); ++i) cores[i] |= peer.card->cores[i];
        single_copy = single_copy && peer.card->can_copy.load(std::memory_order_relaxed) != 0;
        membarrier = membarrier && peer.card->has_membarrier.load(std::memory_order_relaxed) != 0;
    }
    int core_count = 0;
    for (const std::uint64_t word : cores) core_count += std::popcount(word);
    agreement.cores = static_cast<std::uint32_t>(core_count);
    agreement.crowded = config_.crowding == TeamConfig::Crowding::measured
                            ? size_ > agreement.cores
                            : config_.crowding == TeamConfig::Crowding::crowded;
    agreement.single_copy = single_copy;
    agreement.membarrier = membarrier;
    const CopyCosts costs = measure_costs();
    const auto picoseconds = [](double ns) { return static_cast<std::uint32_t>(std::min(ns * 1e3, 4e9)); };
    agreement.call_ps = picoseconds(costs.call_ns);
    agreement.direct_ps_per_kib = picoseconds(costs.direct_ns_per_kib);
    agreement.in_ps_per_kib = picoseconds(costs.in_ns_per_kib);
    agreement.out_ps_per_kib = picoseconds(costs.out_ns_per_kib);
    const std::uint32_t cores_to_use = std::max(1U, agreement.cores);
    const std::uint32_t per_core = (size_ + cores_to_use - 1) / cores_to_use;
    const Thresholds found =
        thresholds(size_, agreement.crowded != 0 ? std::max(2U, per_core) : 1, slot_bytes_, costs);
    agreement.single_copy_from =
        config_.single_copy_from != 0 ? config_.single_copy_from : found.single_copy_from;
    agreement.both_copy_from = config_.both_copy_from != 0 ? config_.both_copy_from : found.both_copy_from;
    agreement.blocks_direct_from =
        config_.blocks_direct_from != 0 ? config_.blocks_direct_from : found.blocks_direct_from;
    agreement.reduce_direct_from =
        config_.reduce_direct_from != 0 ? config_.reduce_direct_from : found.reduce_direct_from;
    choose_leaders();
    agreement.reduce_by_shares = config_.share_from != 0;
    agreement.share_from = config_.share_from != 0 ? config_.share_from : found.share_from;
    agreement.ready.store(1, std::memory_order_release);
    alarm_.published();
}

void Team::adopt_agreement() {
    const Agreement& agreement = header_.agreement;
    backoff_.use(agreement.crowded != 0);
    single_copy_from_ = agreement.single_copy != 0
                            ? std::max<std::size_t>(agreement.single_copy_from, kInlineBytes + 1)
                            : SIZE_MAX;
    both_copy_from_ = size_ == 2 && single_copy_from_ != SIZE_MAX
                          ? std::max<std::size_t>(agreement.both_copy_from, single_copy_from_)
                          : SIZE_MAX;
    const auto direct_from = [&](std::uint64_t from) {
        return agreement.single_copy != 0 ? std::max<std::size_t>(from, kInlineBytes + 1) : SIZE_MAX;
    };
    blocks_direct_from_ = direct_from(agreement.blocks_direct_from);
    reduce_direct_from_ = direct_from(agreement.reduce_direct_from);
    adopt_leaders();
    // What is not computed by shares must fit in one slot.
    share_from_ = std::min<std::size_t>(agreement.share_from, slot_bytes_ + 1);
    reduce_whole_ = agreement.reduce_by_shares != 0 ? share_from_ - 1 : slot_bytes_;
    alarm_.use_membarrier(agreement.membarrier != 0);
    formed_ = true;
}

bool Team::formed() {
    if (formed_) return true;
    if (!probed_ && all_are_at(Stage::attached)) probe_peers();
    if (!probed_) return false;
    if (header_.agreement.ready.load(std::memory_order_acquire) == 0) {
        if (self_ != 0 || !all_are_at(Stage::probed)) {
            if (self_ != 0) blocker_ = 0;
            return false;
        }
        agree();
    }
    adopt_agreement();
    return true;
}

}  // namespace mcastcoll::host
