// Operations that are made of several.
//
// The hierarchy below carries out one operation as one walk through the levels. Some are better done as a
// *plan* of several walks, its parts:
//
//   chains     an allgather is one broadcast of each member's block, straight into its place in the result,
//              so that each member multicasts its own block once, where a ring of messages sends it n - 1
//              times. Parts are posted in the order of ranks on all members, a window of them ahead.
//              Receivers would be overrun if all roots began together: there are C chains, and the root of
//              part i begins when part i - C has arrived at it. Until then it holds its message back, as a
//              leader does that has not been brought it yet. (Khalilov, Di Girolamo, Chrapek, Nudelman,
//              Bloch, Hoefler: Network-Offloaded Bandwidth-Optimal Broadcast and Allgather for Distributed
//              AI, SC24.)
//   reduction  a small allgather is an allreduce with bitwise or, each member's vector being zero but for its
//              own block: up the tree, and one multicast down.
//   split      a large allreduce is a reduce_scatter by messages, then chains of the slices. A slice's
//              broadcast is let go when its root has it. The input may be the result: slice j of it
//              is read for the message to member j only, and j's broadcast comes after that message.
//
// Everything else is one part, passed through. Levels tell operations apart by counting, so members must
// post the same parts in the same order: all those of a plan come before those of the next. No part waits
// for another to be posted, and what a held one waits for was posted before it on all members; so by
// induction over the order of parts none waits for ever, whatever the window.
//
// Which algorithm it is says the selection, by arguments that are equal on all members. The memory of plans
// is reserved when the group is made, but for the slice of an allreduce in place, which is made when first a
// longer one comes.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "levels/hierarchy.h"
#include "levels/selection.h"
#include "reduce/slices.h"

namespace mcastcoll::levels {

struct PlanCounters {
    // That have ended well, and the bytes of their messages, vectors or blocks.
    std::uint64_t operations = 0, bytes = 0;
    // Operations that were carried out so; bytes of own blocks and slices that this member broadcast.
    std::uint64_t reductions = 0, chains = 0, splits = 0, block_bytes_broadcast = 0;
};

class Planner final : private Owner {
  public:
    // The first three as the hierarchy's. The owner is told of everything that was accepted, once.
    Planner(const Placement& placement, std::array<Level*, kLevels> levels, std::size_t most_open,
            Owner& owner, Selection selection = {});

    // These as the hierarchy's.
    int submit(const Request& request, Nanoseconds now);
    bool progress(Nanoseconds now);
    Nanoseconds next_deadline() const { return hierarchy_.next_deadline(); }
    std::size_t open_operations() const { return open_; }
    void fail(int error, Nanoseconds now);
    int error() const { return error_; }

    // What would carry out such an operation.
    Selection::Decision decide(const Request& request) const;

    // A choice made for the first time.
    struct News {
        Kind kind = Kind::broadcast;
        Choice choice;
        std::uint64_t bytes = 0;  // of the longest buffer
    };
    std::optional<News> poll_news() { return std::exchange(news_, {}); }
    const PlanCounters& counters() const { return counters_; }

  private:
    static constexpr std::uint32_t kNoPart = UINT32_MAX;
    struct Plan {
        Request request;
        Choice choice;
        bool over = false;
        std::uint32_t parts = 1, posted = 0, ended = 0;
        std::uint32_t window = 1;     // parts that are open at once
        std::size_t next_offset = 0;  // of the next block in the result
        // Of chains and split: this member's own broadcast, and what it waits for.
        std::uint32_t own = kNoPart, awaited = kNoPart;
        bool awaiting_part = false, awaiting_slice = false, held = false;
        std::uint64_t number = 0;        // in the hierarchy, of the own broadcast
        std::vector<std::byte> scratch;  // of an allreduce in place: this member's slice
        bool may_begin() const { return !awaiting_part && !awaiting_slice; }
    };

    Plan& at(std::uint64_t number) { return plans_[(number - base_) % plans_.size()]; }
    void tell(const Request& request, const Choice& choice);
    void set_up(Plan& plan);
    void set_up_chains(Plan& plan);
    std::size_t block_bytes(const Plan& plan, std::uint32_t root) const;
    std::uint64_t longest(const Request& request) const {
        return longest_buffer(request.kind, request.bytes, placement_.members());
    }
    Slice slice_for(const Plan& plan, std::uint32_t member) const;
    Request scatter_part(Plan& plan) const;
    Request part_of(Plan& plan) const;
    bool post_parts(Nanoseconds now);
    void on_complete(std::uint64_t cookie, int error, Nanoseconds now) override;
    void finish(Plan& plan, int error, Nanoseconds now);
    void end_all(Nanoseconds now);

    const Placement& placement_;
    const Selection selection_;
    Owner& owner_;
    Hierarchy hierarchy_;
    std::vector<Plan> plans_;
    std::uint64_t next_ = 0, next_to_post_ = 0, first_open_ = 0;
    std::uint64_t base_ = 0;  // the number whose plan is the first in memory
    std::size_t open_ = 0;
    int error_ = 0;
    std::optional<News> news_;
    std::uint64_t told_ = 0;  // a bit for each kind and algorithm
    PlanCounters counters_;
};

}  // namespace mcastcoll::levels
