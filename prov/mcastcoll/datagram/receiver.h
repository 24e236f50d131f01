// The receiving side of a datagram endpoint: posted buffers in the order of posting, and the sockets whose
// datagrams go straight into them. What nobody has posted a buffer for waits in the kernel, and is lost when
// that is full.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <vector>

#include "base/file_descriptor.h"
#include "base/function_ref.h"
#include "base/result.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi::datagram {

inline constexpr std::size_t kMostPieces = 4;

struct PostedReceive {
    void* context = nullptr;
    std::uint64_t flags = 0;
    std::array<iovec, kMostPieces> pieces{};
    std::size_t count = 0;

    std::size_t size() const;
};

struct Datagram {
    SocketAddress source;
    std::size_t length = 0;  // of the datagram; it may be longer than the buffer
    bool multicast = false;  // came through a group
};

class Receiver {
  public:
    // True: the datagram has been taken, and the buffer with it. False: it is dropped, and the buffer stays
    // posted.
    using Take = FunctionRef<bool(const PostedReceive&, const Datagram&)>;

    Result<void> open(std::size_t most_posted);
    Result<void> listen(int descriptor, bool group);
    // Makes descriptor() readable, too; what it stands for comes through put().
    Result<void> watch(int descriptor);
    void stop(int descriptor);

    bool post(const PostedReceive& receive);
    // The one with this context that was posted first; false when there is none.
    bool cancel(const void* context, PostedReceive& cancelled);
    // The first one; false when there is none.
    bool take(PostedReceive& first);
    std::size_t posted() const { return count_; }

    // At most so many datagrams.
    void receive(std::size_t most, Take take);
    // A datagram of a group that is no socket's. A buffer must be posted.
    void put(Bytes bytes, const SocketAddress& source, Take take);
    // Readable when a socket is.
    int descriptor() const { return poll_set_.get(); }

  private:
    static constexpr std::size_t kBatch = 16;

    Result<void> add(int descriptor, std::uint64_t kind);

    PostedReceive& at(std::size_t place) { return ring_[(head_ + place) % ring_.size()]; }
    // How many were received, wanted or not.
    std::size_t receive_batch(int descriptor, bool group, std::size_t most, Take take);
    void keep_dropped(std::size_t got, const std::array<bool, kBatch>& taken);

    FileDescriptor poll_set_;
    std::vector<PostedReceive> ring_;
    std::size_t head_ = 0, count_ = 0;
    std::array<mmsghdr, kBatch> messages_{};
    std::array<SocketAddress, kBatch> sources_;
};

}  // namespace mcastcoll::ofi::datagram
