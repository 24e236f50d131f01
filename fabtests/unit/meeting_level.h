// A level that stands for hosts and segments in tests of the levels above them.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "levels/message_level.h"

namespace mcastcoll::levels {

using Random = std::mt19937_64;

inline std::vector<std::byte> letter(const Outgoing& out) {
    std::vector<std::byte> bytes(out.header.begin(), out.header.end());
    bytes.insert(bytes.end(), out.payload.begin(), out.payload.end());
    return bytes;
}

// A level without loss or latency, whose members are all in this process: the plainest implementation of a
// level.
struct Meeting {
    explicit Meeting(std::size_t members) : level_operations(members) {}
    // [member][operation]; null once the member is done.
    std::vector<std::vector<LevelOperation*>> level_operations;
    std::uint32_t broadcaster = 0;  // the last broadcast's root, as a rank of this level
    bool all_posted(std::size_t i) const {
        return std::all_of(level_operations.begin(), level_operations.end(),
                           [&](const auto& own) { return own.size() > i; });
    }
    bool all_arrived(std::size_t i, std::size_t root) const {
        for (std::size_t member = 0; member < level_operations.size(); ++member)
            if (member != root &&
                (level_operations[member].size() <= i || level_operations[member][i] != nullptr))
                return false;
        return true;
    }
};

class MeetingLevel final : public Level {
  public:
    MeetingLevel(Meeting& meeting, std::uint32_t self, Random& random)
        : meeting_(meeting), self_(self), random_(random) {}
    int post(LevelOperation& operation, Nanoseconds) override {
        meeting_.level_operations[self_].push_back(&operation);
        if (operation.kind == Kind::broadcast) meeting_.broadcaster = index_of(operation.root);
        return 0;
    }
    void advance(LevelOperation&, Nanoseconds) override {}
    Nanoseconds next_deadline() const override { return kNever; }
    void fail(int error, Nanoseconds) override {
        for (LevelOperation*& operation : meeting_.level_operations[self_])
            if (operation != nullptr) end(operation, error);
    }
    bool progress(Nanoseconds) override {
        bool moved = false;
        for (std::size_t i = 0; i < meeting_.level_operations[self_].size(); ++i)
            if (meeting_.level_operations[self_][i] != nullptr) moved |= step(i);
        return moved;
    }

  private:
    static void end(LevelOperation*& operation, int error) {
        operation->error = error;
        operation->done = true;
        operation = nullptr;
    }
    bool step(std::size_t i) {
        LevelOperation& operation = *meeting_.level_operations[self_][i];
        if (operation.kind == Kind::broadcast) return broadcast(operation, i);
        if (self_ != leader(operation)) return false;  // the leader advances all members
        if (!meeting_.all_posted(i)) return false;
        if (!operation.gathered) {
            gather(operation, i);
            operation.gathered = true;
            return true;
        }
        if (operation.hold && !operation.released) return false;
        for (auto& own : meeting_.level_operations) {
            if (own[i] != &operation && operation.bytes > 0 && (operation.kind == Kind::allreduce))
                std::memcpy(own[i]->buffer, operation.buffer, operation.bytes);
            if (own[i] != &operation && operation.bytes > 0 && operation.kind == Kind::allgather)
                std::memcpy(own[i]->buffer, operation.buffer,
                            operation.bytes * meeting_.level_operations.size());
            end(own[i], 0);
        }
        return true;
    }
    static std::uint32_t leader(const LevelOperation& operation) {
        return operation.kind == Kind::reduce ? index_of(operation.root) : 0;
    }
    void gather(LevelOperation& operation, std::size_t i) {
        if (operation.bytes == 0) return;
        if (operation.kind == Kind::allgather) {
            for (std::size_t m = 0; m < meeting_.level_operations.size(); ++m)
                std::memmove(operation.buffer + m * operation.bytes, meeting_.level_operations[m][i]->input,
                             operation.bytes);
            return;
        }
        std::vector<std::byte> sum(meeting_.level_operations[0][i]->input,
                                   meeting_.level_operations[0][i]->input + operation.bytes);
        for (std::size_t m = 1; m < meeting_.level_operations.size(); ++m)
            operation.combiner(sum.data(), meeting_.level_operations[m][i]->input, operation.bytes);
        std::memcpy(operation.buffer, sum.data(), operation.bytes);
    }
    bool broadcast(LevelOperation& operation, std::size_t i) {
        if (self_ == index_of(operation.root)) {
            if (operation.ready < operation.bytes || !meeting_.all_arrived(i, index_of(operation.root)))
                return false;
            end(meeting_.level_operations[self_][i], 0);
            return true;
        }
        const auto& roots = meeting_.level_operations[index_of(operation.root)];
        if (roots.size() <= i) return false;
        const LevelOperation& root = *roots[i];
        const std::size_t step = std::min<std::size_t>(root.ready - operation.arrived, random_() % 5000);
        if (step > 0)
            std::memcpy(operation.buffer + operation.arrived, root.buffer + operation.arrived, step);
        operation.arrived += step;
        if (operation.arrived == operation.bytes) {
            end(meeting_.level_operations[self_][i], 0);
            return true;
        }
        return step > 0;
    }

    Meeting& meeting_;
    std::uint32_t self_;
    Random& random_;
};

}  // namespace mcastcoll::levels
