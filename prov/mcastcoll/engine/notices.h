// What an engine has to tell its caller: which operations are over, or gathered and to be released, and what
// became of the group.
#pragma once

#include <cstdint>
#include <utility>

#include "base/ring.h"
#include "engine/effects.h"

namespace mcastcoll::engine {

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
