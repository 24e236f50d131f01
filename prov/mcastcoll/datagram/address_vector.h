// The address vector of datagram endpoints: IPv4 or IPv6 addresses by number, and numbers by address for
// those who want to know where a message came from.
#pragma once

#include <rdma/fi_domain.h>

#include <unordered_map>
#include <vector>

#include "datagram/fabric.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi::datagram {

class AddressVector : public Object<AddressVector, fid_av, FI_CLASS_AV, Domain> {
  public:
    static int open(Domain& domain, fi_av_attr* attr, fid_av** av, void* context);
    using Object::find;
    using Object::Object;
    // With the domain's lock held. Null: there is no such address.
    const SocketAddress* find(fi_addr_t address) const;
    fi_addr_t find(const SocketAddress& address) const;

  private:
    int insert(const void* address, std::size_t count, fi_addr_t* numbers, std::uint64_t flags,
               void* context);
    int insert_service(const char* node, const char* service, fi_addr_t* number, std::uint64_t flags,
                       void* context);
    int remove(fi_addr_t* numbers, std::size_t count, std::uint64_t flags);
    int lookup(fi_addr_t number, void* address, std::size_t* length);
    fi_addr_t add(const SocketAddress& address);

    std::vector<SocketAddress> addresses_;  // removed ones are invalid
    std::vector<fi_addr_t> free_;
    std::unordered_map<SocketAddress, fi_addr_t> numbers_;
};

// As far as there is room; `length` becomes what it takes. False: there is not enough.
bool write_address(const SocketAddress& address, void* buffer, std::size_t& length);
// Resolves a name and a service; `passive` is for an address of our own. Without a node it is the wildcard if
// passive, the loopback otherwise.
Result<SocketAddress> resolve(const char* node, const char* service, int family, bool passive, bool numeric);

}  // namespace mcastcoll::ofi::datagram
