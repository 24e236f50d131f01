// The level among the hosts of a segment, one member per host: the engine's multicast, and its message tree
// for reductions. The engine's owner runs the engine and passes its completions to this class.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "levels/level.h"

namespace mcastcoll::levels {

class SegmentLevel final : public Level {
  public:
    explicit SegmentLevel(engine::Engine& engine);

    int post(LevelOperation& level_operation, Nanoseconds now) override;
    void advance(LevelOperation& level_operation, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override { return engine_.next_deadline(); }
    void fail(int error, Nanoseconds now) override;

    // The engine's owner passes the engine's effects to these functions.
    void on_gathered(OperationId operation);
    void on_complete(OperationId operation, int status);

  private:
    LevelOperation*& at(OperationId operation) {
        return level_operations_[number_of(operation) % level_operations_.size()];
    }

    engine::Engine& engine_;
    // By the engine's operation number modulo the size; null when done.
    std::vector<LevelOperation*> level_operations_;
    std::vector<LevelOperation*> receiving_;  // broadcasts of other roots
    bool moved_ = false;
};

}  // namespace mcastcoll::levels
