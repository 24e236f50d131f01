// A way that tries, and sleeps in epoll_wait when neither direction moves; edges only, so that sockets are
// registered once.
#pragma once

#include <cstdint>

#include "gateway/ways/way.h"

namespace mcastcoll::ways {

class PolledWay : public Way {
  public:
    using Way::Way;
    Result<void> run(int connection, int stream) final;

  protected:
    struct Socket {
        int descriptor = -1;
        bool readable = true, writable = true;
        bool peer_closed = false;  // after that there is no edge for what is left to read
    };

    virtual Result<void> prepare() { return {}; }
    // Move what can be moved now; true if there was anything.
    virtual Result<bool> wrap() = 0;
    virtual Result<bool> unwrap() = 0;
    // The socket's error queue has something.
    virtual Result<void> on_error(Socket&) { return {}; }

    // One read of an ordinary kind: notes what it says about the socket.  0 if nothing came; an end sets
    // `ended`.
    Result<std::size_t> receive(Socket& from, MutableBytes to, bool& ended);
    // What a call that returned -1 means: nothing if the socket is just not ready.
    Result<void> failed(const char* what, bool& ready);

    Socket connection_, stream_;
    bool wrapped_all_ = false, unwrapped_all_ = false;

  private:
    Result<void> wait(int epoll);
};

// What came from the stream, until whole frames are there.
class Unwrapper {
  public:
    Unwrapper() : bytes_(kReceiveBuffer) {}
    MutableBytes room();
    void add(std::size_t size) { tail_ += size; }
    // The next frame's payload, or what is left of it, or nothing until more has come.
    Result<Bytes> next() const;
    void sent(std::size_t size);
    bool empty() const { return head_ == tail_; }

  private:
    std::vector<std::byte> bytes_;
    std::size_t head_ = 0, tail_ = 0;
    std::size_t done_ = 0;  // of the payload at the head
};

}  // namespace mcastcoll::ways
