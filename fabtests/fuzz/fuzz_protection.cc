// The receiver must drop sealed or authenticated messages that were changed on the way, sent to a different
// member, or replayed, and accept an unchanged message exactly once.
#include <algorithm>

#include "fuzz.h"
#include "wire/protection.h"

using namespace mcastcoll;
using wire::ByteString;

namespace {

constexpr wire::Key kKey{std::byte{1}, std::byte{2}}, kOther{std::byte{1}, std::byte{3}};

struct Sealed {
    ByteString packet, payload;
    Rank to;
};

Sealed seal(fuzz::Input& in, wire::Protection& protection) {
    Sealed made{.packet = {}, .payload = fuzz::take_bytes(in, 200), .to = kNoRank};
    if (in.flag()) made.to = rank_of(in.between(0U, 3U));
    const wire::Header header{.kind = static_cast<wire::Kind>(in.between(1U, 51U)),
                              .key = GroupKey{7},
                              .sender = rank_of(in.between(0U, 3U)),
                              .operation = operation_of(fuzz::take_number(in)),
                              .payload_bytes = static_cast<std::uint32_t>(made.payload.size()),
                              .total = fuzz::take_number(in)};
    wire::HeaderBytes head;
    wire::encode(header, made.payload, head, wire::Checksum::none);
    const Bytes sealed = protection.seal(head, made.payload, made.to);
    made.packet.assign(head.begin(), head.end());
    made.packet.insert(made.packet.end(), sealed.begin(), sealed.end());
    return made;
}

// Flips bits, loses or inserts bytes, or exchanges them with another message's.
ByteString changed(fuzz::Input& in, ByteString bytes, Bytes other) {
    for (auto count = in.between(1U, 4U); count > 0; --count) {
        const auto at = in.between<std::size_t>(0, bytes.size());
        const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        switch (in.between(0U, 4U)) {
            case 0:
                bytes.erase(end, bytes.end());
                break;
            case 1:
                bytes.insert(end, static_cast<std::byte>(in.any<std::uint8_t>()));
                break;
            case 2:
                if (at < bytes.size()) bytes.erase(end);
                break;
            case 3:
                if (at < bytes.size()) *end ^= static_cast<std::byte>(in.between(1U, 255U));
                break;
            case 4:
                bytes.resize(at);
                if (at < other.size())
                    bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(at), other.end());
                break;
        }
    }
    return bytes;
}

// Returns the unsealed packet, or nothing if the receiver refuses the packet. Works on a copy, since
// unsealing changes the packet.
std::optional<ByteString> unseal(wire::Protection& receiver, ByteString packet, Rank to) {
    return receiver.unseal(packet, to) ? std::optional(std::move(packet)) : std::nullopt;
}

void packets(fuzz::Input& in) {
    const auto security = in.flag() ? wire::Security::authenticate : wire::Security::encrypt;
    const auto mac = in.flag() ? wire::MacKind::umac64 : wire::MacKind::gmac;
    wire::Protection sender(security, mac, kKey), receiver(security, mac, kKey),
        foreign(security, mac, kOther);
    const Sealed first = seal(in, sender), second = seal(in, sender);
    const ByteString wrong = changed(in, first.packet, second.packet);
    const Rank other = in.flag() ? kNoRank : rank_of(in.between(0U, 3U));
    for (const Rank to : {first.to, second.to, other}) {
        const bool is_right =
            (wrong == first.packet && to == first.to) || (wrong == second.packet && to == second.to);
        if (!is_right) fuzz::check(!unseal(receiver, wrong, to), "what was changed is not taken");
    }
    fuzz::check(!unseal(foreign, first.packet, first.to), "what has another key is not taken");
    if (other != first.to)
        fuzz::check(!unseal(receiver, first.packet, other), "what is another's is not taken");
    const auto taken = unseal(receiver, first.packet, first.to);
    fuzz::check(taken && std::ranges::equal(Bytes(*taken).subspan(wire::kHeaderBytes), first.payload),
                "what is whole is taken as it was");
    if (first.to != kNoRank)
        fuzz::check(!unseal(receiver, first.packet, first.to), "a message is taken once");
}

void join_messages(fuzz::Input& in) {
    const ByteString first = wire::prove(fuzz::take_bytes(in, 200), kKey),
                     second = wire::prove(fuzz::take_bytes(in, 200), kKey);
    const ByteString wrong = changed(in, first, second);
    fuzz::check(wire::proven(wrong, kKey).has_value() == (wrong == first || wrong == second),
                "a join message is accepted unchanged, or not at all");
    fuzz::check(!wire::proven(first, kOther), "a join message with another key is refused");
    fuzz::check(wire::proven(first, kKey).has_value(), "an unchanged join message is accepted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input in(data, size);
    if (in.flag())
        packets(in);
    else
        join_messages(in);
    return 0;
}
