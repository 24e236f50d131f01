// One UD queue pair with the memory of its datagrams: a ring of them to send from, and many that wait to be
// received into. It knows nothing of groups; the hub above it does.
//
// Sending: small datagrams go with the request, others are copied into a slot of the ring, because an
// application's memory is not registered. Every nth request says when it is done, which frees all slots up to
// it. A run of datagrams is one chain of requests, so one doorbell.
// Receiving: requests are posted again in batches, also as chains. What finds no request posted is lost; the
// device does not say so.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "transport/multicast_transport.h"
#include "transport/verbs_address.h"
#include "transport/verbs_options.h"
#include "transport/verbs_owner.h"

namespace mcastcoll {

// Where a datagram goes, as the device wants it.
struct VerbsTarget {
    ibv_ah* address = nullptr;
    std::uint32_t key = 0;  // the Q_Key
};

// Requests to receive that wait to be posted: a chain, so that many cost one call.
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

class VerbsQueue {
  public:
    // The identifier is bound to a device; it gets the queue pair.
    static Result<std::unique_ptr<VerbsQueue>> open(rdma_cm_id& id, const VerbsOptions& options);
    VerbsQueue(const VerbsQueue&) = delete;
    VerbsQueue& operator=(const VerbsQueue&) = delete;
    ~VerbsQueue();

    std::size_t send(std::span<const Datagram> datagrams, const VerbsTarget& to, MulticastCounters& counters);
    int take_error() { return std::exchange(error_, 0); }
    std::size_t receive(const SocketAddress& own, DeliverDatagram deliver, MulticastCounters& counters);
    // Asks for an event with the next datagram; false when there is one already.
    bool prepare_wait();
    int descriptor() const { return channel_->fd; }

    std::size_t max_payload() const { return max_payload_; }
    std::size_t receives() const { return receives_; }
    std::size_t inline_bytes() const { return inline_bytes_; }
    std::uint32_t number() const { return id_.qp->qp_num; }
    // The device, or the queue pair, has failed: nothing is sent or received until revive() was true.
    bool broken() const { return broken_; }
    // Brings a failed queue pair back, a few times in its life; what was on its way is lost. False: it
    // stays failed.
    bool revive();
    // Requests to send so far, and those that are known to be done.
    std::uint64_t posted() const { return posted_; }
    std::uint64_t done() const { return done_; }
    void reap();

  private:
    static constexpr std::size_t kBatch = MulticastTransport::kBatch;

    explicit VerbsQueue(rdma_cm_id& id) : id_(id) {}
    Result<void> open_all(const VerbsOptions& options);
    Result<void> map_memory();
    Result<void> open_queue_pair();
    Result<void> post_first_receives();
    bool restart();
    void note_sent(const ibv_wc& completion);
    bool compose(std::size_t slot, const Datagram& datagram, const VerbsTarget& to);
    std::size_t post_chain(std::size_t count, MulticastCounters& counters);
    void deliver_one(const ibv_wc& completion, const SocketAddress& own, DeliverDatagram deliver,
                     MulticastCounters& counters);
    void post_again(std::size_t slot);
    void flush_posts();
    std::byte* receive_slot(std::size_t slot) const { return memory_.data() + slot * receive_stride_; }
    std::byte* send_slot(std::uint64_t index) const {
        return memory_.data() + receives_ * receive_stride_ + index % sends_ * send_stride_;
    }

    rdma_cm_id& id_;
    std::size_t max_payload_ = 0, inline_bytes_ = 0;
    std::size_t receives_ = 0, sends_ = 0, signal_every_ = 1;
    std::size_t receive_stride_ = 0, send_stride_ = 0;
    CompletionChannelOwner channel_;
    CompletionQueueOwner received_, sent_;
    DeviceMemory memory_;
    MemoryOwner region_;
    bool broken_ = false;
    int error_ = 0;
    unsigned revivals_ = 0;

    std::uint64_t posted_ = 0, done_ = 0;
    std::uint64_t send_errors_ = 0;  // told by completions, not yet counted
    std::array<ibv_send_wr, kBatch> send_requests_{};
    std::array<ibv_sge, 2 * kBatch> send_pieces_{};
    std::array<ibv_wc, kBatch> completions_{};
    std::size_t waiting_ = 0;  // completions that prepare_wait() took
    VerbsReceives to_post_;
};

}  // namespace mcastcoll
