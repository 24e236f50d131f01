// Composite operations: operations that consist of several.
//
// The hierarchy below runs one operation through the levels. Some operations are faster as a composite
// operation (`CompositeOperation`), a sequence of such operations (its parts):
//
//   chains     An allgather becomes one broadcast of each member's block, directly into its place in the
//              result: each member multicasts its block once, where a ring of messages sends it n - 1 times.
//              All members post the parts in the order of ranks, a window of parts ahead. If all roots
//              started together, receivers would be overrun. So there are C chains, and the root of part i
//              starts when part i - C has arrived there. Until then the root holds its data back, like a
//              leader that still waits for data. (Khalilov, Di Girolamo, Chrapek, Nudelman, Bloch, Hoefler:
//              Network-Offloaded Bandwidth-Optimal Broadcast and Allgather for Distributed AI, SC24.)
//   reduction  A small allgather becomes an allreduce with bitwise or over vectors that are zero except for a
//              member's own block: up the tree, and one multicast down.
//   split      A large allreduce becomes a reduce_scatter by messages, then chains of the slices. The
//              broadcast of a slice is let go when its root has the slice. The input may be the result: its
//              slice j is read only for the message to member j, and j's broadcast comes after that message.
//
// Every other operation is a single part. Levels distinguish operations by counting, so members must post the
// same parts in the same order: all parts of an operation come before those of the next. No part waits for a
// later part to be posted, and a held part waits only for a part that every member posted before it. By
// induction over the order of parts this is free of deadlock, whatever the window.
//
// The selection chooses the algorithm from arguments equal on every member. The memory of composite
// operations is reserved when the group is made, except for the slice of an in-place allreduce, which grows
// on demand.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "levels/hierarchy.h"
#include "levels/selection.h"
#include "reduce/slices.h"

namespace mcastcoll::levels {

struct CompositeCounters {
    // Successful operations, and the bytes of their messages, vectors or blocks.
    std::uint64_t operations = 0, bytes = 0;
    // Operations per algorithm; bytes of this member's own blocks and slices, as broadcast.
    std::uint64_t reductions = 0, chains = 0, splits = 0, block_bytes_broadcast = 0;
};

class Planner final : private Hierarchy::Owner {
  public:
    // The first three parameters are the hierarchy's. The owner is notified of each accepted operation once.
    Planner(const Placement& placement, std::array<Level*, kLevels> levels, std::size_t max_open,
            Owner& owner, Selection selection = {});

    // These functions do the same as the hierarchy's functions of these names.
    int submit(const Request& request, Nanoseconds now);
    bool progress(Nanoseconds now);
    Nanoseconds next_deadline() const { return hierarchy_.next_deadline(); }
    std::size_t open_operations() const { return open_; }
    void fail(int error, Nanoseconds now);
    int error() const { return error_; }

    // The algorithm for this operation.
    Choice decide(const Request& request) const;

    // A choice that was made for the first time.
    struct News {
        Kind kind = Kind::broadcast;
        Choice choice;
        std::uint64_t bytes = 0;  // of the longest buffer
    };
    std::optional<News> poll_news() { return std::exchange(news_, {}); }
    const CompositeCounters& counters() const { return counters_; }

  private:
    static constexpr std::uint32_t kNoPart = UINT32_MAX;
    struct CompositeOperation {
        Request request;
        Choice choice;
        bool over = false;
        std::uint32_t parts = 1, posted = 0, ended = 0;
        std::uint32_t window = 1;     // parts that may be open at once
        std::size_t next_offset = 0;  // of the next block in the result
        // For chains and split: the part that this member broadcasts, and the part that must arrive before.
        std::uint32_t own = kNoPart, awaited = kNoPart;
        bool awaiting_part = false, awaiting_slice = false, held = false;
        std::uint64_t number = 0;        // of the own broadcast in the hierarchy
        std::vector<std::byte> scratch;  // this member's slice in an in-place allreduce
        bool may_begin() const { return !awaiting_part && !awaiting_slice; }
    };

    CompositeOperation& at(std::uint64_t number) {
        return composites_[(number - base_) % composites_.size()];
    }
    void note_choice(const Request& request, const Choice& choice);
    void set_up(CompositeOperation& composite);
    void set_up_chains(CompositeOperation& composite);
    std::size_t block_bytes(const CompositeOperation& composite, std::uint32_t root) const;
    std::uint64_t longest(const Request& request) const {
        return longest_buffer(request.kind, request.bytes, placement_.members());
    }
    reduce::Slice slice_for(const CompositeOperation& composite, std::uint32_t member) const;
    Request scatter_part(CompositeOperation& composite) const;
    Request part_of(CompositeOperation& composite) const;
    bool post_parts(Nanoseconds now);
    void on_complete(std::uint64_t cookie, int error, Nanoseconds now) override;
    void finish(CompositeOperation& composite, int error, Nanoseconds now);
    void end_all(Nanoseconds now);

    const Placement& placement_;
    const Selection selection_;
    Owner& owner_;
    Hierarchy hierarchy_;
    std::vector<CompositeOperation> composites_;
    std::uint64_t next_ = 0, next_to_post_ = 0, first_open_ = 0;
    std::uint64_t base_ = 0;  // number of the first entry of composites_
    std::size_t open_ = 0;
    int error_ = 0;
    std::optional<News> news_;
    std::uint64_t noted_ = 0;  // a bit per kind and algorithm
    CompositeCounters counters_;
};

}  // namespace mcastcoll::levels
