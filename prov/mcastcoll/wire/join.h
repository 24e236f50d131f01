// What members say to each other before they are a group: greetings to the leader (rank 0) as datagrams to
// its service address, its answer, a survey among members by datagrams likewise, and the welcome that makes
// the group, in messages to private endpoints. JOIN section of FORMAT.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "wire/peer.h"

namespace mcastcoll::wire {

inline constexpr std::uint16_t kJoinMagic = 0x4d4a;  // "MJ"
// Of this part and of proofs (protection.h). Whatever changes: the header, a hello's beginning with its id,
// and answers never do, so that members of different releases can tell each other apart.
inline constexpr std::uint8_t kJoinVersion = 12;
inline constexpr std::size_t kMostTableBytes = 4096;
// A welcome grows with the members, and travels in parts of so many bytes.
inline constexpr std::size_t kPartBytes = 32768;
inline constexpr std::size_t kMostGroupAddresses = 16;
inline constexpr std::uint8_t kGroupPlans = 4;
inline constexpr std::size_t kMostSurveyed = 16;  // networks
inline constexpr std::uint32_t kMostError = 0xffff;
inline constexpr std::uint64_t kNotMeasured = UINT64_MAX;

enum class JoinKind : std::uint8_t {
    hello = 1,    // datagram to the leader: I have called join, here is how to reach me
    ack = 2,      // datagram back: noted, be patient
    welcome = 3,  // of all members, in parts: the group exists
    abort = 4,    // datagram or message: this join has failed
    // Datagrams by which rank 0 finds out how far networks are from each other.
    survey = 5,    // to a member: measure round trips to these
    echo = 6,      // between two members: there and back
    surveyed = 7,  // to rank 0: what was measured
    ended = 8,     // message: this group has failed
    waiting = 9,   // datagram between two members: I wait for you; has your part of this group failed?
    part = 10,     // message to the leader of a host, which passes it on to others: of the welcome
    // Message to another of a host: the group exists, and the host's memory tells the rest.
    host_welcome = 11,
    collect = 12,  // message to who has greeted for others: send me their greetings
    guests = 13,   // message back: these
    // Before a join whose secret MUNGE carries. Nothing proves them; group/secret_exchange.h.
    key_request = 14,  // datagram to who gathers this one's greeting: hand me the secret
    key_reply = 15,    // datagram back: a credential that has it in it
};

// Which join: members call the joins of one ordered list of members in the same order.
struct JoinId {
    std::uint64_t list_hash = 0;  // of all members' addresses in rank order
    std::uint32_t sequence = 0;   // how many joins of that list this member had called before
    auto operator<=>(const JoinId&) const = default;
};

// UD multicast over RDMA, as one member can have it.
struct VerbsOffer {
    std::uint32_t datagram_bytes = 0;  // longest datagram, 0 = it has none
    std::uint32_t window = 0;          // fragments it can be sent at once
    std::uint8_t room = 0;             // 1: it can join another group
    ByteString source{};               // encoded address that its multicasts come from
    bool operator==(const VerbsOffer&) const = default;
};

struct Hello {
    JoinId id;
    Rank rank{};
    std::uint32_t members = 0;
    std::uint32_t datagram_bytes = 0;  // longest datagram it can multicast, 0 = no multicast
    std::uint32_t window = 0;          // fragments it can be sent at once
    std::uint8_t address_family = 0;   // 4 or 6
    std::uint8_t room = 0;             // 1: it can join another multicast address
    std::uint8_t gathered = 0;         // 1: so have all who greet through it
    std::uint8_t gmac = 0;             // 1: it would rather prove by AES-128-GMAC than by UMAC-64
    VerbsOffer verbs{};
    Peer peer;
};

// How a group works, the same for all its members.
struct Agreement {
    JoinId id;  // as rank 0 knows the join: the group's words bear it, for everybody
    GroupKey key{};
    Epoch epoch{};
    std::uint8_t security = 0;  // wire::Security
    std::uint8_t mac = 0;       // wire::MacKind
    std::uint8_t plan = 0;      // which addresses these are, engine::Plan
    // Encoded socket addresses, one for each range of ranks; without a port: UD's. None: no multicast.
    std::vector<ByteString> group_addresses;
    std::uint32_t fragment_bytes = 0;
    std::uint32_t window = 0;
    std::uint8_t repair = 0;
    std::uint8_t redundancy = 0;
    std::uint32_t channels = 0;
    std::uint8_t root_sync = 0;
    std::uint32_t root_delay_us = 0;
    ByteString policy{};     // of the topology, encoded: which levels count, and how
    ByteString selection{};  // of algorithms, encoded: levels/selection.h
};

struct Welcome : Agreement {
    // By rank: everybody; which of the addresses it listens to; the sequence by which it knows the join.
    std::vector<Peer> peers;
    std::vector<std::uint8_t> range_of;
    std::vector<std::uint32_t> sequences;
};

// What a message begins with that may have to be answered.
struct WordHead {
    JoinId to;                   // as the receiver knows the join
    std::uint32_t sequence = 0;  // by which who is to be answered knows it,
    ByteString answer_to;        // at this private address
    bool operator==(const WordHead&) const = default;
    JoinId answer_id() const { return {to.list_hash, sequence}; }
};

struct Guests {
    JoinId id;
    Rank from{};
    std::vector<Hello> hellos;
};
// That one message has, at most.
inline constexpr std::size_t kMostGuests = 1024;

// To rank 0 answers who cannot follow.
struct WelcomePart {
    WordHead head;
    std::uint32_t offset = 0, total = 0;  // bytes of the whole
    ByteString bytes{};
};

struct HostWelcome {
    WordHead head;
    ByteString host_point;  // of the host's leader, encoded: transport/watch_point.h
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
    Rank lost = kNoRank;      // because of this member
};

struct Waiting {
    JoinId id;  // of the group
    Rank from{};
};

// What the datagrams of a survey begin with. They name members by rank: where those are, the receiver knows
// from the application.
struct SurveyHead {
    JoinId id;                   // as the receiver knows it
    std::uint32_t sequence = 0;  // by which the sender knows it
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
    std::uint64_t stamp = 0;  // whatever the sender knows it by
    bool back = false;
};

struct Surveyed {
    SurveyHead head;
    // In the order of the targets; kNotMeasured: no answer in time.
    std::vector<std::uint64_t> round_trips_ns;
};

// Id: of the list of members as who does not know the secret calls it.
struct KeyRequest {
    JoinId id;
    Rank rank{};
    std::uint32_t members = 0;
    std::uint64_t nonce = 0;  // random, and never used again
    bool operator==(const KeyRequest&) const = default;
};
// As long as the longest reply: who forges the source of requests has no more sent there than it sends.
inline constexpr std::size_t kKeyRequestBytes = 512;

struct KeyReply {
    JoinId id;  // of the request
    Rank to{};
    std::uint64_t nonce = 0;
    ByteString credential{};
};

ByteString encode(const Hello& hello);
ByteString encode(const Welcome& welcome);
ByteString encode_collect(const WordHead& head);
ByteString encode(const Guests& guests);
ByteString encode(const WelcomePart& part);
ByteString encode(const HostWelcome& welcome);
// In the words of another version, when there is one.
ByteString encode(const Answer& answer, std::uint8_t version = kJoinVersion);
ByteString encode(const Ended& ended);
ByteString encode(const Waiting& waiting);
ByteString encode(const Survey& survey);
ByteString encode(const Echo& echo);
ByteString encode(const Surveyed& surveyed);
ByteString encode(const KeyRequest& request);
ByteString encode(const KeyReply& reply);

// The list of members that a word of this version is about, as far as it looks like one: it tells whose key
// its proof is made with.
std::optional<std::uint64_t> peek_list(Bytes word);
// The kind of a well-formed join message, or nothing: wrong magic, version, length or CRC-32C.
std::optional<JoinKind> join_kind(Bytes bytes);
std::optional<Hello> decode_hello(Bytes bytes);
// A whole hello in another version.
struct ForeignHello {
    std::uint8_t version = 0;
    JoinId id;
};
std::optional<ForeignHello> decode_foreign_hello(Bytes bytes);
// Of so many members.
std::optional<Welcome> decode_welcome(Bytes bytes, std::size_t members);
std::optional<WordHead> decode_collect(Bytes bytes);
std::optional<Guests> decode_guests(Bytes bytes);
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

// FNV-1a over length-prefixed addresses in order; not for protection, only to tell lists apart.
std::uint64_t hash_addresses(const std::vector<ByteString>& addresses);

}  // namespace mcastcoll::wire
