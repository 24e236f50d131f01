// What the library knows of connections that go through gateways: the true peer, and whether the preface has
// passed.
//
// A connection is known by its socket's cookie, which the kernel never gives twice, not by a descriptor:
// duplicates, descriptors that a program closes behind our back and fork() then need no attention.  Entries
// of sockets that are gone are swept out when there are many.
//
// Everything here is under one lock that also serves the waiter.  While it is held signals wait, so that a
// handler that writes cannot meet the lock its own thread holds.
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

class Locked {
  public:
    Locked() noexcept;
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    sigset_t before_;
};

// How many entries there are, and how many of them are not settled: what calls look at that mostly concern
// other sockets.
extern std::atomic<std::uint32_t> entries, unsettled;

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

}  // namespace mcastcoll::split
