// Hosts and segments in tests of the levels above them.
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
    explicit Meeting(std::size_t members) : legs(members) {}
    std::vector<std::vector<Leg*>> legs;  // [member][leg]; null once the member is done
    std::uint32_t broadcaster = 0;        // rank of the last broadcast's root
    bool all_posted(std::size_t i) const {
        return std::all_of(legs.begin(), legs.end(), [&](const auto& own) { return own.size() > i; });
    }
    bool all_arrived(std::size_t i, std::size_t root) const {
        for (std::size_t member = 0; member < legs.size(); ++member)
            if (member != root && (legs[member].size() <= i || legs[member][i] != nullptr)) return false;
        return true;
    }
};

class MeetingLevel final : public Level {
  public:
    MeetingLevel(Meeting& meeting, std::uint32_t self, Random& random)
        : meeting_(meeting), self_(self), random_(random) {}
    int post(Leg& leg, Nanoseconds) override {
        meeting_.legs[self_].push_back(&leg);
        if (leg.kind == Kind::broadcast) meeting_.broadcaster = index_of(leg.root);
        return 0;
    }
    void advance(Leg&, Nanoseconds) override {}
    Nanoseconds next_deadline() const override { return kNever; }
    void fail(int error, Nanoseconds) override {
        for (Leg*& leg : meeting_.legs[self_])
            if (leg != nullptr) end(leg, error);
    }
    bool progress(Nanoseconds) override {
        bool moved = false;
        for (std::size_t i = 0; i < meeting_.legs[self_].size(); ++i)
            if (meeting_.legs[self_][i] != nullptr) moved |= step(i);
        return moved;
    }

  private:
    static void end(Leg*& leg, int error) {
        leg->error = error;
        leg->done = true;
        leg = nullptr;
    }
    bool step(std::size_t i) {
        Leg& leg = *meeting_.legs[self_][i];
        if (leg.kind == Kind::broadcast) return broadcast(leg, i);
        if (self_ != leader(leg)) return false;  // the leader advances all members
        if (!meeting_.all_posted(i)) return false;
        if (!leg.gathered) {
            gather(leg, i);
            leg.gathered = true;
            return true;
        }
        if (leg.hold && !leg.released) return false;
        for (auto& own : meeting_.legs) {
            if (own[i] != &leg && leg.bytes > 0 && (leg.kind == Kind::allreduce))
                std::memcpy(own[i]->buffer, leg.buffer, leg.bytes);
            if (own[i] != &leg && leg.bytes > 0 && leg.kind == Kind::allgather)
                std::memcpy(own[i]->buffer, leg.buffer, leg.bytes * meeting_.legs.size());
            end(own[i], 0);
        }
        return true;
    }
    static std::uint32_t leader(const Leg& leg) { return leg.kind == Kind::reduce ? index_of(leg.root) : 0; }
    void gather(Leg& leg, std::size_t i) {
        if (leg.bytes == 0) return;
        if (leg.kind == Kind::allgather) {
            for (std::size_t m = 0; m < meeting_.legs.size(); ++m)
                std::memmove(leg.buffer + m * leg.bytes, meeting_.legs[m][i]->input, leg.bytes);
            return;
        }
        std::vector<std::byte> sum(meeting_.legs[0][i]->input, meeting_.legs[0][i]->input + leg.bytes);
        for (std::size_t m = 1; m < meeting_.legs.size(); ++m)
            leg.combiner(sum.data(), meeting_.legs[m][i]->input, leg.bytes);
        std::memcpy(leg.buffer, sum.data(), leg.bytes);
    }
    bool broadcast(Leg& leg, std::size_t i) {
        if (self_ == index_of(leg.root)) {
            if (leg.ready < leg.bytes || !meeting_.all_arrived(i, index_of(leg.root))) return false;
            end(meeting_.legs[self_][i], 0);
            return true;
        }
        const auto& roots = meeting_.legs[index_of(leg.root)];
        if (roots.size() <= i) return false;
        const Leg& root = *roots[i];
        const std::size_t step = std::min<std::size_t>(root.ready - leg.arrived, random_() % 5000);
        if (step > 0) std::memcpy(leg.buffer + leg.arrived, root.buffer + leg.arrived, step);
        leg.arrived += step;
        if (leg.arrived == leg.bytes) {
            end(meeting_.legs[self_][i], 0);
            return true;
        }
        return step > 0;
    }

    Meeting& meeting_;
    std::uint32_t self_;
    Random& random_;
};

}  // namespace mcastcoll::levels
