// The receiving side of a datagram endpoint: posted buffers in order of posting, the sockets (datagrams go
// straight into the buffers) and the queue pair (datagrams are copied). Datagrams without a posted
// buffer wait in the kernel or the device and are lost when that is full.
#pragma once

#include <sys/socket.h>

#include <array>
#include <deque>
#include <vector>

#include "base/file_descriptor.h"
#include "base/function_ref.h"
#include "base/ring.h"
#include "datagram/posted_receive.h"
#include "transport/multicast_transport.h"

namespace mcastcoll::datagram {

struct Datagram {
    transport::SocketAddress source;
    std::size_t length = 0;  // of the datagram, which may be longer than the buffer
    bool multicast = false;  // received through a group
};

class Receiver {
  public:
    // Takes a received datagram and its buffer. False: the datagram is dropped, and the buffer stays posted.
    using Take = FunctionRef<bool(const PostedReceive&, const Datagram&)>;

    Result<void> open(std::size_t max_posted);
    Result<void> listen(int descriptor, bool group);
    // Receives groups by this queue pair, which must outlive this object.
    Result<void> listen(transport::MulticastTransport& queue_pair);
    void stop(int descriptor);

    bool post(const PostedReceive& receive) { return posted_.push(receive); }
    // Removes the first posted receive with this context; false if there is none.
    bool cancel(const void* context, PostedReceive& cancelled);
    // Removes the first posted receive; false if there is none.
    bool take(PostedReceive& first);
    std::size_t posted() const { return posted_.size(); }

    // Receives at most `max` datagrams.
    void receive(std::size_t max, Take take);
    // Readable if something can be received, provided that prepare_wait() returned true.
    int descriptor() const { return poll_set_.get(); }
    bool prepare_wait() {
        return queue_pair_ == nullptr || (waiting_.empty() && queue_pair_->prepare_wait());
    }

  private:
    static constexpr std::size_t kBatch = 16;
    struct Waiting {
        std::vector<std::byte> bytes;
        transport::SocketAddress source;
    };

    Result<void> add(int descriptor, std::uint64_t kind);
    void receive_batch(int descriptor, bool group, std::size_t max, Take take);
    void receive_from_queue_pair(std::size_t max, Take take);
    void put(Bytes bytes, const transport::SocketAddress& source, Take take);

    FileDescriptor poll_set_;
    transport::MulticastTransport* queue_pair_ = nullptr;
    // Datagrams that arrived without a buffer: a queue pair delivers a whole batch, which may be larger than
    // the number of posted buffers.
    std::deque<Waiting> waiting_;
    Ring<PostedReceive> posted_{0};
    std::array<mmsghdr, kBatch> messages_{};
    std::array<transport::SocketAddress, kBatch> sources_;
};

}  // namespace mcastcoll::datagram
