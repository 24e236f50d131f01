#include "wire/join.h"

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "wire/bytes.h"
#include "wire/packet.h"
#include "wire/peer_table.h"

namespace mcastcoll::wire {
namespace {

constexpr std::size_t kCrcAt = 4;
constexpr std::size_t kBodyAt = 8;

// CRC-32C of all bytes but the CRC field.
std::uint32_t checksum(Bytes bytes) {
    return ~add_to_crc(add_to_crc(UINT32_MAX, bytes.first(kCrcAt)), bytes.subspan(kBodyAt));
}

// Each message names its fields once, in wire order: a Writer encodes the fields, a Reader decodes them.
// Messages are const for a Writer.
template <typename Actual, typename Message>
concept Some = std::is_same_v<std::remove_const_t<Actual>, Message>;

void fields(auto& io, Some<JoinId> auto& id) {
    io(id.list_hash, id.sequence);
}

void fields(auto& io, Some<SurveyHead> auto& head) {
    io(head.id, head.sequence, head.from);
}

void fields(auto& io, Some<VerbsOffer> auto& offer) {
    io(offer.datagram_bytes, offer.window, offer.room, offer.source);
}

void fields(auto& io, Some<Peer> auto& peer) {
    io(peer.private_address, peer.multicast_source, peer.watch_point, peer.place);
}

void fields(auto& io, Some<Hello> auto& hello) {
    io(hello.id, hello.rank, hello.members, hello.datagram_bytes, hello.window, hello.address_family,
       hello.room, hello.gathered, hello.gmac, hello.verbs, hello.peer);
}

void fields(auto& io, Some<GatheredHellos> auto& gathered) {
    io(gathered.id, gathered.from);
    io.template list<std::uint16_t>(gathered.hellos, kMaxGatheredHellos);
}

void fields(auto& io, Some<Agreement> auto& agreement) {
    io(agreement.id, agreement.key, agreement.epoch, agreement.security, agreement.mac,
       agreement.address_scheme);
    io.template list<std::uint8_t>(agreement.group_addresses, kMaxGroupAddresses);
    io(agreement.fragment_bytes, agreement.window, agreement.repair, agreement.redundancy, agreement.channels,
       agreement.root_sync, agreement.root_delay_us, agreement.policy);
    io.template list<std::uint16_t>(agreement.selection, kMaxTableBytes);
}

void fields(auto& io, Some<Welcome> auto& welcome) {
    io.agreement(welcome);
    io.peer_table(welcome);
}

void fields(auto& io, Some<MessageHead> auto& head) {
    io(head.to, head.sequence, head.answer_to);
}

void fields(auto& io, Some<WelcomePart> auto& part) {
    io(part.head, part.offset, part.total);
    io.rest(part.bytes);
}

void fields(auto& io, Some<HostWelcome> auto& welcome) {
    io(welcome.head, welcome.host_point, welcome.agreement);
}

void fields(auto& io, Some<Answer> auto& answer) {
    io(answer.id, answer.error);
}

void fields(auto& io, Some<Ended> auto& ended) {
    io(ended.id, ended.error, ended.lost);
}

void fields(auto& io, Some<Waiting> auto& waiting) {
    io(waiting.id, waiting.from);
}

void fields(auto& io, Some<Survey::Target> auto& target) {
    io(target.rank, target.sequence);
}

void fields(auto& io, Some<Survey> auto& survey) {
    io(survey.head);
    io.template list<std::uint8_t>(survey.targets, kMaxSurveyed);
}

void fields(auto& io, Some<Echo> auto& echo) {
    io(echo.head, echo.stamp, echo.back);
}

void fields(auto& io, Some<Surveyed> auto& surveyed) {
    io(surveyed.head);
    io.template list<std::uint8_t>(surveyed.round_trips_ns, kMaxSurveyed);
}

void fields(auto& io, Some<KeyRequest> auto& request) {
    io(request.id, request.rank, request.members, request.nonce);
    io.padding(kKeyRequestBytes);
}

void fields(auto& io, Some<KeyReply> auto& reply) {
    io(reply.id, reply.to, reply.nonce);
    io.rest(reply.credential);
}

class Writer {
  public:
    Writer(JoinKind kind, std::uint8_t version) { (*this)(kJoinMagic, version, kind, std::uint32_t{0}); }
    template <typename... Values>
    void operator()(const Values&... values) {
        (one(values), ...);
    }
    template <typename Count, typename Item>
    void list(const std::vector<Item>& values, std::size_t max) {
        assert(values.size() <= max);
        one(static_cast<Count>(values.size()));
        for (const Item& value : values) one(value);
    }
    void agreement(const Agreement& of) { one(of); }
    // Appends the last field of a message, which needs no length.
    void rest(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    // Appends zeros up to this length of the whole message.
    void padding(std::size_t length) { bytes_.resize(length); }
    void peer_table(const Welcome& welcome) {
        one(static_cast<std::uint32_t>(welcome.peers.size()));
        rest(pack(welcome.peers, welcome.range_of, welcome.sequences));
    }
    ByteString finish() {
        put(bytes_.data() + kCrcAt, checksum(bytes_));
        return std::move(bytes_);
    }

  private:
    template <typename Value>
    void one(const Value& value) {
        if constexpr (std::is_same_v<Value, ByteString>) {
            list<std::uint8_t>(value, kMaxAddressBytes);
        } else if constexpr (std::is_enum_v<Value>) {
            one(static_cast<std::underlying_type_t<Value>>(value));
        } else if constexpr (std::is_unsigned_v<Value>) {
            bytes_.resize(bytes_.size() + sizeof value);
            put(bytes_.data() + bytes_.size() - sizeof value, value);
        } else {
            fields(*this, value);
        }
    }

    ByteString bytes_;
};

// Reads past the end yield zeros and make good() false.
class Reader {
  public:
    // members: expected size of a table of peers.
    explicit Reader(Bytes bytes, std::size_t members = 0)
        : rest_(bytes.subspan(kBodyAt)), length_(bytes.size()), members_(members) {}
    template <typename... Values>
    void operator()(Values&... values) {
        (one(values), ...);
    }
    template <typename Count, typename Item>
    void list(std::vector<Item>& values, std::size_t max) {
        Count count = 0;
        one(count);
        if (count > max) count = 0, good_ = false;
        values.resize(count);
        for (Item& value : values) one(value);
    }
    void agreement(Agreement& of) { one(of); }
    void rest(ByteString& bytes) {
        bytes.assign(rest_.begin(), rest_.end());
        rest_ = {};
    }
    void padding(std::size_t length) {
        good_ = good_ && length_ == length && std::ranges::count(rest_, std::byte{}) == std::ssize(rest_);
        rest_ = {};
    }
    void peer_table(Welcome& welcome) {
        good_ = number<std::uint32_t>() == members_ && good_;
        if (!good_) return;
        auto table = unpack(rest_, members_);
        good_ = table.has_value();
        if (!good_) return;
        welcome.peers = std::move(table->peers);
        welcome.range_of = std::move(table->range_of);
        welcome.sequences = std::move(table->sequences);
        rest_ = {};
    }
    bool good() const { return good_; }
    bool finished() const { return good_ && rest_.empty(); }

  private:
    template <typename Value>
    void one(Value& value) {
        if constexpr (std::is_same_v<Value, ByteString>) {
            list<std::uint8_t>(value, kMaxAddressBytes);
        } else if constexpr (std::is_enum_v<Value>) {
            value = static_cast<Value>(number<std::underlying_type_t<Value>>());
        } else if constexpr (std::is_same_v<Value, bool>) {
            const auto byte = number<std::uint8_t>();
            good_ = good_ && byte <= 1;
            value = byte == 1;
        } else if constexpr (std::is_unsigned_v<Value>) {
            value = number<Value>();
        } else {
            fields(*this, value);
        }
    }
    template <typename Unsigned>
    Unsigned number() {
        if (rest_.size() < sizeof(Unsigned)) return good_ = false, Unsigned{0};
        const auto value = get<Unsigned>(rest_.data());
        rest_ = rest_.subspan(sizeof(Unsigned));
        return value;
    }

    Bytes rest_;
    const std::size_t length_, members_;
    bool good_ = true;
};

template <typename Message>
ByteString bytes_of(const Message& message, JoinKind kind, std::uint8_t version = kJoinVersion) {
    Writer out(kind, version);
    fields(out, message);
    return out.finish();
}

// A message of this kind, or nothing if the fields do not fill the bytes exactly or the message is invalid.
template <typename Message, typename Valid>
std::optional<Message> message_of(Bytes bytes, JoinKind kind, Valid valid, std::size_t members = 0) {
    if (join_kind(bytes) != kind) return {};
    Reader in(bytes, members);
    Message message;
    fields(in, message);
    if (!in.finished() || !valid(message)) return {};
    return message;
}

// Code 0 means no error, and no code is above kMaxError.
bool is_error(std::uint32_t code) {
    return code != 0 && code <= kMaxError;
}

constexpr auto anything = [](const auto&) { return true; };

}  // namespace

ByteString encode(const Hello& hello) {
    return bytes_of(hello, JoinKind::hello);
}

ByteString encode(const Welcome& welcome) {
    return bytes_of(welcome, JoinKind::welcome);
}

ByteString encode_collect(const MessageHead& head) {
    return bytes_of(head, JoinKind::collect);
}

ByteString encode(const GatheredHellos& gathered) {
    return bytes_of(gathered, JoinKind::gathered_hellos);
}

ByteString encode(const WelcomePart& part) {
    return bytes_of(part, JoinKind::part);
}

ByteString encode(const HostWelcome& welcome) {
    return bytes_of(welcome, JoinKind::host_welcome);
}

ByteString encode(const Answer& answer, std::uint8_t version) {
    assert(answer.kind == JoinKind::ack || answer.kind == JoinKind::abort);
    return bytes_of(answer, answer.kind, version);
}

ByteString encode(const Ended& ended) {
    return bytes_of(ended, JoinKind::ended);
}

ByteString encode(const Waiting& waiting) {
    return bytes_of(waiting, JoinKind::waiting);
}

ByteString encode(const Survey& survey) {
    return bytes_of(survey, JoinKind::survey);
}

ByteString encode(const Echo& echo) {
    return bytes_of(echo, JoinKind::echo);
}

ByteString encode(const Surveyed& surveyed) {
    return bytes_of(surveyed, JoinKind::surveyed);
}

ByteString encode(const KeyRequest& request) {
    return bytes_of(request, JoinKind::key_request);
}

ByteString encode(const KeyReply& reply) {
    return bytes_of(reply, JoinKind::key_reply);
}

std::optional<ForeignHello> decode_foreign_hello(Bytes bytes) {
    if (bytes.size() < kBodyAt || get<std::uint16_t>(bytes.data()) != kJoinMagic) return {};
    const auto version = get<std::uint8_t>(bytes.data() + 2);
    if (version == kJoinVersion || bytes[3] != static_cast<std::byte>(JoinKind::hello)) return {};
    if (get<std::uint32_t>(bytes.data() + kCrcAt) != checksum(bytes)) return {};
    // Ignores the fields after the id, which only the other version defines.
    Reader in(bytes);
    JoinId id;
    in(id);
    if (!in.good()) return {};
    return ForeignHello{version, id};
}

std::optional<std::uint64_t> peek_list(Bytes message) {
    if (message.size() < kBodyAt + sizeof(std::uint64_t) || get<std::uint16_t>(message.data()) != kJoinMagic)
        return {};
    if (get<std::uint8_t>(message.data() + 2) != kJoinVersion) return {};
    return get<std::uint64_t>(message.data() + kBodyAt);
}

std::optional<JoinKind> join_kind(Bytes bytes) {
    if (!peek_list(bytes)) return {};
    const auto kind = get<std::uint8_t>(bytes.data() + 3);
    if (kind < static_cast<std::uint8_t>(JoinKind::hello) ||
        kind > static_cast<std::uint8_t>(JoinKind::key_reply))
        return {};
    if (get<std::uint32_t>(bytes.data() + kCrcAt) != checksum(bytes)) return {};
    return static_cast<JoinKind>(kind);
}

std::optional<Hello> decode_hello(Bytes bytes) {
    return message_of<Hello>(bytes, JoinKind::hello,
                             [](const Hello& hello) { return index_of(hello.rank) < hello.members; });
}

std::optional<Welcome> decode_welcome(Bytes bytes, std::size_t members) {
    const auto valid = [](const Welcome& welcome) {
        const std::size_t ranges = std::max<std::size_t>(1, welcome.group_addresses.size());
        return welcome.address_scheme < kAddressSchemes &&
               std::all_of(welcome.range_of.begin(), welcome.range_of.end(),
                           [&](std::uint8_t range) { return range < ranges; });
    };
    return message_of<Welcome>(bytes, JoinKind::welcome, valid, members);
}

std::optional<MessageHead> decode_collect(Bytes bytes) {
    return message_of<MessageHead>(bytes, JoinKind::collect, anything);
}

std::optional<GatheredHellos> decode_gathered_hellos(Bytes bytes) {
    return message_of<GatheredHellos>(bytes, JoinKind::gathered_hellos, [](const GatheredHellos& gathered) {
        return std::ranges::all_of(gathered.hellos,
                                   [](const Hello& hello) { return index_of(hello.rank) < hello.members; });
    });
}

std::optional<WelcomePart> decode_part(Bytes bytes) {
    return message_of<WelcomePart>(bytes, JoinKind::part, [](const WelcomePart& part) {
        return part.offset <= part.total && part.bytes.size() <= part.total - part.offset &&
               !part.bytes.empty();
    });
}

std::optional<HostWelcome> decode_host_welcome(Bytes bytes) {
    return message_of<HostWelcome>(bytes, JoinKind::host_welcome, [](const HostWelcome& welcome) {
        return welcome.agreement.address_scheme < kAddressSchemes;
    });
}

std::optional<Answer> decode_answer(Bytes bytes) {
    auto answer = message_of<Answer>(bytes, JoinKind::ack, anything);
    if (answer) return answer;
    answer =
        message_of<Answer>(bytes, JoinKind::abort, [](const Answer& abort) { return is_error(abort.error); });
    if (answer) answer->kind = JoinKind::abort;
    return answer;
}

std::optional<Ended> decode_ended(Bytes bytes) {
    return message_of<Ended>(bytes, JoinKind::ended,
                             [](const Ended& ended) { return is_error(ended.error); });
}

std::optional<Waiting> decode_waiting(Bytes bytes) {
    return message_of<Waiting>(bytes, JoinKind::waiting, anything);
}

std::optional<Survey> decode_survey(Bytes bytes) {
    return message_of<Survey>(bytes, JoinKind::survey, anything);
}

std::optional<Echo> decode_echo(Bytes bytes) {
    return message_of<Echo>(bytes, JoinKind::echo, anything);
}

std::optional<Surveyed> decode_surveyed(Bytes bytes) {
    return message_of<Surveyed>(bytes, JoinKind::surveyed, anything);
}

std::optional<KeyRequest> decode_key_request(Bytes bytes) {
    return message_of<KeyRequest>(bytes, JoinKind::key_request, [](const KeyRequest& request) {
        return index_of(request.rank) < request.members;
    });
}

std::optional<KeyReply> decode_key_reply(Bytes bytes) {
    return message_of<KeyReply>(bytes, JoinKind::key_reply,
                                [](const KeyReply& reply) { return !reply.credential.empty(); });
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
