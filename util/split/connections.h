// Connections that go through gateways: the true peer of each, and whether its preface (gateway/preface.h)
// has passed, in ledger.cc; and the transfer of prefaces, in prefaces.cc. See README.md.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "gateway/preface.h"

namespace mcastcoll::split {

enum class Stage : std::uint8_t {
    settled,  // the preface has passed
    to_send,  // the connection to the gateway is incomplete, or has taken only a part of the preface
    to_take,  // accepted from the gateway; no data has arrived
};

struct Connection {
    std::uint64_t cookie = 0;
    Stage stage = Stage::settled;
    std::uint8_t sent = 0;  // bytes of the preface
    sites::Endpoint peer;
    std::array<std::byte, gateway::kPrefaceSize> preface{};
};

// Number of entries that are not settled: a fast check for calls on unrelated sockets.
extern std::atomic<std::uint32_t> unsettled;

// Returns the kernel's number of a socket (SO_COOKIE); 0 if `fd` is no socket, or the kernel has no cookies.
std::uint64_t cookie_of(int fd) noexcept;

// Call find(), add(), remove() and settle() under Locked. An entry's address is valid until the next add or
// remove.
Connection* find(std::uint64_t cookie) noexcept;
// Replaces an entry with the same cookie; false without memory.
bool add(const Connection& connection) noexcept;
void remove(std::uint64_t cookie) noexcept;
void settle(Connection& connection) noexcept;

// Handles the preface before a program's call that moves bytes, while the connection is at this stage: calls
// `attempt` under Locked until the connection is settled, and waits in between if the socket blocks. Returns
// whether the program's call may proceed; otherwise sets errno. `attempt` returns 0, EAGAIN, or the error of
// the program's call.
bool may_go_on(int fd, int flags, Stage stage, FunctionRef<int(Connection&)> attempt) noexcept;

// Like connect(2), for a target in another site: connects through the gateway.
int connect_through(int fd, const sites::Endpoint& gateway, const sites::Endpoint& target) noexcept;

// Takes the preface from a connection that comes from the gateway's address, and replaces `peer` by the true
// peer. Returns false, with errno, if this library does not understand the preface, or has no memory.
bool receive_accepted(int fd, sites::Endpoint& peer) noexcept;

// Whether the program may write now, after the preface was sent; otherwise sets errno. Waits if the socket
// blocks.
bool may_write(int fd, int flags) noexcept;
// Whether the program may read now, after the preface was taken; otherwise sets errno. Waits if the socket
// blocks.
bool may_read(int fd, int flags) noexcept;

}  // namespace mcastcoll::split
