// Opens UD multicast over RDMA, where this build and this machine have it.
#pragma once

#include <memory>

#include "transport/multicast_transport.h"

namespace mcastcoll {

// The device is the one that has the interface's address.
struct VerbsOptions : MulticastOptions {
    // Datagrams that can wait to be received. Fewer where the device, or the memory that may be locked,
    // does not allow so many: receives() of what is opened.
    std::size_t receives = 1024;
    // Datagrams that can be on their way out.
    std::size_t sends = 256;
    int join_timeout_ms = 2000;
};

class VerbsTransport : public JoinableTransport {
  public:
    // What others see as the source of what is sent from here.
    virtual const SocketAddress& local_address() const = 0;
    virtual std::size_t receives() const = 0;
    // "mlx5_0:1, InfiniBand"
    virtual const std::string& device() const = 0;
    // Whether addresses can be sent to that are not joined.
    virtual bool sends_anywhere() const = 0;
    // Joins a group whose address the network's management chooses, which some of InfiniBand insist on;
    // others join it by that address. Ethernet has no such management, and refuses.
    virtual Result<Membership> join_any() = 0;
};

// ENOSYS: this build is without; ENODEV: this machine is, or the interface.
Result<std::unique_ptr<VerbsTransport>> open_verbs(const VerbsOptions& options);

}  // namespace mcastcoll
