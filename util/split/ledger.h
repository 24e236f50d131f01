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
    bool accepted = false;
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
bool add(
    const Connection& connection) noexcept;  // in place of one with the same cookie; false without memory
void remove(std::uint64_t cookie) noexcept;
void settle(Connection& connection) noexcept;
// To be called when a call had to look: an entry that nobody will settle, its socket being gone, must not
// make all calls look for ever.
void tidy_now_and_then() noexcept;

}  // namespace mcastcoll::split
