// Shared by the tests of multicast over RDMA: interfaces of RDMA devices, sending and receiving.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/verbs_transport.h"

namespace mcastcoll::test {

using VerbsOwner = std::unique_ptr<transport::VerbsTransport>;

// Returns the options for the RDMA device with this index; skips the test if this machine has fewer connected
// RDMA devices.
transport::VerbsOptions options_of_device(std::size_t index);
VerbsOwner open_or_fail(const transport::VerbsOptions& options);
transport::Membership join_or_fail(transport::VerbsTransport& hub, const transport::SocketAddress& group);
// Returns the nth of a family of groups, which differs in each process.
transport::SocketAddress group_number(std::uint32_t n);

// Returns a datagram's bytes, different for each seed.
std::string bytes_of(std::size_t size, unsigned seed);
void say(transport::VerbsTransport& hub, const transport::SocketAddress& group, const std::string& text);

struct Received {
    std::string text;
    transport::SocketAddress source;
};
// Receives datagrams until there are `count`, or ten seconds have passed.
std::vector<Received> receive(transport::VerbsTransport& hub, std::size_t count);
// Returns the datagrams received before the first datagram equal to `mark`; fails the test if none is equal.
std::vector<Received> receive_until(transport::VerbsTransport& hub, const std::string& mark);
// Calls `ready` until it is true, for at most ten seconds.
bool eventually(const std::function<bool()>& ready);

}  // namespace mcastcoll::test
