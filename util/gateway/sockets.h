// TCP socket functions of the gateway.
#pragma once

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/types.h"
#include "sites/endpoint.h"

namespace mcastcoll::gateway {

using sites::Endpoint;

Result<FileDescriptor> listen_at(const Endpoint& endpoint);
// Starts a connection and returns at once: later the socket becomes writable, or gets an error.
Result<FileDescriptor> connect_to(const Endpoint& endpoint,
                                  const std::optional<Endpoint>& from = std::nullopt);
Endpoint name_of(int descriptor);

// Returns a socket option; empty if the socket lacks the option.
template <typename Value>
std::optional<Value> option_of(int descriptor, int level, int option) {
    Value value{};
    socklen_t size = sizeof value;
    if (getsockopt(descriptor, level, option, &value, &size) != 0) return std::nullopt;
    return value;
}
template <typename Value>
void set_option(int descriptor, int level, int option, const Value& value) {
    setsockopt(descriptor, level, option, &value, sizeof value);
}

// Sends from `done` on until the socket would block; false if the socket is broken.
bool send_what_fits(int descriptor, Bytes bytes, std::size_t& done);
// Makes closing the descriptor send a reset instead of an end.
void close_with_reset(FileDescriptor& descriptor);
Result<void> set_congestion(int descriptor, const std::string& name);

}  // namespace mcastcoll::gateway
