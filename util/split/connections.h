// Connections that go through gateways: what the library knows of them (ledger.cc), the true peer and whether
// the preface has passed; and what passes before the program's own bytes (prefaces.cc).  README.md says how.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "relay/preface.h"

namespace mcastcoll::split {

enum class Stage : std::uint8_t {
    settled,  // the preface has passed
    to_send,  // the connection to the gateway is not made yet, or has taken only a part of the preface
    to_take,  // accepted from the gateway, and nothing has come yet
};

struct Connection {
    std::uint64_t cookie = 0;
    Stage stage = Stage::settled;
    std::uint8_t sent = 0;  // bytes of the preface
    relay::Endpoint peer;
    std::array<std::byte, relay::kPrefaceSize> preface{};
};

// What is known is under one lock, also of the thread that sends prefaces.  While it is held signals wait, so
// that a handler that writes cannot meet the lock its own thread holds.
class Locked {
  public:
    Locked() noexcept;
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    sigset_t before_;
};

// How many entries are not settled: what calls look at that mostly concern other sockets.
extern std::atomic<std::uint32_t> unsettled;

// 0 if there is none: no socket, or no cookies in this kernel.
std::uint64_t cookie_of(int fd) noexcept;

// All of these under Locked.  An entry stays where it is until it is removed or another one is added.
Connection* find(std::uint64_t cookie) noexcept;
// In place of one with the same cookie; false without memory.
bool add(const Connection& connection) noexcept;
void remove(std::uint64_t cookie) noexcept;
void settle(Connection& connection) noexcept;

// For a call that moves bytes, while the connection is at this stage: attempts to settle it, under Locked,
// and says whether the call may go on; otherwise errno says why not.  An attempt gives 0, EAGAIN, or what
// else the call is to fail of.  May wait, where the socket blocks.
bool may_go_on(int fd, int flags, Stage stage, FunctionRef<int(Connection&)> attempt) noexcept;

// As connect(2): a connection to the target, which is in another site, by way of the gateway.
int connect_through(int fd, const relay::Endpoint& gateway, const relay::Endpoint& target) noexcept;

// Of a connection that came from the gateway's address: takes the preface and puts the true peer in place of
// the gateway's. False, with errno, if what came is a preface that this library does not understand.
bool receive_accepted(int fd, relay::Endpoint& peer) noexcept;

// Whether the program may write or read now; otherwise errno says why not.  May wait, where the socket
// blocks.
bool may_write(int fd, int flags) noexcept;
bool may_read(int fd, int flags) noexcept;

}  // namespace mcastcoll::split
