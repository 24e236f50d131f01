// One UD queue pair with the memory of its datagrams: a ring of send slots, and posted receive slots. The hub
// that owns the queue (verbs_hub.cc) joins groups.
//
// Sending: small datagrams are sent inline. Others are copied into a slot of the ring, because the
// application's memory is not registered. Every nth request is signalled, and its completion frees all slots
// up to that request. A run of datagrams is posted as one chain of requests, with one doorbell.
//
// Receiving: requests are reposted in batches, also as chains. A datagram without a posted request is lost,
// and the device does not report the loss.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>

#include <array>
#include <memory>

#include "transport/verbs_address.h"
#include "transport/verbs_transport.h"

namespace mcastcoll::transport {

// Owners of rdma-core's objects. Results of the destroy functions are ignored, since no action is possible.
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

// Destination of a datagram in the device's form.
struct VerbsTarget {
    ibv_ah* address = nullptr;
    std::uint32_t key = 0;  // the Q_Key
};

class VerbsQueue {
  public:
    // `id` must be bound to a device. open() creates its queue pair.
    explicit VerbsQueue(rdma_cm_id& id) : id_(id) {}
    VerbsQueue(const VerbsQueue&) = delete;
    VerbsQueue& operator=(const VerbsQueue&) = delete;
    ~VerbsQueue();
    Result<void> open(const VerbsOptions& options, const ibv_device_attr& device, const ibv_port_attr& port);

    Sent send(std::span<const Datagram> datagrams, const VerbsTarget& to, MulticastCounters& counters);
    std::size_t receive(const SocketAddress& own, DeliverDatagram deliver, MulticastCounters& counters);
    // Requests an event for the next datagram; false if one has arrived already.
    bool prepare_wait();
    int descriptor() const { return channel_->fd; }

    std::size_t max_payload() const { return max_payload_; }
    std::size_t receives() const { return receives_; }
    std::uint32_t number() const { return id_.qp->qp_num; }
    // The device or the queue pair has failed: nothing is sent or received until revive() returns true.
    bool broken() const { return broken_; }
    // Restores a failed queue pair, at most 8 times in its life. Datagrams in flight are lost. Returns false
    // if the queue pair stays failed.
    bool revive();
    // Number of send requests so far, and number known to be complete.
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
    // Maximum size of inline data; reduced if the device supports less.
    std::size_t inline_bytes_ = 128;
    // Every nth send request is signalled.
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
    std::uint64_t send_errors_ = 0;  // reported by completions, not yet counted
    std::array<ibv_send_wr, kBatch> send_requests_{};
    std::array<ibv_sge, 2 * kBatch> send_pieces_{};
    Completions completions_{};
    std::size_t waiting_ = 0;  // completions taken by prepare_wait()
    // Receive requests to be posted: a chain, so that one call posts many.
    std::array<ibv_recv_wr, kBatch> receive_requests_{};
    std::array<ibv_sge, kBatch> receive_pieces_{};
    std::size_t to_post_ = 0;
};

}  // namespace mcastcoll::transport
