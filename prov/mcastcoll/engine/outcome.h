// What becomes of a group and its operations: leaving, failing, and what the caller is told.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/ring.h"
#include "engine/effects.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

// Leaving: the last thing that all members agree on. Each tells its parent in the tree of messages when its
// subtree has closed and has nothing open, rank 0 tells its children that everybody has, and they theirs.
class Departure {
  public:
    Departure(const RankList& children, Rank parent) : children_(children), parent_(parent) {}

    // The application has closed the group.
    void close() {
        if (stage_ == Stage::open) stage_ = Stage::closing;
    }
    bool closing() const { return stage_ != Stage::open; }
    // Nothing is open here: once closed, and when all children have left, this member has, too.
    void on_idle();
    void on_child_left(std::uint32_t child) { left_[child] = true; }
    // From the parent. False: this member has not left yet.
    bool on_everybody_left();

    // What is to be said next, and to whom.
    bool next(wire::Kind& kind, Rank& to);
    // Everybody has left, and the children know.
    bool over() const { return stage_ == Stage::over && told_ == children_.count; }

  private:
    enum class Stage : std::uint8_t {
        open,
        closing,  // waits for its own operations, and for its children
        leaving,  // its subtree has left: the parent is to be told
        left,     // the parent was told
        over      // everybody has left
    };

    const RankList children_;
    const Rank parent_;
    Stage stage_ = Stage::open;
    std::array<bool, kMaxArity> left_{};  // by child
    std::uint32_t told_ = 0;              // children that know that everybody has
};

inline void Departure::on_idle() {
    if (stage_ != Stage::closing) return;
    for (std::uint32_t i = 0; i < children_.count; ++i)
        if (!left_[i]) return;
    stage_ = parent_ == kNoRank ? Stage::over : Stage::leaving;
}

inline bool Departure::on_everybody_left() {
    if (stage_ < Stage::leaving) return false;
    stage_ = Stage::over;
    return true;
}

inline bool Departure::next(wire::Kind& kind, Rank& to) {
    if (stage_ == Stage::leaving) {
        stage_ = Stage::left;
        kind = wire::Kind::leave_up;
        to = parent_;
        return true;
    }
    if (stage_ != Stage::over || told_ == children_.count) return false;
    kind = wire::Kind::leave_down;
    to = children_.ranks[told_++];
    return true;
}

// How a group has failed for a member, and who of the others is still to be told.
class Failure {
  public:
    Failure(Rank self, std::uint32_t members) : self_(self), members_(members), next_(members) {}

    // Because of this member, or kNoRank. tell: the others may not know. lingered: this member has lost
    // nothing, and leaves when they do.
    void begin(Rank lost, int error, bool tell, bool lingered = false) {
        lingered_ = lingered;
        lost_ = lost;
        error_ = error;
        next_ = tell ? 0 : members_;
    }
    int error() const { return error_; }  // 0: it has not
    Rank lost() const { return lost_; }

    // Who is to be told next; kNoRank: nobody.
    Rank next() {
        while (next_ < members_) {
            const Rank to = rank_of(next_++);
            // Who is dead cannot be told; who only made others wait too long can.
            if (to != self_ && (to != lost_ || error_ == ETIMEDOUT)) return to;
        }
        return kNoRank;
    }
    bool take_lingered() { return std::exchange(lingered_, false); }
    bool told() const { return next_ == members_; }

  private:
    const Rank self_;
    const std::uint32_t members_;
    Rank lost_ = kNoRank;
    int error_ = 0;
    bool lingered_ = false;
    std::uint32_t next_;  // members before have been told
};

// What an engine has to tell its caller: which operations are over, or gathered and to be released, and what
// became of the group.
class Notices {
  public:
    Notices(std::size_t completions, std::size_t gathered) : completions_(completions), gathered_(gathered) {}

    // Operations that are over and that the caller has not been told of.
    std::size_t completions() const { return completions_.size(); }
    // False: there is no room.
    bool complete(OperationId operation, int status) { return completions_.push({operation, status}); }
    bool gathered(OperationId operation) { return gathered_.push(operation); }
    void forget_gathered() {
        while (!gathered_.empty()) gathered_.pop();
    }
    void joined() { joined_ = true; }
    void failed() { failed_ = true; }
    void left() { left_ = true; }

    // What became of operations; then, of the group. `lost` and `error`: how it failed.
    bool next_operation(Effect& effect);
    bool next_of_group(Effect& effect, Rank lost, int error);

  private:
    struct Completion {
        OperationId operation{};
        int status = 0;
    };

    Ring<Completion> completions_;
    Ring<OperationId> gathered_;
    bool joined_ = false, failed_ = false, left_ = false;
};

inline bool Notices::next_operation(Effect& effect) {
    if (!completions_.empty()) {
        const Completion done = completions_.front();
        effect = {.kind = Effect::Kind::complete, .operation = done.operation, .status = done.status};
        completions_.pop();
        return true;
    }
    if (gathered_.empty()) return false;
    effect = {.kind = Effect::Kind::gathered, .operation = gathered_.front()};
    gathered_.pop();
    return true;
}

inline bool Notices::next_of_group(Effect& effect, Rank lost, int error) {
    if (std::exchange(joined_, false)) return effect = {.kind = Effect::Kind::joined}, true;
    if (std::exchange(failed_, false))
        return effect = {.kind = Effect::Kind::failed, .to = lost, .status = error}, true;
    if (std::exchange(left_, false)) return effect = {.kind = Effect::Kind::left}, true;
    return false;
}

}  // namespace mcastcoll::engine
