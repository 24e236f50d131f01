// Somebody who has connected and not yet said who they are: a process (preface), a gateway (hello) or a
// browser of the status page ("GET").  They have a few seconds, and there are only so many of them: whoever
// comes from an address that is neither this site's nor a gateway's goes first.
#pragma once

#include <array>
#include <string>

#include "gateway/loop.h"
#include "gateway/sockets.h"
#include "trunk/hello.h"

namespace mcastcoll::gateway {

class Gateway;

class Newcomer final : public Watched {
  public:
    Newcomer(Gateway& gateway, FileDescriptor socket, const Endpoint& from);

    void on_events(std::uint32_t events) override;
    void close();
    Nanoseconds deadline() const { return deadline_; }
    // Its address without the port.
    const Endpoint& host() const { return host_; }
    bool is_stranger() const { return stranger_; }

  private:
    std::size_t wanted() const;
    void listen();
    void decide();
    void refuse(std::uint64_t& counter);
    void reply();

    Gateway& gateway_;
    FileDescriptor socket_;
    const Endpoint host_;
    const bool ours_, stranger_;
    const Nanoseconds deadline_;
    std::array<std::byte, 1024> words_{};
    std::size_t size_ = 0;
    std::string reply_;
    std::size_t replied_ = 0;
};

}  // namespace mcastcoll::gateway
