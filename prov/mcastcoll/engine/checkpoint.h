// What everybody has finished (README.md: Checkpoints, and sync under Repair policies), and leaving
// (outcome.h).
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

// The watermark: how many operations everybody has finished. Members agree on it up and down a tree of
// messages: each tells its parent what its subtree has finished (up), rank 0 tells its children what all
// have, and they theirs (down), or it multicasts that. Whoever waits for it asks its parent, which asks its
// own until one knows.
class Checkpoint {
  public:
    explicit Checkpoint(Core& core) : core_(core), untold_(core.children) {}

    // Operations below are finished everywhere, and this member has been told so.
    std::uint64_t opened() const { return opened_; }
    // Children that have not told that they have finished as much as this member.
    RankList behind() const;
    // The next operation needs a slot, or a channel, that is not known to be free: asks when it takes long.
    void await();
    void on_up(const wire::Header& header);
    // The watermark, from the parent or from rank 0's multicast.
    void on_told(const wire::Header& header, Rank teller);
    void on_ask(const wire::Header& header);
    void on_leave_up(const wire::Header& header);
    void on_leave_down(const wire::Header& header);
    // After operations have finished, a verdict has come or the group was closed.
    void settle();
    Nanoseconds next_deadline() const { return ask_at_; }
    void on_timeout() {
        if (ask_at_ <= core_.now) ask();
    }
    bool next_multicast(Effect& effect) { return cast_due_ && make_multicast(effect); }
    bool next_message(Effect& effect) {
        return (up_ > up_told_ || ask_due_ || child_asks_ != 0 || !untold_.over() ||
                core_.departure.closing()) &&
               make_message(effect);
    }

  private:
    bool make_multicast(Effect& effect);
    bool make_message(Effect& effect);
    void follow_finished();
    void agree();
    void follow(std::uint64_t watermark);
    void ask();
    bool hears(Rank child) const;

    Core& core_;
    std::uint64_t reached_ = 0;     // operations that this member has finished, in whole checkpoints
    std::uint64_t kept_until_ = 0;  // bytes that it had kept for repairs by then, released or not
    std::array<std::uint64_t, kMaxArity> finished_{};  // by child
    std::uint64_t up_ = 0, up_told_ = 0;               // by the subtree; what the parent was told of it
    std::uint64_t down_ = 0;                           // told from above, or agreed on by rank 0
    Round untold_;                                     // of that
    std::uint64_t opened_ = 0;
    struct {
        std::uint64_t watermark = 0;
        std::uint32_t verdict = 0;
    } parked_;  // one that was told with a verdict that is not known yet
    bool cast_due_ = false;
    std::uint32_t cast_target_ = 0;
    // Questions: this member's own, and the children's.
    Nanoseconds ask_at_ = kNever, awaited_since_ = kNever;
    RecentTimes waits_;
    std::uint64_t asked_ = 0;  // more than this one's predecessor was asked for
    bool ask_due_ = false;
    std::uint32_t child_asks_ = 0;  // bit i for child i
    std::array<std::uint64_t, kMaxArity> child_asks_above_{};
};

}  // namespace mcastcoll::engine
