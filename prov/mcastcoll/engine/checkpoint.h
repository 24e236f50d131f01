// What everybody has finished (watermark.h), and leaving (departure.h), as packets and messages.
//
// Under the sync policy operation n uses channel n mod K, and a channel is used again when everybody has
// finished the operation before. That acknowledgement is this checkpoint, with every = K; only its verdict is
// multicast. Who waits for it in vain asks its parent in the tree.
#pragma once

#include "engine/core.h"
#include "engine/watermark.h"

namespace mcastcoll::engine {

class Checkpoint {
  public:
    explicit Checkpoint(Core& core) : core_(core), watermark_(core.children, core.parent) {}

    // Operations below are finished everywhere, and this member has been told so.
    std::uint64_t opened() const { return watermark_.opened(); }
    // Children that are behind this member.
    RankList behind() const { return watermark_.behind(reached_); }
    // The next operation needs a slot, or a channel, that is not known to be free.
    void await();
    void on_up(const wire::Header& header);
    void on_down(const wire::Header& header);
    void on_ask(const wire::Header& header);
    void on_cast(const wire::Header& header);
    void on_leave_up(const wire::Header& header);
    void on_leave_down(const wire::Header& header);
    // After operations have finished, a verdict has come or the group was closed.
    void settle();
    Nanoseconds next_deadline() const { return watermark_.next_deadline(); }
    void on_timeout() { watermark_.on_timeout(core_.now); }
    bool next_multicast(Effect& effect) { return watermark_.to_cast() != 0 && make_multicast(effect); }
    bool next_message(Effect& effect) {
        return (watermark_.may_speak() || core_.departure.closing()) && make_message(effect);
    }

  private:
    bool make_multicast(Effect& effect);
    bool make_message(Effect& effect);
    void follow_finished();
    void take(const wire::Header& header);
    void raise(std::uint64_t watermark);
    bool hears(Rank child) const;

    Core& core_;
    Watermark watermark_;
    std::uint64_t reached_ = 0;     // operations that this member has finished, in whole checkpoints
    std::uint64_t kept_until_ = 0;  // bytes that it had kept for repairs by then, released or not
    std::uint32_t parked_for_ = 0;  // the verdict that a watermark waits for
    std::uint32_t cast_target_ = 0;
};

}  // namespace mcastcoll::engine
