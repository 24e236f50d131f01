// Opens UD multicast over RDMA, if this build and this host support it.
#pragma once

#include <memory>

#include "transport/joinable_transport.h"
#include "transport/membership.h"
#include "transport/multicast_options.h"

namespace mcastcoll::transport {

// The device is the one with the interface's address.
struct VerbsOptions : MulticastOptions {
    // Maximum number of datagrams waiting to be received. Reduced if the device or the limit of locked memory
    // does not allow so many: see receives() of the result.
    std::size_t receives = 1024;
    // Maximum number of datagrams in flight.
    std::size_t sends = 256;
    int join_timeout_ms = 2000;
};

class VerbsTransport : public JoinableTransport {
  public:
    // The source address of datagrams sent from here, for receivers.
    virtual const SocketAddress& local_address() const = 0;
    virtual std::size_t receives() const = 0;
    // "mlx5_0:1, InfiniBand"
    virtual const std::string& device() const = 0;
    // Whether datagrams can be sent to addresses without joining.
    virtual bool sends_anywhere() const = 0;
    // Joins a group whose address the subnet manager chooses, which some InfiniBand networks insist on. Other
    // members join by this address. Ethernet has no subnet manager and refuses.
    virtual Result<Membership> join_any() = 0;
};

// ENOSYS: built without rdma-core. ENODEV: the host or the interface has no RDMA device.
Result<std::unique_ptr<VerbsTransport>> open_verbs(const VerbsOptions& options);

}  // namespace mcastcoll::transport
