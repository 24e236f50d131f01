// Requests to receive that wait to be posted: a chain, so that many cost one call.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

#include "transport/multicast_transport.h"

namespace mcastcoll {

class VerbsReceives {
  public:
    static constexpr std::size_t kMost = MulticastTransport::kBatch;

    // Call only when not full. The piece is the slot's memory.
    void add(std::size_t slot, const ibv_sge& piece) {
        pieces_[count_] = piece;
        ibv_recv_wr& request = requests_[count_];
        request.wr_id = slot;
        request.sg_list = &pieces_[count_];
        request.num_sge = 1;
        request.next = nullptr;
        if (count_ > 0) requests_[count_ - 1].next = &request;
        ++count_;
    }
    std::size_t count() const { return count_; }
    bool full() const { return count_ == kMost; }
    void forget() { count_ = 0; }
    // False: the queue pair takes none.
    bool post(ibv_qp& queue) {
        if (count_ == 0) return true;
        count_ = 0;
        ibv_recv_wr* refused = nullptr;
        return ibv_post_recv(&queue, requests_.data(), &refused) == 0;
    }

  private:
    std::array<ibv_recv_wr, kMost> requests_{};
    std::array<ibv_sge, kMost> pieces_{};
    std::size_t count_ = 0;
};

}  // namespace mcastcoll
