// Listeners of an attacker, which receive members' join messages and multicasts.
#pragma once

#include <netinet/in.h>

#include <optional>
#include <set>
#include <vector>

#include "support/board.h"
#include "wire/join.h"
#include "wire/packet.h"

namespace mcastcoll::fabtest {

// The address of a rank's service socket, which receives the messages of joins.
sockaddr_in service_address(const Board& board, unsigned rank);

// Receives the datagrams sent between members during a join, as any host on the path can.
class Wiretap {
  public:
    struct Captured {
        wire::ByteString message;
        sockaddr_in from{}, to{};
    };
    Wiretap();
    ~Wiretap();
    Wiretap(const Wiretap&) = delete;
    Wiretap& operator=(const Wiretap&) = delete;

    // Reads the join messages of these members since the last call.
    void listen(const Board& board, unsigned members);
    const std::vector<Captured>& captured() const { return captured_; }
    // The list hash in the latest join message received.
    std::optional<std::uint64_t> list() const;
    // All list hashes: a key request contains a different hash than the hellos.
    std::set<std::uint64_t> lists() const;

  private:
    int descriptor_;
    std::vector<Captured> captured_;
};

// The byte that fills forged payloads.
inline constexpr std::byte kForgedByte{0x5a};

// Receives the members' multicasts. Any user of a member's host can: the socket's port is shared, and the
// kernel lists the joined groups.
class Eavesdropper {
  public:
    explicit Eavesdropper(const std::vector<sockaddr_in>& groups);
    ~Eavesdropper();
    Eavesdropper(const Eavesdropper&) = delete;
    Eavesdropper& operator=(const Eavesdropper&) = delete;

    struct Captured {
        wire::Header header;
        wire::HeaderBytes bytes;
        sockaddr_in from, to;
    };
    // The latest genuine fragment of a broadcast.
    const std::optional<Captured>& latest();

  private:
    const std::vector<sockaddr_in> groups_;
    std::vector<int> descriptors_;
    std::optional<Captured> latest_;
};

}  // namespace mcastcoll::fabtest
