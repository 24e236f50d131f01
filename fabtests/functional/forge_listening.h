// What an attacker hears of members.
#pragma once

#include <netinet/in.h>

#include <optional>
#include <set>
#include <vector>

#include "support/board.h"
#include "wire/join.h"
#include "wire/packet.h"

namespace mcastcoll::fabtest {

// Where these ranks' service sockets are.
sockaddr_in service_address(const Board& board, unsigned rank);

// The datagrams that members' joins send each other, as every host hears them that their packets pass.
class Wiretap {
  public:
    struct Heard {
        wire::ByteString word;
        sockaddr_in from{}, to{};
    };
    Wiretap();
    ~Wiretap();
    Wiretap(const Wiretap&) = delete;
    Wiretap& operator=(const Wiretap&) = delete;

    // Of these members, all that has come since.
    void listen(const Board& board, unsigned members);
    const std::vector<Heard>& heard() const { return heard_; }
    // The latest list of members that a greeting was for.
    std::optional<std::uint64_t> list() const;
    // All of them: a request for a secret goes by another than the greetings.
    std::set<std::uint64_t> lists() const;

  private:
    int descriptor_;
    std::vector<Heard> heard_;
};

// What forged payloads are made of.
inline constexpr std::byte kForgedByte{0x5a};

// The members' multicasts. Anybody on a member's host can hear them: the socket's port is shared, and the
// kernel tells who has joined what.
class Eavesdropper {
  public:
    explicit Eavesdropper(const std::vector<sockaddr_in>& groups);
    ~Eavesdropper();
    Eavesdropper(const Eavesdropper&) = delete;
    Eavesdropper& operator=(const Eavesdropper&) = delete;

    struct Heard {
        wire::Header header;
        wire::HeaderBytes bytes;
        sockaddr_in from, to;
    };
    // The latest genuine fragment of a broadcast so far.
    const std::optional<Heard>& latest();

  private:
    const std::vector<sockaddr_in> groups_;
    std::vector<int> descriptors_;
    std::optional<Heard> latest_;
};

}  // namespace mcastcoll::fabtest
