// One engine under test: fabricated packets and messages go in, and the engine's effects are recorded.
#pragma once

#include <criterion/criterion.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace mcastcoll::bench {

using engine::Effect;
using wire::Kind;
using ByteString = std::vector<std::byte>;

inline constexpr OperationId kFirst{};  // the first operation of a group

struct Out {
    Effect::Kind kind = Effect::Kind::complete;
    Rank to = kNoRank;
    wire::Header header;
    ByteString payload;
    std::uint64_t operation = 0;
    int status = 0;
};

struct Packet {
    Kind kind = Kind::fragment;
    std::uint32_t sender = 0;
    std::uint64_t operation = 0;
    std::uint32_t fragment = 0;
    std::uint64_t total = 0;
    ByteString payload;
    std::optional<GroupKey> key;
    std::optional<Epoch> epoch;
};

inline Packet plain(Kind kind, std::uint32_t sender, std::uint64_t operation, std::uint32_t fragment = 0,
                    std::uint64_t total = 0, ByteString payload = {}) {
    return {.kind = kind,
            .sender = sender,
            .operation = operation,
            .fragment = fragment,
            .total = total,
            .payload = std::move(payload),
            .key = {},
            .epoch = {}};
}

inline ByteString content(std::uint64_t bytes) {
    ByteString result(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(i * 11 + i / 251);
    return result;
}

// A combination that depends on the order: neither commutative nor associative.
inline void mix_words(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const std::uint32_t*>(one),
               *second = static_cast<const std::uint32_t*>(other);
    for (std::size_t i = 0; i < elements; ++i)
        static_cast<std::uint32_t*>(out)[i] = first[i] * 31 + second[i];
}

inline engine::GroupConfig config_of(std::uint32_t self, std::uint32_t members) {
    engine::GroupConfig config;
    config.self = rank_of(self);
    config.members = members;
    config.key = GroupKey{0xfeedbeef};
    config.epoch = Epoch{3};
    config.operation_slots = 64;
    config.checkpoint_every = 16;
    config.window = 64;
    return config;
}

class Bench {
  public:
    explicit Bench(const engine::GroupConfig& config) : engine(config) {}

    ByteString bytes_of(const Packet& packet) const {
        const wire::Header header{.kind = packet.kind,
                                  .key = packet.key.value_or(engine.config().key),
                                  .epoch = packet.epoch.value_or(engine.config().epoch),
                                  .sender = rank_of(packet.sender),
                                  .operation = operation_of(packet.operation),
                                  .fragment = fragment_of(packet.fragment),
                                  .payload_bytes = static_cast<std::uint32_t>(packet.payload.size()),
                                  .total = packet.total};
        wire::HeaderBytes head;
        wire::encode(header, packet.payload, head);
        ByteString bytes(head.begin(), head.end());
        bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
        return bytes;
    }

    // Returns fragment `index` of a broadcast of this message.
    Packet fragment(std::uint32_t root, std::uint64_t operation, std::uint32_t index,
                    const ByteString& message) const {
        const std::size_t size = engine.config().fragment_bytes, from = index * size;
        const std::size_t to = std::min(message.size(), from + size);
        return {.kind = Kind::fragment,
                .sender = root,
                .operation = operation,
                .fragment = index,
                .total = message.size(),
                .payload = ByteString(message.begin() + static_cast<std::ptrdiff_t>(from),
                                      message.begin() + static_cast<std::ptrdiff_t>(to)),
                .key = {},
                .epoch = {}};
    }

    void datagram(const Packet& packet) { engine.on_packet(bytes_of(packet), now); }
    void message(const Packet& packet) { engine.on_message(bytes_of(packet), now); }

    std::vector<Out> drain(engine::Allowed allowed = {}) {
        std::vector<Out> all;
        Effect effect;
        while (engine.poll_effects(allowed, effect)) {
            Out out{effect.kind,
                    effect.to,
                    {},
                    ByteString(effect.payload.begin(), effect.payload.end()),
                    number_of(effect.operation),
                    effect.status};
            if (effect.kind == Effect::Kind::multicast || effect.kind == Effect::Kind::message) {
                ByteString whole(effect.header.begin(), effect.header.end());
                whole.insert(whole.end(), effect.payload.begin(), effect.payload.end());
                const auto decoded = wire::decode(whole);
                cr_assert(decoded.refusal == wire::Refusal::none, "an engine sends what it would refuse");
                out.header = decoded.header;
            }
            all.push_back(std::move(out));
        }
        engine.check_invariants();
        return all;
    }

    // Advances the time and serves every timer that expires.
    std::vector<Out> pass(Nanoseconds time) {
        std::vector<Out> all = drain();
        const Nanoseconds end = now + time;
        while (engine.next_deadline() <= end) {
            now = std::max(now, engine.next_deadline());
            engine.on_timeout(now);
            for (Out& out : drain()) all.push_back(std::move(out));
        }
        now = end;
        return all;
    }

    // Brings the engine into an active group in which all members receive and are received, except for these.
    void join(std::vector<std::uint32_t> deaf = {}, std::vector<std::uint32_t> mute = {}) {
        const std::uint32_t members = engine.config().members;
        engine.start(now);
        if (members > 1 && engine.config().self != rank_of(0)) {
            engine::ReachabilityMap map{.works = true, .deaf = {}, .mute = {}};
            for (std::uint32_t r : deaf) map.deaf.push_back(rank_of(r));
            for (std::uint32_t r : mute) map.mute.push_back(rank_of(r));
            message(map_message(map));
        } else if (members > 1) {
            cr_assert(deaf.empty() && mute.empty(), "for a leader, vote");
            lead();
            vote_all_well();
        }
        drain();
        cr_assert(engine.phase() == engine::Phase::active);
    }

    std::uint32_t parent() const {
        return index_of(engine::tree_parent(engine.config().self, engine.config().tree_arity));
    }
    engine::RankList children() const {
        const auto& config = engine.config();
        return engine::tree_children(config.self, config.tree_arity, config.members);
    }
    Packet map_message(const engine::ReachabilityMap& map) const {
        Packet packet{.kind = Kind::reachability_map,
                      .sender = parent(),
                      .fragment = static_cast<std::uint32_t>(map.deaf.size()),
                      .total = map.works ? 1U : 0U,
                      .payload = {},
                      .key = {},
                      .epoch = {}};
        engine::encode(map, packet.payload);
        return packet;
    }

    // Joins as leader: every member is ready, the probes go out and the other members' probes arrive.
    void lead() {
        const std::uint32_t members = engine.config().members;
        for (Rank r : children())
            message({.kind = Kind::ready, .sender = index_of(r), .payload = {}, .key = {}, .epoch = {}});
        drain();
        if (engine.config().multicast)
            for (std::uint32_t r = 1; r < members; ++r)
                datagram({.kind = Kind::probe, .sender = r, .payload = {}, .key = {}, .epoch = {}});
        const Nanoseconds before = now;
        while (engine.phase() == engine::Phase::probing) {
            now = std::max(now, engine.next_deadline());
            engine.on_timeout(now);
            drain();
            cr_assert_lt((now - before).value, Nanoseconds::from_ms(200).value, "no end of probing");
        }
    }

    // Joins as a member below rank 0: its subtree is ready, the go arrives, and it has no probe to send.
    void join_as_far_as_voting() {
        engine.start(now);
        for (Rank r : children())
            message({.kind = Kind::ready, .sender = index_of(r), .payload = {}, .key = {}, .epoch = {}});
        message({.kind = Kind::go, .sender = parent(), .payload = {}, .key = {}, .epoch = {}});
        drain();
        cr_assert(engine.phase() == engine::Phase::voting);
    }

    // Delivers the vote of a leaf that received the probes of these members.
    void vote(std::uint32_t voter, const std::vector<std::uint32_t>& received) {
        const std::uint32_t members = engine.config().members;
        std::vector<bool> bits(members);
        bits[voter] = true;
        for (std::uint32_t r : received) bits[r] = true;
        engine::Ballots ballots(members, 1, 1024);
        ballots.cast(rank_of(voter), bits, true);
        message({.kind = Kind::vote,
                 .sender = voter,
                 .payload = ByteString(ballots.bytes().begin(), ballots.bytes().end()),
                 .key = {},
                 .epoch = {}});
    }

    // Delivers the vote of every child: its subtree received the probes of all members.
    void vote_all_well() {
        for (Rank child : children())
            message({.kind = Kind::vote, .sender = index_of(child), .payload = {}, .key = {}, .epoch = {}});
    }

    Result<OperationId> broadcast(std::uint32_t root, ByteString& buffer) {
        return engine.submit({CollectiveKind::broadcast, rank_of(root), buffer.data(), buffer.size()}, now);
    }
    // Submits as a root of which only `ready` bytes are available yet.
    Result<OperationId> stream(ByteString& buffer, std::uint64_t ready) {
        return engine.submit(
            {CollectiveKind::broadcast, engine.config().self, buffer.data(), buffer.size(), ready}, now);
    }
    // Submits a reduction in place, of 4-byte words.
    Result<OperationId> reduction(CollectiveKind kind, ByteString& buffer, bool hold = false) {
        return engine.submit({.kind = kind,
                              .buffer = buffer.data(),
                              .bytes = buffer.size(),
                              .combiner = {mix_words, 4},
                              .hold = hold},
                             now);
    }
    Result<OperationId> barrier() {
        return engine.submit({CollectiveKind::barrier, rank_of(0), nullptr, 0}, now);
    }

    engine::Engine engine;
    Nanoseconds now = Nanoseconds::from_ms(1);
};

inline std::vector<Out> of_kind(const std::vector<Out>& all, Kind kind) {
    std::vector<Out> result;
    for (const Out& out : all)
        if (out.kind != Effect::Kind::complete && out.header.kind == kind) result.push_back(out);
    return result;
}

inline std::size_t count(const std::vector<Out>& all, Effect::Kind kind) {
    std::size_t result = 0;
    for (const Out& out : all) result += out.kind == kind;
    return result;
}
inline std::size_t count(const std::vector<Out>& all, Kind kind) {
    std::size_t result = 0;
    for (const Out& out : all)
        result += (out.kind == Effect::Kind::multicast || out.kind == Effect::Kind::message) &&
                  out.header.kind == kind;
    return result;
}

// Returns the names of the counters that differ, in the order of the list.
inline std::string changed(const engine::Counters& before, const engine::Counters& after) {
    std::string names;
    for (const auto& counter : engine::kCounters)
        if (before.*counter.member != after.*counter.member)
            names += (names.empty() ? "" : " ") + std::string(counter.name);
    return names;
}

}  // namespace mcastcoll::bench
