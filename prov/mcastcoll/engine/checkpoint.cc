// Every now and then the members agree, up and down a tree of messages, on the number of operations that
// everybody has finished: the floor. Below it nobody can ask for anything, so slots and stashes are used
// again. This is what bounds the memory, and how far a fast member can run away from a slow one. Leaving is
// the last such agreement.
#include <algorithm>
#include <cerrno>

#include "engine/engine.h"

namespace mcastcoll::engine {

void Engine::advance_floor(std::uint64_t floor) {
    if (floor <= floor_ || floor > first_open_) return;
    for (std::uint64_t id = floor_; id < floor; ++id) learn_from(slot_at(id));
    floor_ = floor;
    moved_at_ = now_;
    ++counters_.checkpoints;
    if (floor_ <= next_from_) return;
    // Nothing is left that the old verdict is good for.
    graph_.swap(next_graph_);
    next_from_ = kNoVerdict;
}

// Operations up to a window above this floor may be begun: the floor was told, not just learnt from somebody
// who was, and with it the verdict that they need.
void Engine::open_floor(std::uint64_t floor, Nanoseconds now) {
    advance_floor(floor);
    floor_ask_at_ = floor_awaited_since_ = kNever;
    opened_floor_ = std::max(opened_floor_, std::min(floor, floor_));
    begin_pending(now);
}

// Nobody can ask for this operation any more: what its repairs tell.
void Engine::learn_from(const Slot& slot) {
    if (slot.state != SlotState::finished) return;
    if (slot.is_root(config_.self) && slot.operation.kind == OperationKind::broadcast)
        root_sync_.note_operation(slot.troubled);
    if (is_large(slot) || slot.plan.hands_on) return;
    for (std::uint32_t i = 0; i < slot.client_count; ++i) {
        const Client& client = slot.clients[i];
        if (client.expected && graph_of(slot).hears(slot.operation.root, client.rank))
            policy_.note_successor(client.asked);
    }
    counters_.policy_changes = policy_.changes();
}

void Engine::check_floor(Nanoseconds now) {
    if (phase_ != Phase::active) return;
    std::uint64_t finished = first_open_ - first_open_ % config_.checkpoint_interval();
    for (std::uint32_t i = 0; i < tree_children_.count; ++i) finished = std::min(finished, child_floor_[i]);
    if (finished <= floor_told_up_) return;
    if (tree_parent_ == kNoRank) {
        floor_told_up_ = finished;
        floor_to_tell_down_ = finished;
        floor_down_next_ = 0;
        floor_cast_due_ = config_.repair == Repair::sync && graph().audible(config_.self);
        open_floor(finished, now);
    } else {
        floor_to_tell_up_ = finished;
    }
}

void Engine::on_floor_up(const wire::Header& header, Nanoseconds now) {
    const std::uint32_t child = child_index(header.sender);
    if (child == kMaxArity) {
        ++counters_.unexpected_kind;
        return;
    }
    child_floor_[child] = std::max(child_floor_[child], number_of(header.operation));
    check_floor(now);
}

void Engine::on_floor_down(const wire::Header& header, Nanoseconds now) {
    if (header.sender != tree_parent_) {
        ++counters_.unexpected_kind;
        return;
    }
    take_floor(header, now);
}

void Engine::check_leave() {
    if (!closing_ || leave_up_sent_ || phase_ != Phase::active || !idle()) return;
    for (std::uint32_t i = 0; i < tree_children_.count; ++i)
        if (!child_left_[i]) return;
    leave_up_sent_ = true;
    if (tree_parent_ == kNoRank)
        everybody_left_ = true;
    else
        leave_up_due_ = true;
}

void Engine::close(Nanoseconds now) {
    now_ = now;
    if (closing_) return;
    closing_ = true;
    if (watch_at_ == kNever) watch_at_ = now + config_.watch_delay;
    if (phase_ != Phase::active && phase_ != Phase::failed)
        return fail(config_.self, kClosedEarly, true, now);
    check_leave();
}

void Engine::on_leave_up(const wire::Header& header) {
    const std::uint32_t child = child_index(header.sender);
    if (child == kMaxArity) {
        ++counters_.unexpected_kind;
        return;
    }
    child_left_[child] = true;
    check_leave();
}

void Engine::on_leave_down(const wire::Header& header, Nanoseconds now) {
    if (header.sender != tree_parent_ || !leave_up_sent_) return fail(header.sender, EPROTO, true, now);
    everybody_left_ = true;
}

bool Engine::next_checkpoint_message(Effect& effect) {
    if (floor_to_tell_up_ > floor_told_up_) {
        floor_told_up_ = floor_to_tell_up_;
        make_message(effect, wire::Kind::floor_up, tree_parent_, operation_of(floor_told_up_), 0, 0, {});
        return true;
    }
    if (next_floor_answer(effect)) return true;
    while (floor_to_tell_down_ > 0 && floor_down_next_ < tree_children_.count) {
        const Rank child = tree_children_.ranks[floor_down_next_++];
        if (hears_floor(child)) continue;
        make_message(effect, wire::Kind::floor_down, child, operation_of(floor_to_tell_down_),
                     verdict_version_, 0, {});
        return true;
    }
    if (leave_up_due_) {
        leave_up_due_ = false;
        make_message(effect, wire::Kind::leave_up, tree_parent_, operation_of(next_id_), 0, 0, {});
        return true;
    }
    if (everybody_left_ && leave_down_next_ < tree_children_.count) {
        const Rank child = tree_children_.ranks[leave_down_next_++];
        make_message(effect, wire::Kind::leave_down, child, operation_of(next_id_), 0, 0, {});
        return true;
    }
    if (everybody_left_ && phase_ == Phase::active) {
        phase_ = Phase::left;
        notice_left_ = true;
    }
    return false;
}

}  // namespace mcastcoll::engine
