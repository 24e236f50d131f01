// Takes in fragments from whatever source is first: the multicast, the supplier, or parity, before or after
// the post. A bitmap records which are here.
#pragma once

#include "engine/flow_control.h"
#include "engine/header_prediction.h"
#include "engine/restorer.h"
#include "engine/supplier.h"

namespace mcastcoll::engine {

class Receiver {
  public:
    Receiver(Core& core, FlowControl& flow, RootRepairer& root_repairer, Repairer& repairer,
             Supplier& supplier)
        : core_(core),
          flow_(flow),
          root_repairer_(root_repairer),
          repairer_(repairer),
          supplier_(supplier),
          restorer_(core),
          prediction_(core),
          early_buffers_(core.config.memory, core.config.early_buffers,
                         std::size_t{core.config.window} * core.config.fragment_bytes) {}

    // The operation is posted: moves early data into the caller's buffer, or discards the data.
    void adopt_early(Slot& slot, bool keep);
    // Starts to receive an operation of another root.
    void begin(Slot& slot);
    // Takes a packet that matches the header prediction; false: the packet must take the slow path.
    bool take_predicted(Bytes packet);
    void on_fragment(const wire::Header& header, Bytes payload);
    // To be called with the packet that on_fragment() has processed.
    void predict_after(const wire::Header& header, Bytes packet) {
        prediction_.predict_after(header, packet);
    }
    void on_parity(const wire::Header& header, Bytes payload);
    void on_data(const wire::Header& header, Bytes payload);

  private:
    bool later_was_received(Slot& slot);
    bool fits(Slot& slot, const wire::Header& header, std::uint32_t count, Bytes payload);
    bool cannot_come(const Slot& slot, std::uint32_t index) const;
    bool may_relay(Rank sender) const {
        return core_.config.relay && core_.config.range(sender) == core_.config.range(core_.self());
    }
    bool awaits_spares(const Slot& slot) const;
    bool learn_length(Slot& slot, const wire::Header& header);
    void note_late(Slot& slot, bool repeated);
    void note_multicast(Slot& slot, std::uint32_t end);
    void take_restored(Slot& slot);
    void note_here(Slot& slot, std::uint32_t fragment);
    void reveal_earlier(Rank sender, std::uint64_t before);
    bool store(Slot& slot, std::uint32_t fragment, Bytes payload);
    void put(Slot& slot, std::uint32_t fragment, Bytes payload);
    void after_store(Slot& slot);

    Core& core_;
    FlowControl& flow_;
    RootRepairer& root_repairer_;
    Repairer& repairer_;
    Supplier& supplier_;
    Restorer restorer_;
    HeaderPrediction prediction_;
    Pool early_buffers_;  // for the first window of large operations that are not posted
};

}  // namespace mcastcoll::engine
