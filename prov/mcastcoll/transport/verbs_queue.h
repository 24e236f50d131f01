// One UD queue pair with the memory of its datagrams: a ring of them to send from, and many that wait to be
// received into. It knows nothing of groups; the hub above it does.
//
// Sending: small datagrams go with the request, others are copied into a slot of the ring, because an
// application's memory is not registered. Every nth request says when it is done, which frees all slots up to
// it. A run of datagrams is one chain of requests, so one doorbell.
// Receiving: requests are posted again in batches, also as chains. What finds no request posted is lost; the
// device does not say so.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>

#include <array>
#include <memory>

#include "transport/verbs_address.h"
#include "transport/verbs_options.h"

namespace mcastcoll {

// Owners of what rdma-core makes. What its functions return nobody could act upon here.
template <auto destroy>
struct VerbsDestroyer {
    template <typename Object>
    void operator()(Object* object) const {
        (void)destroy(object);
    }
};
using CompletionChannelOwner = std::unique_ptr<ibv_comp_channel, VerbsDestroyer<ibv_destroy_comp_channel>>;
using CompletionQueueOwner = std::unique_ptr<ibv_cq, VerbsDestroyer<ibv_destroy_cq>>;
using MemoryOwner = std::unique_ptr<ibv_mr, VerbsDestroyer<ibv_dereg_mr>>;
using AddressOwner = std::unique_ptr<ibv_ah, VerbsDestroyer<ibv_destroy_ah>>;
struct MemoryUnmapper {
    std::size_t size = 0;
    void operator()(std::byte* at) const { ::munmap(at, size); }
};
using DeviceMemory = std::unique_ptr<std::byte[], MemoryUnmapper>;

// Where a datagram goes, as the device wants it.
struct VerbsTarget {
    ibv_ah* address = nullptr;
    std::uint32_t key = 0;  // the Q_Key
};

class VerbsQueue {
  public:
    // The identifier is bound to a device; it gets the queue pair when the queue is opened.
    explicit VerbsQueue(rdma_cm_id& id) : id_(id) {}
    VerbsQueue(const VerbsQueue&) = delete;
    VerbsQueue& operator=(const VerbsQueue&) = delete;
    ~VerbsQueue();
    Result<void> open(const VerbsOptions& options, const ibv_device_attr& device, const ibv_port_attr& port);

    Sent send(std::span<const Datagram> datagrams, const VerbsTarget& to, MulticastCounters& counters);
    std::size_t receive(const SocketAddress& own, DeliverDatagram deliver, MulticastCounters& counters);
    // Asks for an event with the next datagram; false when there is one already.
    bool prepare_wait();
    int descriptor() const { return channel_->fd; }

    std::size_t max_payload() const { return max_payload_; }
    std::size_t receives() const { return receives_; }
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
    using Completions = std::array<ibv_wc, kBatch>;

    Result<void> map_memory();
    Result<void> open_queue_pair();
    Result<void> post_first_receives();
    bool restart();
    std::size_t poll(ibv_cq& queue, Completions& into);
    void note_sent(const ibv_wc& completion);
    bool compose(std::size_t slot, const Datagram& datagram, const VerbsTarget& to);
    Sent post_chain(std::size_t count, MulticastCounters& counters);
    void deliver_one(const ibv_wc& completion, const SocketAddress& own, DeliverDatagram deliver,
                     MulticastCounters& counters);
    void post_again(std::size_t slot);
    void flush_posts();
    std::byte* receive_slot(std::size_t slot) const { return memory_.get() + slot * receive_stride_; }
    std::byte* send_slot(std::uint64_t index) const {
        return memory_.get() + receives_ * receive_stride_ + index % sends_ * send_stride_;
    }

    rdma_cm_id& id_;
    std::size_t max_payload_ = 0;
    // Datagrams up to so many bytes are handed to the device with the request, where it takes so many.
    std::size_t inline_bytes_ = 128;
    // One of so many sends says when it is done.
    std::size_t signal_every_ = 16;
    std::size_t receives_ = 0, sends_ = 0;
    std::size_t receive_stride_ = 0, send_stride_ = 0;
    CompletionChannelOwner channel_;
    CompletionQueueOwner received_, sent_;
    DeviceMemory memory_;
    MemoryOwner region_;
    bool broken_ = false;
    unsigned revivals_ = 0;

    std::uint64_t posted_ = 0, done_ = 0;
    std::uint64_t send_errors_ = 0;  // told by completions, not yet counted
    std::array<ibv_send_wr, kBatch> send_requests_{};
    std::array<ibv_sge, 2 * kBatch> send_pieces_{};
    Completions completions_{};
    std::size_t waiting_ = 0;  // completions that prepare_wait() took
    // Requests to receive that wait to be posted: a chain, so that many cost one call.
    std::array<ibv_recv_wr, kBatch> receive_requests_{};
    std::array<ibv_sge, kBatch> receive_pieces_{};
    std::size_t to_post_ = 0;
};

}  // namespace mcastcoll
