// How a group failed, and the notices to the caller about the group and its operations.
#pragma once

#include <utility>

#include "base/ring.h"
#include "engine/effects.h"

namespace mcastcoll::engine {

// How a group has failed for a member.
struct Failure {
    Rank lost = kNoRank;   // the lost member that caused the failure
    int error = 0;         // 0: no failure
    bool lingers = false;  // the failure does not affect this member, which leaves after informing its peers
    std::uint32_t next_to_inform = 0;  // the first rank that is not informed yet
    Rank also = kNoRank;               // a rank to inform at the end, besides all others
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

    // Writes the next notice about an operation; false if there is none.
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
    // Writes the next notice about the group; false if there is none.
    bool next_of_group(Effect& effect, const Failure& failure) {
        if (std::exchange(joined, false)) return effect = {.kind = Effect::Kind::joined}, true;
        if (std::exchange(failed, false))
            return effect = {.kind = Effect::Kind::failed, .to = failure.lost, .status = failure.error}, true;
        if (std::exchange(left, false)) return effect = {.kind = Effect::Kind::left}, true;
        return false;
    }
};

}  // namespace mcastcoll::engine
