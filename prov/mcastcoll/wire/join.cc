#include "wire/join.h"

#include <isa-l/crc.h>

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
    explicit Writer(JoinKind kind) {
        number(kJoinMagic);
        number(kVersion);
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
    void id(const JoinId& id) {
        number(id.list_hash);
        number(id.sequence);
    }
    void peer(const Peer& peer) {
        string(peer.private_address);
        string(peer.multicast_source);
        string(peer.watch_point);
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
    ByteString string() {
        const std::size_t length = number<std::uint8_t>();
        if (length > kMostAddressBytes || length > rest_.size()) return good_ = false, ByteString{};
        ByteString value(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(length));
        rest_ = rest_.subspan(length);
        return value;
    }
    JoinId id() {
        const auto hash = number<std::uint64_t>();
        return {hash, number<std::uint32_t>()};
    }
    Peer peer() {
        Peer result;
        result.private_address = string();
        result.multicast_source = string();
        result.watch_point = string();
        return result;
    }
    bool finished() const { return good_ && rest_.empty(); }

  private:
    Bytes rest_;
    bool good_ = true;
};

}  // namespace

ByteString encode(const Hello& hello) {
    Writer out(JoinKind::hello);
    out.id(hello.id);
    out.number(index_of(hello.rank));
    out.number(hello.members);
    out.number(hello.datagram_bytes);
    out.number(hello.window);
    out.number(hello.address_family);
    out.peer(hello.peer);
    return out.finish();
}

ByteString encode(const Welcome& welcome) {
    Writer out(JoinKind::welcome);
    out.id(welcome.id);
    out.number(static_cast<std::uint64_t>(welcome.key));
    out.number(static_cast<std::uint32_t>(welcome.epoch));
    out.string(welcome.group_address);
    out.number(welcome.fragment_bytes);
    out.number(welcome.window);
    out.number(welcome.repair);
    out.number(static_cast<std::uint32_t>(welcome.peers.size()));
    for (const Peer& peer : welcome.peers) out.peer(peer);
    return out.finish();
}

ByteString encode(const Answer& answer) {
    assert(answer.kind == JoinKind::ack || answer.kind == JoinKind::abort);
    Writer out(answer.kind);
    out.id(answer.id);
    out.number(answer.error);
    return out.finish();
}

std::optional<JoinKind> join_kind(Bytes bytes) {
    if (bytes.size() < kBodyAt || get<std::uint16_t>(bytes.data()) != kJoinMagic) return {};
    if (get<std::uint8_t>(bytes.data() + 2) != kVersion) return {};
    const auto kind = get<std::uint8_t>(bytes.data() + 3);
    if (kind < static_cast<std::uint8_t>(JoinKind::hello) ||
        kind > static_cast<std::uint8_t>(JoinKind::abort))
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
    hello.peer = in.peer();
    if (!in.finished() || hello.members > kMostMembers || index_of(hello.rank) >= hello.members) return {};
    return hello;
}

std::optional<Welcome> decode_welcome(Bytes bytes) {
    if (join_kind(bytes) != JoinKind::welcome) return {};
    Reader in(bytes);
    Welcome welcome;
    welcome.id = in.id();
    welcome.key = static_cast<GroupKey>(in.number<std::uint64_t>());
    welcome.epoch = static_cast<Epoch>(in.number<std::uint32_t>());
    welcome.group_address = in.string();
    welcome.fragment_bytes = in.number<std::uint32_t>();
    welcome.window = in.number<std::uint32_t>();
    welcome.repair = in.number<std::uint8_t>();
    const auto count = in.number<std::uint32_t>();
    if (count > kMostMembers) return {};
    for (std::uint32_t i = 0; i < count; ++i) welcome.peers.push_back(in.peer());
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
    if (!in.finished()) return {};
    return answer;
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
