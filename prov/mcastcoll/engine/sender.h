// Stage one of the two-stage broadcast (Hoefler, Siebert, Rehm 2007): the root multicasts fragments, to one
// range of addresses after the other (chained), or to its own only, and leaders multicast onward to the
// others what they get (tree; ranges.h, README.md: Leaders of ranges).
#pragma once

#include "engine/parity.h"
#include "engine/supplier.h"

namespace mcastcoll::engine {

// What a root holds back: operations that it does not multicast yet, in order, because the root
// synchronisation waits for others (policy.h), or because the caller has brought only part of a small
// message.
class Holds {
  public:
    explicit Holds(Core& core) : core_(core), holds_(2 * std::size_t{core.config.operation_slots}) {}

    // As root of a broadcast that has just been posted.
    void begin(Slot& slot);
    // As a receiver of one: tells the root, unless its multicast was quicker.
    void tell_entered(Slot& slot);
    void on_entered(const wire::Header& header);
    // Lets go what waits for nothing any more.
    void release();
    // The first in the queue may wait for its caller's bytes, which no time brings.
    Nanoseconds next_deadline() const { return holds_.empty() ? kNever : first_deadline(); }
    bool next_message(Slot& slot, Effect& effect) {
        return slot.multicasting.entered_due && make_message(slot, effect);
    }

  private:
    Nanoseconds first_deadline() const;
    bool make_message(Slot& slot, Effect& effect);
    bool awaits_bytes(const Slot& slot) const;

    Core& core_;
    Ring<Timed> holds_;  // until when at most
};

class Sender {
  public:
    Sender(Core& core, FlowControl& flow, Supplier& supplier, Holds& holds)
        : core_(core),
          flow_(flow),
          supplier_(supplier),
          holds_(holds),
          late_copies_(2 * std::size_t{core.config.operation_slots}),
          code_(core.config.fragment_bytes),
          parity_(core.config.memory, core.config.parity_buffers > 0 ? kSentTogether : 0,
                  core.config.fragment_bytes) {}

    // As root of a broadcast: what is ready becomes what is here.
    void advance(Slot& slot);
    bool next_multicast(Slot& slot, Effect& effect) { return sends(slot) && make_multicast(slot, effect); }
    // It has something to multicast, now or when the window opens.
    bool waits(const Slot& slot) const {
        return sends(slot) && (slot.multicasting.next < limit(slot) || slot.multicasting.parity_due() ||
                               slot.multicasting.copies_due() || resends(slot));
    }
    Nanoseconds next_deadline() const { return late_copies_.empty() ? kNever : late_copies_.front().at; }
    void on_timeout();

  private:
    // Most operations are other roots'.
    bool sends(const Slot& slot) const {
        return slot.offers() && (core_.is_root(slot) || core_.relays(slot));
    }
    bool make_multicast(Slot& slot, Effect& effect);
    std::uint32_t limit(const Slot& slot) const;
    bool resends(const Slot& slot) const;
    bool next_resend(Slot& slot, Effect& effect);
    void end_block(Slot& slot);
    bool next_parity(Slot& slot, Effect& effect);
    void await_copy(Slot& slot);
    bool next_copy(Slot& slot, Effect& effect);
    bool take_range(const Slot& slot, Effect& effect, std::uint32_t& target) const;
    void make_fragment(const Slot& slot, std::uint32_t index, Effect& effect, bool repeated = false);

    Core& core_;
    FlowControl& flow_;
    Supplier& supplier_;
    Holds& holds_;
    Ring<Timed> late_copies_;
    ParityCode code_;
    Pool parity_;
    std::array<std::byte*, kSentTogether> rows_{};
    std::size_t next_row_ = 0;
};

}  // namespace mcastcoll::engine
