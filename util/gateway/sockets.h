// What the gateway does to TCP sockets.
#pragma once

#include <linux/tcp.h>
#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/types.h"
#include "relay/endpoint.h"

namespace mcastcoll::gateway {

using relay::Endpoint;

Result<FileDescriptor> listen_at(const Endpoint& endpoint);
// Does not wait: the socket becomes writable, or gets an error.
Result<FileDescriptor> connect_to(const Endpoint& endpoint,
                                  const std::optional<Endpoint>& from = std::nullopt);
Endpoint name_of(int descriptor);
int pending_error(int descriptor);
// Sends from `done` on until the socket takes no more; false if it is broken.
bool send_what_fits(int descriptor, Bytes bytes, std::size_t& done);
// For a process's connection: sends at once, and notices after a minute that a host is gone, even if nothing
// is sent to it.
void prepare_for_process(int descriptor);
// For a trunk's stream: sends at once, a window over its round trip, whatever the congestion control, and not
// all at once after a pause.  Unacknowledged data and silence end the connection after this long.
void prepare_for_stream(int descriptor, Nanoseconds silence);
// The peer gets a reset instead of an end when the descriptor is closed.
void close_with_reset(FileDescriptor& descriptor);
Result<void> set_congestion(int descriptor, const std::string& name);
std::string congestion_of(int descriptor);
// A few unsent bytes at most wait in the kernel, the rest with us, where small frames can go ahead.
void limit_unsent(int descriptor, int bytes);
std::optional<tcp_info> info_of(int descriptor);
int send_buffer_of(int descriptor);
// Bytes that are not sent, or not acknowledged.
int queued_in(int descriptor);
void set_send_buffer(int descriptor, int bytes);

}  // namespace mcastcoll::gateway
