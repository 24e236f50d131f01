// The watermark, and leaving (departure.h).
//
// Every checkpoint_every (32) operations, and earlier where checkpoint_bytes (512 KiB) are kept for repairs,
// the members agree on a watermark: the whole group has finished the operations below. Their slots and
// retransmit buffers are then reused, the most recently used buffer first, so that about sixteen buffers of
// 64 KiB stay in the cache. The watermark bounds the memory and the distance between the fastest and the
// slowest member. A packet from more than a window ahead also implies that the watermark has risen.
//
// Under policy sync (LA-MPI's delayed synchronisation) operation n uses channel n mod K
// (setting "channels", 16): nothing is sent per broadcast, the agreement takes place every K operations,
// and rank 0 multicasts the result.
//
// Leaving a closed group is the last agreement: a member stays until the whole group has closed, because a
// peer may need its retransmit buffer.
#pragma once

#include "engine/core.h"
#include "engine/recent_times.h"

namespace mcastcoll::engine {

// The agreement on the watermark. Each member sends the number of finished operations of its subtree up the
// gather tree (`watermark_up`). Rank 0 distributes the minimum down the tree (`watermark_down`), or by
// multicast under policy sync (`watermark_cast`). A member that waits for a higher watermark sends
// `watermark_request` to its parent, which answers or forwards the request.
class Checkpoint {
  public:
    explicit Checkpoint(Core& core) : core_(core), uninformed_(core.children) {}

    // The watermark that this member has received: all members have finished the operations below.
    std::uint64_t opened() const { return opened_; }
    // Children whose subtrees have reported less than this member has finished.
    RankList behind() const;
    // Called when the next operation has no free slot, or no free channel, as far as this member has been
    // informed. Sends a request to the parent after a deadline.
    void await();
    void on_up(const wire::Header& header);
    // Processes a watermark from the parent, or from rank 0 by multicast.
    void on_watermark(const wire::Header& header, Rank expected_sender);
    void on_request(const wire::Header& header);
    void on_leave_up(const wire::Header& header);
    void on_leave_down(const wire::Header& header);
    // Runs after operations have finished, a map has arrived or the group was closed.
    void settle();
    Nanoseconds next_deadline() const { return request_at_; }
    void on_timeout() {
        if (request_at_ <= core_.now) request();
    }
    bool next_multicast(Effect& effect) { return cast_due_ && make_multicast(effect); }
    bool next_message(Effect& effect) {
        return (up_ > up_sent_ || request_due_ || child_requests_ != 0 || !uninformed_.over() ||
                core_.departure.closing()) &&
               make_message(effect);
    }

  private:
    bool make_multicast(Effect& effect);
    bool make_message(Effect& effect);
    void follow_finished();
    void agree();
    void follow(std::uint64_t watermark);
    void request();
    bool receives(Rank child) const;

    Core& core_;
    std::uint64_t reached_ = 0;                        // finished by this member, in whole checkpoints
    std::uint64_t kept_until_ = 0;                     // Core::kept_bytes when reached_ last rose
    std::array<std::uint64_t, kMaxArity> finished_{};  // by child's subtree
    std::uint64_t up_ = 0, up_sent_ = 0;  // finished by the subtree; last value sent to the parent
    std::uint64_t down_ = 0;              // received from the parent, or agreed by rank 0
    Round uninformed_;                    // children that need down_
    std::uint64_t opened_ = 0;
    struct {
        std::uint64_t watermark = 0;
        std::uint32_t map_version = 0;
    } parked_;  // a watermark without its map, which has not arrived yet
    bool cast_due_ = false;
    std::uint32_t cast_target_ = 0;
    // Requests of this member and of its children for a higher watermark.
    Nanoseconds request_at_ = kNever, awaited_since_ = kNever;
    RecentTimes waits_;
    std::uint64_t requested_ = 0;  // watermark of the last request, plus 1: each watermark is requested once
    bool request_due_ = false;
    std::uint32_t child_requests_ = 0;  // bit i for child i
    std::array<std::uint64_t, kMaxArity> child_requests_above_{};
};

}  // namespace mcastcoll::engine
