// Runs an operation through the levels of its group: host, segment, site.
//
// A broadcast runs from the outer to the inner levels; a reduction runs from the inner to the outer levels,
// and its result back (README.md: Levels). A block operation runs on a single level: the host level if the
// group is on one host, else the exchange level.
//
// Operations are numbered in the order of posting, and posted to each level in that order, by which levels
// distinguish operations. Memory is reserved when the group is made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "levels/level.h"
#include "levels/placement.h"
#include "levels/request.h"

namespace mcastcoll::levels {

// The levels, from the innermost outward. The exchange level is beside these levels, among all members of the
// group.
enum : std::size_t { kHost, kSegment, kSite, kExchange, kLevels };

class Hierarchy {
  public:
    // Submits operations and is notified of the end of each, never during a submission.
    class Owner {
      public:
        // error: 0 or a positive FI_E* code.
        virtual void on_complete(std::uint64_t cookie, int error, Nanoseconds now) = 0;

      protected:
        ~Owner() = default;
    };

    // levels: null where this group has no such level, or this member takes no part in it. With more than one
    // host the site level is required, because a reduce's result reaches its root through it. Without the
    // exchange level block operations are refused. The owner is notified of successful completions only.
    Hierarchy(const Placement& placement, std::array<Level*, kLevels> levels, std::size_t max_open,
              Owner& owner);

    // Returns 0; EAGAIN: too many operations are open; ENOSYS: not supported on this group's levels (the same
    // on all members); or the error of a failed group.
    int submit(const Request& request, Nanoseconds now);
    bool supports(Kind kind) const;
    // The number of the last submitted operation, for let_go() if it was held.
    std::uint64_t last_number() const { return next_ - 1; }
    // Lets a held broadcast (request.h) send its data.
    void let_go(std::uint64_t number, Nanoseconds now);
    // Makes progress in and between the levels once. Returns true if there was any progress. Then further
    // calls may make more.
    bool progress(Nanoseconds now);
    Nanoseconds next_deadline() const;
    // Ends every operation with this error, here and on this member's levels.
    void fail(int error, Nanoseconds now);
    int error() const { return error_; }

  private:
    struct Operation {
        Request request;
        bool over = false;
        std::array<LevelOperation, kLevels> level_operations;
        std::array<bool, kLevels> wanted{}, posted{};
        int source = -1;                 // broadcast: the level of arrival; -1: on the root
        std::byte* result = nullptr;     // reductions: the buffer in which this member combines
        std::vector<std::byte> scratch;  // for results not returned to the user
    };

    Operation& at(std::uint64_t number) { return operations_[(number - base_) % operations_.size()]; }
    void set_up_broadcast(Operation& operation);
    void set_up_reduction(Operation& operation);
    LevelOperation& want(Operation& operation, std::size_t level, std::uint32_t root);
    bool gathered_below(const Operation& operation, std::size_t level) const;
    bool post_level_operations(Nanoseconds now);
    bool relay(Operation& operation, Nanoseconds now);
    bool release(Operation& operation, Nanoseconds now);
    bool step(Operation& operation, Nanoseconds now);

    const Placement& placement_;
    const std::array<Level*, kLevels> levels_;
    Owner& owner_;
    std::vector<Operation> operations_;
    std::uint64_t next_ = 0, first_open_ = 0;
    std::uint64_t base_ = 0;                             // number of the first entry of operations_
    std::array<std::uint64_t, kLevels> next_to_post_{};  // by level: operations below this number are posted
    int error_ = 0;
};

}  // namespace mcastcoll::levels
