// Among the hosts of a segment, one member of each: the engine's multicast, and its tree of messages for
// reductions. The engine itself is pumped by its owner, who hands its completions here.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "levels/level.h"

namespace mcastcoll::levels {

class SegmentLevel final : public Level {
  public:
    explicit SegmentLevel(engine::Engine& engine);

    int post(Leg& leg, Nanoseconds now) override;
    void advance(Leg& leg, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override { return engine_.next_deadline(); }
    void fail(int error, Nanoseconds now) override;

    // Effects of the engine.
    void on_gathered(OperationId operation);
    void on_complete(OperationId operation, int status);

  private:
    Leg*& at(OperationId operation) { return legs_[number_of(operation) % legs_.size()]; }

    engine::Engine& engine_;
    std::vector<Leg*> legs_;       // by the engine's number, modulo their number; null when it is over
    std::vector<Leg*> receiving_;  // broadcasts from others
    bool moved_ = false;
};

}  // namespace mcastcoll::levels
