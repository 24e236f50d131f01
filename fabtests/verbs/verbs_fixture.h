// What the tests of multicast over RDMA share: interfaces of RDMA devices, and saying and hearing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/verbs_options.h"

namespace mcastcoll::test {

using VerbsOwner = std::unique_ptr<VerbsTransport>;

// Skips the test when this machine has fewer connected RDMA devices.
VerbsOptions options_of_device(std::size_t index);
VerbsOwner open_or_fail(const VerbsOptions& options);
Membership join_or_fail(VerbsTransport& hub, const SocketAddress& group);
// The nth of a family of groups, other ones in each process.
SocketAddress group_number(std::uint32_t n);

// A datagram's bytes, different ones for each seed.
std::string bytes_of(std::size_t size, unsigned seed);
void say(VerbsTransport& hub, const SocketAddress& group, const std::string& text);

struct Heard {
    std::string text;
    SocketAddress source;
};
// What comes until there are `count`, or ten seconds are over.
std::vector<Heard> hear(VerbsTransport& hub, std::size_t count);
// What comes before the first datagram that says `mark`; fails the test when that does not come.
std::vector<Heard> hear_until(VerbsTransport& hub, const std::string& mark);
// Calls it until it is true, for at most ten seconds.
bool eventually(const std::function<bool()>& ready);

}  // namespace mcastcoll::test
