// The address vector of datagram endpoints: maps numbers to IPv4 or IPv6 addresses, and addresses to numbers
// for applications that request the source of a message.
#pragma once

#include <rdma/fi_domain.h>

#include <unordered_map>
#include <vector>

#include "datagram/domain.h"
#include "transport/socket_address.h"

namespace mcastcoll::datagram {

class AddressVector : public Object<AddressVector, fid_av, FI_CLASS_AV, Domain> {
  public:
    static int open(Domain& domain, fi_av_attr* attr, fid_av** av, void* context);
    using Object::find;
    using Object::Object;
    // Both functions need the domain's lock. Returns null if the number has no address.
    const transport::SocketAddress* find(fi_addr_t address) const;
    // Returns FI_ADDR_NOTAVAIL if the address was not inserted.
    fi_addr_t find(const transport::SocketAddress& address) const;

  private:
    int insert(const void* address, std::size_t count, fi_addr_t* numbers, std::uint64_t flags,
               void* context);
    int insert_service(const char* node, const char* service, fi_addr_t* number, std::uint64_t flags,
                       void* context);
    int remove(fi_addr_t* numbers, std::size_t count, std::uint64_t flags);
    int lookup(fi_addr_t number, void* address, std::size_t* length);
    fi_addr_t add(const transport::SocketAddress& address);

    std::vector<transport::SocketAddress> addresses_;  // by number; removed addresses are invalid
    std::vector<fi_addr_t> free_;
    std::unordered_map<transport::SocketAddress, fi_addr_t> numbers_;
};

// Writes the bytes of the address for which the buffer has room. length: size of the buffer, becomes the size
// of the address. Returns false if the buffer is too small.
bool write_address(const transport::SocketAddress& address, void* buffer, std::size_t& length);
// Resolves a name and a service; `passive` requests an address of this host. Without a node the result is the
// wildcard if passive, otherwise the loopback.
Result<transport::SocketAddress> resolve(const char* node, const char* service, int family, bool passive,
                                         bool numeric);

}  // namespace mcastcoll::datagram
