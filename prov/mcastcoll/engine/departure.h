// Leaving, the last agreement of a group. Each member reports to its parent in the gather tree when its
// subtree has closed the group and has no open operation. Rank 0 then announces down the tree that the whole
// group has left.
#pragma once

#include <cstdint>

#include "engine/rank_list.h"
#include "engine/round.h"
#include "wire/packet.h"

namespace mcastcoll::engine {

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
    // All members have left, as the parent's message says; on rank 0, all subtrees have left. Returns false
    // if this member has not left yet.
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

    std::uint32_t present_;  // children that have not left; bit i for child i
    const Rank parent_;
    Stage stage_ = Stage::open;
    Round uninformed_;  // children to inform that all have left
};

}  // namespace mcastcoll::engine
