#include "engine/failure_detector.h"

#include <cerrno>

namespace mcastcoll::engine {
namespace {

// Position of the named rank in a failure message's total, above the error.
constexpr unsigned kNamedShift = 16;

}  // namespace

void FailureDetector::on_fail(const wire::Header& header) {
    const auto code = static_cast<int>(header.total & 0xffff);
    const std::uint32_t named = index_of(header.fragment);
    const Rank lost = named < core_.config.members ? rank_of(named) : kNoRank;
    if (core_.over()) return;
    const std::uint64_t named_plus_one = header.total >> kNamedShift & UINT32_MAX;
    if (named_plus_one != 0 && core_.named_loss == kNoRank) core_.named_loss = rank_of(named_plus_one - 1);
    core_.fail(lost, code == 0 ? EIO : code, false);
    // The sender could not reach the lost member for lack of a local resource, and so cannot inform that
    // member. If the member is alive, it would wait for peers that have given up; so this member informs it
    // too.
    if (is_own_shortage(code) && lost != kNoRank && lost != core_.self()) core_.failure.also = lost;
}

bool FailureDetector::send_failure(Effect& effect, Rank to) {
    const std::uint64_t named =
        core_.named_loss == kNoRank ? 0 : index_of(core_.named_loss) + std::uint64_t{1};
    return core_.message(effect, wire::Kind::fail, to, operation_of(core_.slots.next()),
                         index_of(core_.failure.lost),
                         static_cast<std::uint64_t>(core_.failure.error) | named << kNamedShift);
}

bool FailureDetector::make_message(Effect& effect) {
    Failure& failure = core_.failure;
    while (failure.next_to_inform < core_.config.members) {
        const Rank to = rank_of(failure.next_to_inform++);
        // A dead member cannot be informed. A member that was only too slow, or unreachable for a while, can.
        const bool may_live =
            failure.error == ETIMEDOUT || failure.error == EHOSTDOWN || is_own_shortage(failure.error);
        if (to == core_.self() || (to == failure.lost && !may_live)) continue;
        return send_failure(effect, to);
    }
    if (failure.also != kNoRank) return send_failure(effect, std::exchange(failure.also, kNoRank));
    // Reported only now, because the caller may destroy the engine after `left`.
    core_.notices.left |= std::exchange(failure.lingers, false);
    return false;
}

void FailureDetector::watch(Rank rank) {
    if (rank == kNoRank || rank == core_.self() || std::ranges::count(watched_, rank) > 0) return;
    if (watch_due_.push(rank)) watched_[next_watched_++ % watched_.size()] = rank;
}

// The operation is finished here, but the root waits for the report of this member's subtree.
bool FailureDetector::owes_report(const Slot& slot) const {
    return slot.state == SlotState::finished && core_.large(slot) && slot.reporting.parent != kNoRank &&
           slot.reporting.reported != slot.fragments;
}

// Watches the peers for which an operation waits directly. Each peer watches its own peers in turn.
void FailureDetector::watch_slot(const Slot& slot) {
    if (!slot.complete_here()) {
        watch(slot.supplier);
        watch(slot.operation.root);
    }
    for (const Rank child : gatherer_.missing(slot)) watch(child);
    if (gatherer_.awaits_credit(slot)) watch(core_.parent);
    if (!core_.large(slot)) return;
    for (const Slot::Client& client : slot.known_clients())
        if (client.unserved()) watch(client.rank);
    for (Rank child : slot.reporting.children) watch(child);
}

// The peer for which an operation waits, as far as this member can determine; that peer may be waiting in
// turn.
Rank FailureDetector::waits_for(Slot& slot) const {
    for (const Rank child : gatherer_.missing(slot)) return child;
    if (gatherer_.awaits_credit(slot)) return core_.parent;
    const bool brings_bytes = reduces(slot.operation.kind) || core_.is_root(slot);
    if (brings_bytes && slot.operation.ready < slot.operation.bytes) return core_.self();
    if (!slot.complete_here())
        return slot.base == 0 && !slot.reception.ever ? slot.operation.root : slot.supplier;
    for (const Slot::Client& client : slot.known_clients())
        if (client.unserved()) return client.rank;
    for (Rank child : slot.reporting.children) {
        const Slot::ChildReport* report = slot.reporting.of(child);
        if (report == nullptr || report->fragments == kNothingReported || report->fragments < slot.fragments)
            return child;
    }
    return kNoRank;
}

// Fails the group when an operation has made no progress for the stall timeout (if set).
void FailureDetector::check_stall() {
    const Nanoseconds from = core_.stalls_from;
    if (core_.config.stall_timeout == kNever || from == kNever || core_.phase != Phase::active) return;
    for (std::uint64_t id = core_.slots.first_open(); id < core_.slots.next(); ++id) {
        Slot& slot = core_.slots.at(id);
        if (slot.state != SlotState::active || slot.completed_early()) continue;
        // A member that waits for a release cannot see which member is late; rank 0 can. So this member waits
        // a quarter longer, and rank 0 reports first.
        const bool knows = !releases(slot.operation.kind) || gatherer_.missing(slot).count > 0 ||
                           gatherer_.awaits_credit(slot) || slot.gathering.awaits_release;
        const std::int64_t timeout =
            core_.config.stall_timeout.value + (knows ? 0 : core_.config.stall_timeout.value / 4);
        if (std::max(slot.progress_at, from) + Nanoseconds{timeout} <= core_.now)
            return core_.fail(waits_for(slot), ETIMEDOUT);
    }
    if (core_.pending.empty()) return;
    if (std::max(core_.moved_at, from) + core_.config.stall_timeout > core_.now) return;
    // No operation is open: the queued operations wait for other members to finish earlier operations.
    Rank behind = core_.parent;
    for (const Rank child : checkpoint_.behind()) behind = child;
    core_.fail(behind, ETIMEDOUT);
}

void FailureDetector::scan() {
    check_stall();
    if (core_.phase == Phase::failed) return;
    // Joining and leaving wait for the whole tree: each member watches its parent and children.
    const bool with_all = core_.phase != Phase::active || core_.departure.closing();
    bool waits = with_all || !core_.idle() ||
                 core_.slots.first_open() - core_.slots.first_kept() >= core_.config.checkpoint_interval();
    if (with_all) {
        watch(core_.parent);
        for (Rank child : core_.children) watch(child);
    }
    for (std::uint64_t id = core_.slots.first_kept(); id < core_.slots.next(); ++id) {
        Slot& slot = core_.slots.at(id);
        if (slot.state == SlotState::active && slot.posted_at + core_.config.watch_delay <= core_.now) {
            watch_slot(slot);
            gatherer_.announce(slot);
        }
        if (!owes_report(slot)) continue;
        waits = true;
        for (Rank child : slot.reporting.children) watch(child);
    }
    scan_at_ = waits ? core_.now + core_.config.watch_delay : kNever;
    if (!waits) return;
    for (const Rank child : checkpoint_.behind()) watch(child);
    if (!core_.pending.empty()) watch(core_.parent);
}

}  // namespace mcastcoll::engine
