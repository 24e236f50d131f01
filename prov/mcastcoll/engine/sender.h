// Stage 1 of the two-stage broadcast (Hoefler, Siebert, Rehm 2007): the root multicasts fragments.
//
// Several addresses (address_choice.h): under scheme `chained` the root multicasts to one range after the
// other. Under scheme `tree` the root multicasts to its own range only. The leader of a range is its first
// member that receives and is received. For a root of another range the leader counts as deaf: it hangs in
// the message tree below the root, and relays the data to its range in datagrams of kind `relay`. The other
// members receive the multicast, so ring, NAKs and reports are as in a group with one address. The root
// supplies leaders by message only within its window, so a leader cannot overrun its range. If a range with
// receiving members has no able leader, roots multicast to all ranges; every member derives this from the
// reachability map.
//
// Streaming roots: a root may begin with a prefix of its data (`Collective::ready`) and extend the prefix
// with Engine::advance(). Of a large message, whole fragments are multicast and supplied as they become
// ready; NAKs for the rest are queued. An incomplete small message is held, together with later broadcasts of
// the same root: receivers would take a later packet as a sign that the earlier message was lost. While data
// is missing at the root, fragments carry a flag (kPartialFlag). During silence receivers then send a NAK for
// a single fragment, never for the first window, and no NAK to the root. Receivers request more after the
// second answer by message instead of the first, since the first answer may only have been faster than the
// multicast. (Checked by test_simulator_stream with 16 members and a root that gets 1 MB in steps of 20 ms:
// all members together receive fewer fragments by message than the broadcast has.)
#pragma once

#include "engine/flow_control.h"
#include "engine/holds.h"
#include "engine/parity_code.h"
#include "engine/supplier.h"

namespace mcastcoll::engine {

class Sender {
  public:
    Sender(Core& core, FlowControl& flow, Supplier& supplier, Holds& holds)
        : core_(core),
          flow_(flow),
          supplier_(supplier),
          holds_(holds),
          delayed_copies_(2 * std::size_t{core.config.operation_slots}),
          code_(core.config.fragment_bytes),
          parity_(core.config.memory, core.config.parity_buffers > 0 ? kSentTogether : 0,
                  core.config.fragment_bytes) {}

    // On the root of a broadcast: takes over the ready prefix as present fragments.
    void advance(Slot& slot);
    bool next_multicast(Slot& slot, Effect& effect) { return sends(slot) && make_multicast(slot, effect); }
    // The operation has packets to multicast, now or when the window opens.
    bool waits(const Slot& slot) const {
        return sends(slot) && (slot.multicasting.next < limit(slot) || slot.multicasting.parity_due() ||
                               slot.multicasting.copies_due() || resends(slot));
    }
    Nanoseconds next_deadline() const {
        return delayed_copies_.empty() ? kNever : delayed_copies_.front().at;
    }
    void on_timeout();

  private:
    // Checked first: most operations belong to other roots.
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
    Ring<Timed> delayed_copies_;  // operations whose next copy waits for the end of a burst of losses
    ParityCode code_;
    Pool parity_;
    std::array<std::byte*, kSentTogether> rows_{};
    std::size_t next_row_ = 0;
};

}  // namespace mcastcoll::engine
