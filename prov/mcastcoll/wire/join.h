// What members say to each other before they are a group: greetings to the leader (rank 0) as datagrams to
// its service address, its answer, and the welcome that makes the group, as a message to everybody's private
// endpoint. JOIN section of FORMAT.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "wire/types.h"

namespace mcastcoll::wire {

inline constexpr std::uint16_t kJoinMagic = 0x4d4a;  // "MJ"
inline constexpr std::size_t kMostAddressBytes = 128;
inline constexpr std::size_t kMostMembers = 256;

enum class JoinKind : std::uint8_t {
    hello = 1,    // datagram to the leader: I have called join, here is how to reach me
    ack = 2,      // datagram back: noted, be patient
    welcome = 3,  // message from the leader: the group exists
    abort = 4,    // datagram or message: this join has failed
};

// Which join: members call the joins of one ordered list of members in the same order.
struct JoinId {
    std::uint64_t list_hash = 0;  // of all members' addresses in rank order
    std::uint32_t sequence = 0;   // how many joins of that list this member had called before
    auto operator<=>(const JoinId&) const = default;
};

using ByteString = std::vector<std::byte>;

struct Peer {
    ByteString private_address;  // of the private inner endpoint
    ByteString
        multicast_source;    // encoded address that its multicasts come from; empty when it has no multicast
    ByteString watch_point;  // encoded, see transport/peer_watch.h
};

struct Hello {
    JoinId id;
    Rank rank{};
    std::uint32_t members = 0;
    std::uint32_t datagram_bytes = 0;  // longest datagram it can multicast, 0 = no multicast
    std::uint32_t window = 0;          // fragments it can be sent at once
    std::uint8_t address_family = 0;   // 4 or 6
    Peer peer;
};

struct Welcome {
    JoinId id;
    GroupKey key{};
    Epoch epoch{};
    ByteString group_address;  // encoded socket address; empty: no multicast
    std::uint32_t fragment_bytes = 0;
    std::uint32_t window = 0;
    std::uint8_t repair = 0;
    std::vector<Peer> peers;  // by rank
};

struct Answer {  // ack and abort
    JoinKind kind = JoinKind::ack;
    JoinId id;
    std::uint32_t error = 0;  // positive FI_E* code of an abort
};

ByteString encode(const Hello& hello);
ByteString encode(const Welcome& welcome);
ByteString encode(const Answer& answer);

// The kind of a well-formed join message, or nothing: wrong magic, version, length or CRC-32C.
std::optional<JoinKind> join_kind(Bytes bytes);
std::optional<Hello> decode_hello(Bytes bytes);
std::optional<Welcome> decode_welcome(Bytes bytes);
std::optional<Answer> decode_answer(Bytes bytes);

// FNV-1a over length-prefixed addresses in order; not for protection, only to tell lists apart.
std::uint64_t hash_addresses(const std::vector<ByteString>& addresses);

}  // namespace mcastcoll::wire
