// Join messages, exchanged before a group exists. Datagrams carry the hellos to the service address of the
// leader (rank 0), its answers, and a survey, in which members measure their distances. Messages to private
// endpoints carry the welcome, which forms the group. FORMAT.md, "The join".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "wire/peer.h"

namespace mcastcoll::wire {

inline constexpr std::uint16_t kJoinMagic = 0x4d4a;  // "MJ"
// Version of join messages and of authentication (protection.h). The header, the beginning of a hello with
// its id, and answers never change, so that members of different releases can recognise each other.
inline constexpr std::uint8_t kJoinVersion = 12;
inline constexpr std::size_t kMaxTableBytes = 4096;
// A welcome grows with the members, and travels in parts of this size.
inline constexpr std::size_t kPartBytes = 32768;
inline constexpr std::size_t kMaxGroupAddresses = 16;
inline constexpr std::uint8_t kAddressSchemes = 4;
inline constexpr std::size_t kMaxSurveyed = 16;  // networks in a survey
inline constexpr std::uint32_t kMaxError = 0xffff;
inline constexpr std::uint64_t kNotMeasured = UINT64_MAX;

enum class JoinKind : std::uint8_t {
    hello = 1,    // datagram to the leader: the sender has called join; its addresses
    ack = 2,      // datagram back: the hello has arrived
    welcome = 3,  // for all members, in parts: the group exists
    abort = 4,    // datagram or message: this join has failed
    // Datagrams by which rank 0 measures the distances between networks.
    survey = 5,    // to a member: request to measure the round trips to the named members
    echo = 6,      // between two members, there and back, to measure a round trip
    surveyed = 7,  // to rank 0: the measured times
    ended = 8,     // message: this group has failed
    waiting = 9,   // datagram to a peer, after a long wait: asks whether its part of the group has failed
    part = 10,     // message to a host's leader, which forwards it: a part of the welcome
    // Message to another member of the host: the group exists, and the host's shared memory has the rest.
    host_welcome = 11,
    collect = 12,          // message to a member that has gathered hellos: request for these
    gathered_hellos = 13,  // message back: these hellos
    // Before a join whose secret MUNGE carries; not authenticated (group/secret_exchange.h).
    key_request = 14,  // datagram to the receiver of the sender's hello: request for the secret
    key_reply = 15,    // datagram back: a credential that contains the secret
};

// Identifies a join: members call the joins of one ordered list of members in the same order.
struct JoinId {
    std::uint64_t list_hash = 0;  // of all members' addresses in rank order
    std::uint32_t sequence = 0;   // number of earlier joins of that list by this member
    auto operator<=>(const JoinId&) const = default;
};

// Parameters of one member for UD multicast over RDMA.
struct VerbsOffer {
    std::uint32_t datagram_bytes = 0;  // longest datagram, 0: not available
    std::uint32_t window = 0;          // fragments that fit in its receive buffer
    std::uint8_t room = 0;             // 1: can join another group
    ByteString source{};               // encoded source address of its multicasts
    bool operator==(const VerbsOffer&) const = default;
};

struct Hello {
    JoinId id;
    Rank rank{};
    std::uint32_t members = 0;
    std::uint32_t datagram_bytes = 0;  // longest multicast of this member, 0: no multicast
    std::uint32_t window = 0;          // fragments that fit in its receive buffer
    std::uint8_t address_family = 0;   // 4 or 6
    std::uint8_t room = 0;             // 1: can join another multicast address
    std::uint8_t gathered = 0;         // 1: all hellos sent through this member are gathered
    std::uint8_t gmac = 0;             // 1: prefers tags by AES-128-GMAC to UMAC-64
    VerbsOffer verbs{};
    Peer peer;
};

// Parameters of a group, the same for all its members.
struct Agreement {
    JoinId id;  // rank 0's id of the join, used in the group's messages by all members
    GroupKey key{};
    Epoch epoch{};
    std::uint8_t security = 0;        // wire::Security
    std::uint8_t mac = 0;             // wire::MacKind
    std::uint8_t address_scheme = 0;  // engine::AddressScheme
    // Encoded socket addresses, one for each range of ranks; without a port for UD. Empty: no multicast.
    std::vector<ByteString> group_addresses;
    std::uint32_t fragment_bytes = 0;
    std::uint32_t window = 0;
    std::uint8_t repair = 0;
    std::uint8_t redundancy = 0;
    std::uint32_t channels = 0;
    std::uint8_t root_sync = 0;
    std::uint32_t root_delay_us = 0;
    ByteString policy{};     // encoded policy of the topology: which levels are used, and how
    ByteString selection{};  // encoded selection of algorithms (levels/selection.h)
};

struct Welcome : Agreement {
    std::vector<Peer> peers;               // by rank
    std::vector<std::uint8_t> range_of;    // by rank: index of the member's address in group_addresses
    std::vector<std::uint32_t> sequences;  // by rank: JoinId::sequence of the join at the member
};

// Beginning of a message that may need an answer.
struct MessageHead {
    JoinId to;                   // id of the join at the receiver of this message
    std::uint32_t sequence = 0;  // JoinId::sequence of the join at the receiver of the answer
    ByteString answer_to;        // private address for the answer
    bool operator==(const MessageHead&) const = default;
    JoinId answer_id() const { return {to.list_hash, sequence}; }
};

struct GatheredHellos {
    JoinId id;
    Rank from{};
    std::vector<Hello> hellos;
};
// Largest number of hellos in one message.
inline constexpr std::size_t kMaxGatheredHellos = 1024;

// The head names rank 0, to which a member that cannot join the group answers.
struct WelcomePart {
    MessageHead head;
    std::uint32_t offset = 0, total = 0;  // bytes of the whole welcome
    ByteString bytes{};
};

struct HostWelcome {
    MessageHead head;
    ByteString host_point;  // encoded watch point of the host's leader (transport/watch_point.h)
    Agreement agreement;
};

struct Answer {  // ack and abort
    JoinKind kind = JoinKind::ack;
    JoinId id;
    std::uint32_t error = 0;  // positive FI_E* code of an abort
};

struct Ended {
    JoinId id;                // of the group: with rank 0's sequence
    std::uint32_t error = 0;  // positive FI_E* code
    Rank lost = kNoRank;      // the member whose loss is the reason
};

struct Waiting {
    JoinId id;  // of the group
    Rank from{};
};

// Beginning of survey datagrams, which name members by rank; the receiver gets the addresses from the
// application.
struct SurveyHead {
    JoinId id;                   // id of the join at the receiver
    std::uint32_t sequence = 0;  // JoinId::sequence of the join at the sender
    Rank from{};
    bool operator==(const SurveyHead&) const = default;
};

struct Survey {
    struct Target {
        Rank rank{};
        std::uint32_t sequence = 0;
        bool operator==(const Target&) const = default;
    };
    SurveyHead head;
    std::vector<Target> targets;
};

struct Echo {
    SurveyHead head;
    std::uint64_t stamp = 0;  // chosen by the sender
    bool back = false;
};

struct Surveyed {
    SurveyHead head;
    // In the order of the targets; kNotMeasured: no answer in time.
    std::vector<std::uint64_t> round_trips_ns;
};

// Requests the secret of a join. The list hash of the id is computed without the secret.
struct KeyRequest {
    JoinId id;
    Rank rank{};
    std::uint32_t members = 0;
    std::uint64_t nonce = 0;  // random, never reused
    bool operator==(const KeyRequest&) const = default;
};
// Length of a key request. A reply is no longer, so that a request with a forged source address makes no host
// send more bytes to that address than the forger sent.
inline constexpr std::size_t kKeyRequestBytes = 512;

struct KeyReply {
    JoinId id;  // of the request
    Rank to{};
    std::uint64_t nonce = 0;
    ByteString credential{};
};

ByteString encode(const Hello& hello);
ByteString encode(const Welcome& welcome);
ByteString encode_collect(const MessageHead& head);
ByteString encode(const GatheredHellos& gathered);
ByteString encode(const WelcomePart& part);
ByteString encode(const HostWelcome& welcome);
// version: of the join messages of the receiver, which may differ: it reads only its own version.
ByteString encode(const Answer& answer, std::uint8_t version = kJoinVersion);
ByteString encode(const Ended& ended);
ByteString encode(const Waiting& waiting);
ByteString encode(const Survey& survey);
ByteString encode(const Echo& echo);
ByteString encode(const Surveyed& surveyed);
ByteString encode(const KeyRequest& request);
ByteString encode(const KeyReply& reply);

// Returns the list hash of a join message of this version, by which the receiver finds the key that checks
// the message's tag. Checks nothing but magic, version and length.
std::optional<std::uint64_t> peek_list(Bytes message);
// The kind of a well-formed join message; nothing for a wrong magic, version, length or CRC-32C.
std::optional<JoinKind> join_kind(Bytes bytes);
std::optional<Hello> decode_hello(Bytes bytes);
// The part of another version's hello that is the same in all versions.
struct ForeignHello {
    std::uint8_t version = 0;
    JoinId id;
};
std::optional<ForeignHello> decode_foreign_hello(Bytes bytes);
// members: expected number of members.
std::optional<Welcome> decode_welcome(Bytes bytes, std::size_t members);
std::optional<MessageHead> decode_collect(Bytes bytes);
std::optional<GatheredHellos> decode_gathered_hellos(Bytes bytes);
std::optional<WelcomePart> decode_part(Bytes bytes);
std::optional<HostWelcome> decode_host_welcome(Bytes bytes);
std::optional<Answer> decode_answer(Bytes bytes);
std::optional<Ended> decode_ended(Bytes bytes);
std::optional<Waiting> decode_waiting(Bytes bytes);
std::optional<Survey> decode_survey(Bytes bytes);
std::optional<Echo> decode_echo(Bytes bytes);
std::optional<Surveyed> decode_surveyed(Bytes bytes);
std::optional<KeyRequest> decode_key_request(Bytes bytes);
std::optional<KeyReply> decode_key_reply(Bytes bytes);

// FNV-1a over length-prefixed addresses in order; distinguishes lists, without cryptographic protection.
std::uint64_t hash_addresses(const std::vector<ByteString>& addresses);

}  // namespace mcastcoll::wire
