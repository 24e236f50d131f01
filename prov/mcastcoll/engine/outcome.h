// What becomes of a group and its operations: leaving, failing, and what the caller is told.
#pragma once

#include <cerrno>
#include <utility>

#include "base/ring.h"
#include "engine/effects.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

// Leaving: the last thing that all members agree on. Each tells its parent in the tree of messages when its
// subtree has closed and has nothing open, rank 0 tells its children that everybody has, and they theirs.
class Departure {
  public:
    Departure(const RankList& children, Rank parent)
        : present_(children.bits()), parent_(parent), untold_(children) {}

    // The application has closed the group.
    void close() {
        if (stage_ == Stage::open) stage_ = Stage::closing;
    }
    bool closing() const { return stage_ != Stage::open; }
    // Nothing is open here: once closed, and when all children have left, this member has, too.
    void on_idle() {
        if (stage_ != Stage::closing || present_ != 0) return;
        stage_ = Stage::leaving;
        if (parent_ == kNoRank) on_everybody_left();
    }
    void on_child_left(std::uint32_t child) { present_ &= ~(1U << child); }
    // From the parent. False: this member has not left yet.
    bool on_everybody_left() {
        if (stage_ < Stage::leaving) return false;
        if (stage_ != Stage::over) untold_.begin();
        stage_ = Stage::over;
        return true;
    }

    // What is to be said next, and to whom.
    bool next(wire::Kind& kind, Rank& to) {
        const bool up = stage_ == Stage::leaving;
        if (up) stage_ = Stage::left;
        kind = up ? wire::Kind::leave_up : wire::Kind::leave_down;
        to = up ? parent_ : untold_.next();
        return to != kNoRank;
    }
    // Everybody has left, and the children know.
    bool over() const { return stage_ == Stage::over && untold_.over(); }

  private:
    enum class Stage : std::uint8_t {
        open,
        closing,  // waits for its own operations, and for its children
        leaving,  // its subtree has left: the parent is to be told
        left,     // the parent was told
        over      // everybody has left
    };

    std::uint32_t present_;  // bit i for child i
    const Rank parent_;
    Stage stage_ = Stage::open;
    Round untold_;  // that everybody has left
};

// How a group has failed for a member.
struct Failure {
    Rank lost = kNoRank;       // because of this one
    int error = 0;             // 0: it has not
    bool lingers = false;      // this member has lost nothing, and leaves when the others know
    std::uint32_t untold = 0;  // members from here on may not know
    Rank also = kNoRank;       // nor this one
};

// What an engine has to tell its caller: which operations are over, or gathered and to be released, and what
// became of the group.
struct Notices {
    struct Completion {
        OperationId operation{};
        int status = 0;
    };
    Ring<Completion> completions;
    Ring<OperationId> gathered;
    bool joined = false, failed = false, left = false;

    // What became of operations; then, of the group.
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
