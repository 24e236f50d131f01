// Leaving: the last thing that all members agree on. Each tells its parent in the tree of messages when its
// subtree has closed and has nothing open, rank 0 tells its children that everybody has, and they theirs.
#pragma once

#include <array>
#include <cstdint>

#include "engine/supply_graph.h"
#include "wire/packet.h"

namespace mcastcoll::engine {

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

}  // namespace mcastcoll::engine
