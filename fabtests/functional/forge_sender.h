// What speaks to members' private endpoints as their own messages do, and where those are.
#pragma once

#include <netinet/in.h>

#include <vector>

#include "functional/datagram_node.h"
#include "support/options.h"
#include "wire/peer.h"

namespace mcastcoll::fabtest {

sockaddr_in local_port(std::uint16_t port);
// Ports of 127.0.0.1 that these processes listen at.
std::vector<sockaddr_in> listeners_of(const std::vector<pid_t>& processes);

// An endpoint of the provider that members' messages go through.
class Sender {
  public:
    // On the interface with this address.
    explicit Sender(const Options& options, const char* own_address = "127.0.0.1");
    fi_addr_t peer(const sockaddr_in& address);
    // False: it takes nothing now, or is none to send to.
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
