// Outcome of a group and its operations: leaving, failing, and the notices to the caller.
#pragma once

#include <cerrno>
#include <utility>

#include "base/ring.h"
#include "engine/effects.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

// Leaving, the last agreement of a group. Each member reports to its parent in the gather tree when its
// subtree has closed the group and has no open operation. Rank 0 then announces down the tree that the whole
// group has left.
class Departure {
  public:
    Departure(const RankList& children, Rank parent)
        : present_(children.bits()), parent_(parent), uninformed_(children) {}

    // The application has closed the group.
    void close() {
        if (stage_ == Stage::open) stage_ = Stage::closing;
    }
    bool closing() const { return stage_ != Stage::open; }
    // No operation is open here: a member that has closed leaves after its children.
    void on_idle() {
        if (stage_ != Stage::closing || present_ != 0) return;
        stage_ = Stage::leaving;
        if (parent_ == kNoRank) on_all_left();
    }
    void on_child_left(std::uint32_t child) { present_ &= ~(1U << child); }
    // From the parent. False: this member has not left yet.
    bool on_all_left() {
        if (stage_ < Stage::leaving) return false;
        if (stage_ != Stage::over) uninformed_.begin();
        stage_ = Stage::over;
        return true;
    }

    // The next message to send, and its receiver.
    bool next(wire::Kind& kind, Rank& to) {
        const bool up = stage_ == Stage::leaving;
        if (up) stage_ = Stage::left;
        kind = up ? wire::Kind::leave_up : wire::Kind::leave_down;
        to = up ? parent_ : uninformed_.next();
        return to != kNoRank;
    }
    // All members have left, and the children have been informed.
    bool over() const { return stage_ == Stage::over && uninformed_.over(); }

  private:
    enum class Stage : std::uint8_t {
        open,
        closing,  // waits for own operations and for the children
        leaving,  // the subtree has left: inform the parent
        left,     // the parent was informed
        over      // all members have left
    };

    std::uint32_t present_;  // bit i for child i
    const Rank parent_;
    Stage stage_ = Stage::open;
    Round uninformed_;  // children to inform that all have left
};

// How a group has failed for a member.
struct Failure {
    Rank lost = kNoRank;   // the lost member that caused the failure
    int error = 0;         // 0: no failure
    bool lingers = false;  // the failure does not affect this member, which leaves after informing its peers
    std::uint32_t next_to_inform = 0;  // ranks from here on may not be informed yet
    Rank also = kNoRank;               // a further rank to inform
};

// Notices to the caller: completed operations, gathered operations that wait for a release, and state changes
// of the group.
struct Notices {
    struct Completion {
        OperationId operation{};
        int status = 0;
    };
    Ring<Completion> completions;
    Ring<OperationId> gathered;
    bool joined = false, failed = false, left = false;

    // Notices about operations; then, about the group.
    bool next_operation(Effect& effect) {
        if (!completions.empty()) {
            const Completion done = completions.front();
            effect = {.kind = Effect::Kind::complete, .operation = done.operation, .status = done.status};
            completions.pop();
            return true;
        }
        if (gathered.empty()) return false;
        effect = {.kind = Effect::Kind::gathered, .operation = gathered.front()};
        gathered.pop();
        return true;
    }
    bool next_of_group(Effect& effect, const Failure& failure) {
        if (std::exchange(joined, false)) return effect = {.kind = Effect::Kind::joined}, true;
        if (std::exchange(failed, false))
            return effect = {.kind = Effect::Kind::failed, .to = failure.lost, .status = failure.error}, true;
        if (std::exchange(left, false)) return effect = {.kind = Effect::Kind::left}, true;
        return false;
    }
};

}  // namespace mcastcoll::engine
