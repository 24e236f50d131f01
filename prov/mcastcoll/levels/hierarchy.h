// The walk of an operation through the levels of its group: host, segment, site.
//
// A broadcast goes from the outside in, a reduction from the inside out and its result back (README.md:
// Levels). What moves blocks has one leg: on the host level where the group is on one host, else on the
// exchange level.
//
// Operations are numbered in the order of posting, and legs are posted to each level in that order, which is
// what levels tell operations apart by. Memory is reserved when the group is made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "levels/level.h"
#include "levels/placement.h"

namespace mcastcoll::levels {

// Its root is a rank in the group. A broadcast of which nothing is ready is held: its root passes nothing on
// before let_go().
struct Request : Collective {
    std::uint64_t cookie = 0;  // what its owner is told when it is over
    bool held() const { return kind == Kind::broadcast && ready == 0; }
};

// Who submits operations, and is told of the end of each, never while it submits.
class Owner {
  public:
    virtual void on_complete(std::uint64_t cookie, int error, Nanoseconds now) = 0;  // 0 or positive FI_E*

  protected:
    ~Owner() = default;
};

// From the inside out; the exchange is beside them, among all members wherever they are.
enum : std::size_t { kHost, kSegment, kSite, kExchange, kLevels };

class Hierarchy {
  public:
    // Levels that do not exist in this group, or that this member has no part in, are null. The site level is
    // needed wherever there is more than one host: it also brings a reduce's result to its root. So is the
    // exchange level, or else what moves blocks is not served there.
    // The owner is told of what ends well.
    Hierarchy(const Placement& placement, std::array<Level*, kLevels> levels, std::size_t most_open,
              Owner& owner);

    // 0; EAGAIN: too many are open; ENOSYS: not over this group's levels. All members of a group get the same
    // answer to the latter. Once the group has failed, its error.
    int submit(const Request& request, Nanoseconds now);
    bool supports(Kind kind) const;
    // The number of what was submitted last, for let_go() of what was submitted held.
    std::uint64_t last_number() const { return next_ - 1; }
    void let_go(std::uint64_t number, Nanoseconds now);
    // One turn of moving what can be moved in and between the levels. True if anything was; then there may be
    // more.
    bool progress(Nanoseconds now);
    Nanoseconds next_deadline() const;
    // Ends everything with this error, here and in all levels that this member has part in.
    void fail(int error, Nanoseconds now);
    int error() const { return error_; }

  private:
    struct Operation {
        Request request;
        bool over = false;
        std::array<Leg, kLevels> legs;
        std::array<bool, kLevels> wanted{}, posted{};
        int source = -1;                 // broadcast: the level that the message comes from; -1: own
        std::byte* result = nullptr;     // reductions: where this member combines
        std::vector<std::byte> scratch;  // for a result that is nobody's here
    };

    Operation& at(std::uint64_t number) { return operations_[(number - base_) % operations_.size()]; }
    void plan_broadcast(Operation& operation);
    void plan_reduction(Operation& operation);
    Leg& want(Operation& operation, std::size_t level, std::uint32_t root);
    bool gathered_below(const Operation& operation, std::size_t level) const;
    bool post_legs(Nanoseconds now);
    bool relay(Operation& operation, Nanoseconds now);
    bool release(Operation& operation, Nanoseconds now);
    bool step(Operation& operation, Nanoseconds now);

    const Placement& placement_;
    const std::array<Level*, kLevels> levels_;
    Owner& owner_;
    std::vector<Operation> operations_;
    std::uint64_t next_ = 0, first_open_ = 0;
    std::uint64_t base_ = 0;                             // the number whose operation is the first in memory
    std::array<std::uint64_t, kLevels> next_to_post_{};  // operations below have posted their legs there
    int error_ = 0;
};

}  // namespace mcastcoll::levels
