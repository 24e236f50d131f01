#include "wire/join.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"
#include "wire/packet.h"

namespace mcastcoll::wire {
namespace {

constexpr std::size_t kCrcAt = 4;
constexpr std::size_t kBodyAt = 8;

std::uint32_t crc(Bytes bytes, std::uint32_t seed) {
    auto* at = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    return crc32_iscsi(at, static_cast<int>(bytes.size()), seed);
}

// CRC-32C of everything but the CRC field.
std::uint32_t checksum(Bytes bytes) {
    return ~crc(bytes.subspan(kBodyAt), crc(bytes.first(kCrcAt), UINT32_MAX));
}

class Writer {
  public:
    explicit Writer(JoinKind kind, std::uint8_t version = kJoinVersion) {
        number(kJoinMagic);
        number(version);
        number(static_cast<std::uint8_t>(kind));
        number(std::uint32_t{0});
    }
    template <typename Unsigned>
    void number(Unsigned value) {
        bytes_.resize(bytes_.size() + sizeof value);
        put(bytes_.data() + bytes_.size() - sizeof value, value);
    }
    void string(const ByteString& value) {
        assert(value.size() <= kMostAddressBytes);
        number(static_cast<std::uint8_t>(value.size()));
        bytes_.insert(bytes_.end(), value.begin(), value.end());
    }
    void table(const ByteString& value) {
        assert(value.size() <= kMostTableBytes);
        number(static_cast<std::uint16_t>(value.size()));
        bytes_.insert(bytes_.end(), value.begin(), value.end());
    }
    void id(const JoinId& id) {
        number(id.list_hash);
        number(id.sequence);
    }
    void head(const SurveyHead& head) {
        id(head.id);
        number(head.sequence);
        number(index_of(head.from));
    }
    void verbs(const VerbsOffer& offer) {
        number(offer.datagram_bytes);
        number(offer.window);
        number(offer.room);
        string(offer.source);
    }
    void peer(const Peer& peer) {
        string(peer.private_address);
        string(peer.multicast_source);
        string(peer.watch_point);
        string(peer.place);
    }
    ByteString finish() {
        put(bytes_.data() + kCrcAt, checksum(bytes_));
        return std::move(bytes_);
    }

  private:
    ByteString bytes_;
};

// Reads past the end yield zeros and make good() false.
class Reader {
  public:
    explicit Reader(Bytes bytes) : rest_(bytes.subspan(kBodyAt)) {}
    template <typename Unsigned>
    Unsigned number() {
        if (rest_.size() < sizeof(Unsigned)) return good_ = false, Unsigned{0};
        const auto value = get<Unsigned>(rest_.data());
        rest_ = rest_.subspan(sizeof(Unsigned));
        return value;
    }
    ByteString string() { return bytes(number<std::uint8_t>(), kMostAddressBytes); }
    ByteString table() { return bytes(number<std::uint16_t>(), kMostTableBytes); }
    ByteString bytes(std::size_t length, std::size_t most) {
        if (length > most || length > rest_.size()) return good_ = false, ByteString{};
        ByteString value(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(length));
        rest_ = rest_.subspan(length);
        return value;
    }
    JoinId id() {
        const auto hash = number<std::uint64_t>();
        return {hash, number<std::uint32_t>()};
    }
    SurveyHead head() {
        SurveyHead head;
        head.id = id();
        head.sequence = number<std::uint32_t>();
        head.from = static_cast<Rank>(number<std::uint32_t>());
        return head;
    }
    VerbsOffer verbs() {
        VerbsOffer offer;
        offer.datagram_bytes = number<std::uint32_t>();
        offer.window = number<std::uint32_t>();
        offer.room = number<std::uint8_t>();
        offer.source = string();
        return offer;
    }
    Peer peer() {
        Peer result;
        result.private_address = string();
        result.multicast_source = string();
        result.watch_point = string();
        result.place = string();
        return result;
    }
    bool good() const { return good_; }
    bool finished() const { return good_ && rest_.empty(); }

  private:
    Bytes rest_;
    bool good_ = true;
};

// An end without an error would be none, and nobody knows larger ones.
bool is_error(std::uint32_t code) {
    return code != 0 && code <= kMostError;
}

}  // namespace

ByteString encode(const Hello& hello) {
    Writer out(JoinKind::hello);
    out.id(hello.id);
    out.number(index_of(hello.rank));
    out.number(hello.members);
    out.number(hello.datagram_bytes);
    out.number(hello.window);
    out.number(hello.address_family);
    out.number(hello.room);
    out.verbs(hello.verbs);
    out.peer(hello.peer);
    return out.finish();
}

ByteString encode(const Welcome& welcome) {
    Writer out(JoinKind::welcome);
    out.id(welcome.id);
    out.number(welcome.sequence);
    out.number(static_cast<std::uint64_t>(welcome.key));
    out.number(static_cast<std::uint32_t>(welcome.epoch));
    out.number(welcome.plan);
    assert(welcome.group_addresses.size() <= kMostGroupAddresses);
    out.number(static_cast<std::uint8_t>(welcome.group_addresses.size()));
    for (const ByteString& address : welcome.group_addresses) out.string(address);
    out.number(welcome.fragment_bytes);
    out.number(welcome.window);
    out.number(welcome.repair);
    out.number(welcome.channels);
    out.number(welcome.root_sync);
    out.number(welcome.root_delay_us);
    out.string(welcome.policy);
    out.table(welcome.selection);
    out.number(static_cast<std::uint32_t>(welcome.peers.size()));
    for (const Peer& peer : welcome.peers) out.peer(peer);
    assert(welcome.range_of.size() == welcome.peers.size());
    for (const std::uint8_t range : welcome.range_of) out.number(range);
    return out.finish();
}

ByteString encode(const Answer& answer) {
    return encode(answer, kJoinVersion);
}

ByteString encode(const Answer& answer, std::uint8_t version) {
    assert(answer.kind == JoinKind::ack || answer.kind == JoinKind::abort);
    Writer out(answer.kind, version);
    out.id(answer.id);
    out.number(answer.error);
    return out.finish();
}

ByteString encode(const Ended& ended) {
    Writer out(JoinKind::ended);
    out.id(ended.id);
    out.number(ended.error);
    out.number(index_of(ended.lost));
    return out.finish();
}

ByteString encode(const Waiting& waiting) {
    Writer out(JoinKind::waiting);
    out.id(waiting.id);
    out.number(index_of(waiting.from));
    return out.finish();
}

ByteString encode(const Survey& survey) {
    assert(survey.targets.size() <= kMostSurveyed);
    Writer out(JoinKind::survey);
    out.head(survey.head);
    out.number(static_cast<std::uint8_t>(survey.targets.size()));
    for (const Survey::Target& target : survey.targets) {
        out.number(index_of(target.rank));
        out.number(target.sequence);
    }
    return out.finish();
}

ByteString encode(const Echo& echo) {
    Writer out(JoinKind::echo);
    out.head(echo.head);
    out.number(echo.stamp);
    out.number(static_cast<std::uint8_t>(echo.back ? 1 : 0));
    return out.finish();
}

ByteString encode(const Surveyed& surveyed) {
    assert(surveyed.round_trips_ns.size() <= kMostSurveyed);
    Writer out(JoinKind::surveyed);
    out.head(surveyed.head);
    out.number(static_cast<std::uint8_t>(surveyed.round_trips_ns.size()));
    for (const std::uint64_t time : surveyed.round_trips_ns) out.number(time);
    return out.finish();
}

std::optional<ForeignHello> decode_foreign_hello(Bytes bytes) {
    if (bytes.size() < kBodyAt || get<std::uint16_t>(bytes.data()) != kJoinMagic) return {};
    const auto version = get<std::uint8_t>(bytes.data() + 2);
    if (version == kJoinVersion || bytes[3] != static_cast<std::byte>(JoinKind::hello)) return {};
    if (get<std::uint32_t>(bytes.data() + kCrcAt) != checksum(bytes)) return {};
    // More may follow, which only that version knows.
    Reader in(bytes);
    const JoinId id = in.id();
    if (!in.good()) return {};
    return ForeignHello{version, id};
}

std::optional<JoinKind> join_kind(Bytes bytes) {
    if (bytes.size() < kBodyAt || get<std::uint16_t>(bytes.data()) != kJoinMagic) return {};
    if (get<std::uint8_t>(bytes.data() + 2) != kJoinVersion) return {};
    const auto kind = get<std::uint8_t>(bytes.data() + 3);
    if (kind < static_cast<std::uint8_t>(JoinKind::hello) ||
        kind > static_cast<std::uint8_t>(JoinKind::waiting))
        return {};
    if (get<std::uint32_t>(bytes.data() + kCrcAt) != checksum(bytes)) return {};
    return static_cast<JoinKind>(kind);
}

std::optional<Hello> decode_hello(Bytes bytes) {
    if (join_kind(bytes) != JoinKind::hello) return {};
    Reader in(bytes);
    Hello hello;
    hello.id = in.id();
    hello.rank = static_cast<Rank>(in.number<std::uint32_t>());
    hello.members = in.number<std::uint32_t>();
    hello.datagram_bytes = in.number<std::uint32_t>();
    hello.window = in.number<std::uint32_t>();
    hello.address_family = in.number<std::uint8_t>();
    hello.room = in.number<std::uint8_t>();
    hello.verbs = in.verbs();
    hello.peer = in.peer();
    if (!in.finished() || hello.members > kMostMembers || index_of(hello.rank) >= hello.members) return {};
    return hello;
}

std::optional<Welcome> decode_welcome(Bytes bytes) {
    if (join_kind(bytes) != JoinKind::welcome) return {};
    Reader in(bytes);
    Welcome welcome;
    welcome.id = in.id();
    welcome.sequence = in.number<std::uint32_t>();
    welcome.key = static_cast<GroupKey>(in.number<std::uint64_t>());
    welcome.epoch = static_cast<Epoch>(in.number<std::uint32_t>());
    welcome.plan = in.number<std::uint8_t>();
    const std::size_t addresses = in.number<std::uint8_t>();
    if (addresses > kMostGroupAddresses || welcome.plan >= kGroupPlans) return {};
    for (std::size_t i = 0; i < addresses; ++i) welcome.group_addresses.push_back(in.string());
    welcome.fragment_bytes = in.number<std::uint32_t>();
    welcome.window = in.number<std::uint32_t>();
    welcome.repair = in.number<std::uint8_t>();
    welcome.channels = in.number<std::uint32_t>();
    welcome.root_sync = in.number<std::uint8_t>();
    welcome.root_delay_us = in.number<std::uint32_t>();
    welcome.policy = in.string();
    welcome.selection = in.table();
    const auto count = in.number<std::uint32_t>();
    if (count > kMostMembers) return {};
    for (std::uint32_t i = 0; i < count; ++i) welcome.peers.push_back(in.peer());
    for (std::uint32_t i = 0; i < count; ++i) {
        welcome.range_of.push_back(in.number<std::uint8_t>());
        if (welcome.range_of.back() >= std::max<std::size_t>(1, addresses)) return {};
    }
    if (!in.finished()) return {};
    return welcome;
}

std::optional<Answer> decode_answer(Bytes bytes) {
    const auto kind = join_kind(bytes);
    if (kind != JoinKind::ack && kind != JoinKind::abort) return {};
    Reader in(bytes);
    Answer answer;
    answer.kind = *kind;
    answer.id = in.id();
    answer.error = in.number<std::uint32_t>();
    if (!in.finished() || (*kind == JoinKind::abort && !is_error(answer.error))) return {};
    return answer;
}

std::optional<Ended> decode_ended(Bytes bytes) {
    if (join_kind(bytes) != JoinKind::ended) return {};
    Reader in(bytes);
    Ended ended;
    ended.id = in.id();
    ended.error = in.number<std::uint32_t>();
    ended.lost = static_cast<Rank>(in.number<std::uint32_t>());
    if (!in.finished() || !is_error(ended.error)) return {};
    return ended;
}

std::optional<Waiting> decode_waiting(Bytes bytes) {
    if (join_kind(bytes) != JoinKind::waiting) return {};
    Reader in(bytes);
    Waiting waiting;
    waiting.id = in.id();
    waiting.from = static_cast<Rank>(in.number<std::uint32_t>());
    if (!in.finished()) return {};
    return waiting;
}

std::optional<Survey> decode_survey(Bytes bytes) {
    if (join_kind(bytes) != JoinKind::survey) return {};
    Reader in(bytes);
    Survey survey;
    survey.head = in.head();
    const std::size_t count = in.number<std::uint8_t>();
    if (count > kMostSurveyed) return {};
    for (std::size_t i = 0; i < count; ++i) {
        const auto rank = static_cast<Rank>(in.number<std::uint32_t>());
        survey.targets.push_back({rank, in.number<std::uint32_t>()});
    }
    if (!in.finished()) return {};
    return survey;
}

std::optional<Echo> decode_echo(Bytes bytes) {
    if (join_kind(bytes) != JoinKind::echo) return {};
    Reader in(bytes);
    Echo echo;
    echo.head = in.head();
    echo.stamp = in.number<std::uint64_t>();
    const auto back = in.number<std::uint8_t>();
    if (!in.finished() || back > 1) return {};
    echo.back = back == 1;
    return echo;
}

std::optional<Surveyed> decode_surveyed(Bytes bytes) {
    if (join_kind(bytes) != JoinKind::surveyed) return {};
    Reader in(bytes);
    Surveyed surveyed;
    surveyed.head = in.head();
    const std::size_t count = in.number<std::uint8_t>();
    if (count > kMostSurveyed) return {};
    for (std::size_t i = 0; i < count; ++i) surveyed.round_trips_ns.push_back(in.number<std::uint64_t>());
    if (!in.finished()) return {};
    return surveyed;
}

std::uint64_t hash_addresses(const std::vector<ByteString>& addresses) {
    std::uint64_t hash = 14695981039346656037ULL;
    auto mix = [&](std::byte byte) {
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211ULL;
    };
    for (const ByteString& address : addresses) {
        mix(static_cast<std::byte>(address.size()));
        for (std::byte byte : address) mix(byte);
    }
    return hash;
}

}  // namespace mcastcoll::wire
