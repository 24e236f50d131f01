// A sender that finds members' private endpoints and addresses them like the members' own messages.
#pragma once

#include <netinet/in.h>

#include <vector>

#include "functional/datagram_node.h"
#include "support/options.h"
#include "wire/peer.h"

namespace mcastcoll::fabtest {

sockaddr_in local_port(std::uint16_t port);
// The ports of 127.0.0.1 at which these processes listen.
std::vector<sockaddr_in> listeners_of(const std::vector<pid_t>& processes);

// An endpoint of the provider that carries members' messages.
class Sender {
  public:
    // Opens the endpoint on the interface with this address.
    explicit Sender(const Options& options, const char* own_address = "127.0.0.1");
    fi_addr_t peer(const sockaddr_in& address);
    // Returns false if the endpoint accepts nothing now, or the peer is not reachable.
    bool send(fi_addr_t peer, Bytes bytes);

  private:
    Info info_{nullptr, &fi_freeinfo};
    Fid<fid_fabric> fabric_;
    Fid<fid_domain> domain_;
    Fid<fid_av> av_;
    Fid<fid_cq> cq_;
    Fid<fid_ep> ep_;
};

}  // namespace mcastcoll::fabtest
