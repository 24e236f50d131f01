// Authentication tags, which only members can create: packets without a valid tag are dropped.
#include <criterion/criterion.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "wire/bytes.h"
#include "wire/protection.h"

using namespace mcastcoll;
using wire::MacKind, wire::Security;

namespace {

// The ways to protect packets.
struct Way {
    Security security;
    MacKind mac;
};
constexpr Way kByUmac{Security::authenticate, MacKind::umac64},
    kByGmac{Security::authenticate, MacKind::gmac}, kEncrypted{Security::encrypt, MacKind::umac64};

constexpr wire::Key kKey{std::byte{1}, std::byte{2}}, kOther{std::byte{1}, std::byte{3}};

wire::ByteString text(const std::string& words) {
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
}

wire::Protection protection(const Way& way, const wire::Key& key = kKey) {
    return {way.security, way.mac, key};
}

wire::ByteString seal(wire::Protection& protection, const wire::ByteString& payload, Rank to) {
    const wire::Header header{.kind = wire::Kind::data,
                              .sender = rank_of(3),
                              .payload_bytes = static_cast<std::uint32_t>(payload.size()),
                              .total = payload.size()};
    wire::HeaderBytes encoded;
    wire::encode(header, payload, encoded, wire::Checksum::none);
    const Bytes sealed = protection.seal(encoded, payload, to);
    wire::ByteString packet(encoded.begin(), encoded.end());
    packet.insert(packet.end(), sealed.begin(), sealed.end());
    return packet;
}

// Returns the unsealed packet, or nothing. Works on a copy, because unsealing changes the packet.
std::optional<wire::ByteString> unseal(wire::Protection& receiver, Bytes packet, Rank to) {
    wire::ByteString own(packet.begin(), packet.end());
    return receiver.unseal(own, to) ? std::optional(own) : std::nullopt;
}

bool is(const std::optional<wire::ByteString>& opened, const wire::ByteString& payload) {
    return opened && std::ranges::equal(Bytes(*opened).subspan(wire::kHeaderBytes), payload);
}

}  // namespace

Test(protection, members_read_what_a_member_has_sealed) {
    for (const Way& way : {Way{Security::off, MacKind::umac64}, kByUmac, kByGmac, kEncrypted})
        for (const std::size_t bytes : {0, 1, 15, 16, 17, 1400, 65'000}) {
            wire::Protection sender = protection(way), receiver = protection(way);
            const wire::ByteString payload(bytes, std::byte{0x5a});
            for (const Rank to : {kNoRank, rank_of(4)}) {
                const wire::ByteString packet = seal(sender, payload, to);
                cr_assert(is(unseal(receiver, packet, to), payload), "%zu bytes", bytes);
                const wire::ByteString run(15, std::byte{0x5a});
                const bool shown =
                    std::search(packet.begin(), packet.end(), run.begin(), run.end()) != packet.end();
                if (bytes >= 15) cr_assert_eq(shown, way.security != Security::encrypt);
            }
        }
}

// Checksums of the bytes: processors of every kind must be able to read them.
Test(protection, sealed_packets_have_the_same_bytes_on_every_processor) {
    for (const auto& [way, expected] : {std::pair{kByUmac, 0x0ffdfdebU}, std::pair{kByGmac, 0xe671a101U},
                                        std::pair{kEncrypted, 0xde7ef9e3U}}) {
        wire::Protection sender = protection(way);
        std::uint32_t crc = 0;
        for (const Rank to : {kNoRank, rank_of(4), rank_of(0x01020304), kNoRank})
            crc = wire::add_to_crc(crc, seal(sender, text("some payload"), to));
        cr_assert_eq(crc, expected, "%08x", crc);
    }
}

Test(protection, every_changed_bit_is_noticed) {
    for (const Way& way : {kByUmac, kByGmac, kEncrypted}) {
        wire::Protection sender = protection(way), receiver = protection(way);
        wire::ByteString packet = seal(sender, text("some payload"), kNoRank);
        for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
            std::byte& byte = packet[bit / 8];
            byte ^= std::byte{1} << static_cast<int>(bit % 8);
            cr_assert_not(unseal(receiver, packet, kNoRank), "bit %zu", bit);
            byte ^= std::byte{1} << static_cast<int>(bit % 8);
        }
        for (std::size_t length = 0; length < packet.size(); ++length)
            cr_assert_not(unseal(receiver, Bytes(packet).first(length), kNoRank), "length %zu", length);
        cr_assert(is(unseal(receiver, packet, kNoRank), text("some payload")));
    }
}

Test(protection, another_key_or_another_receiver_takes_nothing) {
    for (const Way& way : {kByUmac, kByGmac, kEncrypted}) {
        wire::Protection sender = protection(way), foreign = protection(way, kOther),
                         receiver = protection(way);
        const wire::ByteString packet = seal(sender, text("for rank 4"), rank_of(4));
        cr_assert_not(unseal(foreign, packet, rank_of(4)));
        cr_assert_not(unseal(receiver, packet, rank_of(5)));
        cr_assert_not(unseal(receiver, packet, kNoRank));
        cr_assert(unseal(receiver, packet, rank_of(4)).has_value());
    }
}

Test(protection, a_message_that_comes_again_is_refused) {
    wire::Protection sender = protection(kByUmac), receiver = protection(kByUmac);
    const wire::ByteString first = seal(sender, text("one"), rank_of(4)),
                           second = seal(sender, text("two"), rank_of(4));
    cr_assert(is(unseal(receiver, second, rank_of(4)), text("two")), "they may overtake each other");
    cr_assert(is(unseal(receiver, first, rank_of(4)), text("one")));
    for (const auto& again : {first, second}) cr_assert_not(unseal(receiver, again, rank_of(4)));
    const wire::ByteString cast = seal(sender, text("all"), kNoRank);
    for (int i = 0; i < 2; ++i) cr_assert(unseal(receiver, cast, kNoRank).has_value(), "the protocol knows");
}

// A rendezvous may end after many later messages; messages to different members must not age the rendezvous.
Test(protection, a_message_is_not_old_because_of_messages_to_others) {
    constexpr std::size_t kOthers = 3000;
    for (const Way& way : {kByUmac, kByGmac, kEncrypted}) {
        wire::Protection sender = protection(way), receiver = protection(way);
        const wire::ByteString large = seal(sender, text("a large block"), rank_of(4));
        for (std::size_t i = 0; i < kOthers; ++i) (void)seal(sender, text("block"), rank_of(5 + i % 1000));
        const wire::ByteString small = seal(sender, text("a small one"), rank_of(4));
        cr_assert(is(unseal(receiver, small, rank_of(4)), text("a small one")));
        cr_assert(is(unseal(receiver, large, rank_of(4)), text("a large block")));
        for (const auto& again : {small, large}) cr_assert_not(unseal(receiver, again, rank_of(4)));
    }
}

// A message sent long ago is refused because of the tag, although the position looks like a future position.
Test(protection, a_message_far_behind_the_last_is_refused) {
    wire::Protection sender = protection(kByUmac), receiver = protection(kByUmac);
    std::vector<wire::ByteString> sent;
    for (std::uint64_t i = 0; i < 3 * wire::TakenNumbers::kBack; ++i)
        sent.push_back(seal(sender, text("one of many"), rank_of(4)));
    cr_assert(unseal(receiver, sent.back(), rank_of(4)).has_value());
    cr_assert(unseal(receiver, sent[sent.size() - 1 - wire::TakenNumbers::kBack], rank_of(4)).has_value());
    cr_assert_not(unseal(receiver, sent.front(), rank_of(4)));
}

Test(protection, the_upper_half_of_a_place_is_the_nearest) {
    constexpr std::uint64_t kBack = wire::TakenNumbers::kBack, kTurn = std::uint64_t{1} << 32;
    wire::TakenNumbers taken;
    cr_assert_eq(taken.complete(1), 1);
    cr_assert_eq(taken.complete(UINT32_MAX), UINT32_MAX);
    for (const std::uint64_t last : {kTurn - 2, kTurn + 5, 3 * kTurn + 2 * kBack}) {
        cr_assert(taken.take(last));
        for (const std::uint64_t one : {last - kBack, last - 1, last, last + 1, last + kTurn - kBack - 1})
            cr_assert_eq(taken.complete(static_cast<std::uint32_t>(one)), one);
    }
}

// The distance of a number from the highest number is tested at limit - 1, limit and limit + 1.
Test(protection, numbers_are_taken_once) {
    constexpr std::uint64_t kBack = wire::TakenNumbers::kBack;
    for (const std::uint64_t back : {kBack - 1, kBack}) {
        wire::TakenNumbers taken;
        cr_assert(taken.take(2 * kBack) && !taken.take(2 * kBack));
        cr_assert(taken.take(2 * kBack - back) && !taken.take(2 * kBack - back));
    }
    for (const std::uint64_t far : {kBack + 64, 100 * kBack}) {
        wire::TakenNumbers taken;
        cr_assert(taken.take(5) && taken.take(5 + far));
        cr_assert_not(taken.take(5));
        cr_assert_not(taken.take(6), "it may have been");
        cr_assert(taken.take(4 + far));
    }
}

Test(protection, what_is_encrypted_stays_until_it_is_sent) {
    wire::Protection sender = protection(kEncrypted), receiver = protection(kEncrypted);
    std::vector<std::pair<wire::HeaderBytes, Bytes>> sent;
    std::vector<wire::ByteString> payloads;
    for (std::size_t i = 0; i < wire::Protection::kSealedAtOnce; ++i)
        payloads.push_back(text("payload " + std::to_string(i)));
    for (const wire::ByteString& payload : payloads) {
        wire::HeaderBytes header;
        wire::encode({.payload_bytes = static_cast<std::uint32_t>(payload.size())}, payload, header,
                     wire::Checksum::none);
        const Bytes sealed = sender.seal(header, payload, kNoRank);
        sent.emplace_back(header, sealed);
        wire::HeaderBytes other;
        wire::encode({.payload_bytes = 1}, Bytes(payload).first(1), other, wire::Checksum::none);
        (void)sender.seal(other, Bytes(payload).first(1), rank_of(1));
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
        wire::ByteString packet(sent[i].first.begin(), sent[i].first.end());
        packet.insert(packet.end(), sent[i].second.begin(), sent[i].second.end());
        cr_assert(is(unseal(receiver, packet, kNoRank), payloads[i]), "%zu", i);
    }
}

Test(protection, join_messages_have_their_tag_behind_them) {
    const wire::ByteString message = text("a join message");
    const wire::ByteString proved = wire::prove(message, kKey);
    cr_assert_eq(proved.size(), message.size() + wire::kTagBytes);
    const auto proven = wire::proven(proved, kKey);
    cr_assert(proven && std::ranges::equal(*proven, message));
    cr_assert_not(wire::proven(proved, kOther));
    for (std::size_t bit = 0; bit < proved.size() * 8; ++bit) {
        wire::ByteString changed = proved;
        changed[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
        cr_assert_not(wire::proven(changed, kKey));
    }
    for (std::size_t length = 0; length < proved.size(); ++length)
        cr_assert_not(wire::proven(Bytes(proved).first(length), kKey));
    cr_assert(std::ranges::equal(wire::prove(message, {}), message));
    cr_assert(wire::proven(message, {}).has_value());
}

Test(protection, keys_leave_nothing_behind) {
    alignas(wire::Key) std::byte memory[sizeof(wire::Key)];
    auto* const key = new (memory) wire::Key{std::byte{1}, std::byte{2}};
    const wire::Key copy = *key;
    key->~Key();
    cr_assert(std::ranges::all_of(std::span<volatile std::byte>(memory),
                                  [](auto byte) { return byte == std::byte{}; }));
    cr_assert(copy[1] == std::byte{2});
}

// RFC 4231, test case 1, with a shorter key: HMAC pads the key with zeros to the length used here.
Test(protection, derives_by_hmac_sha256) {
    wire::Key key{};
    std::fill_n(key.begin(), 20, std::byte{0x0b});
    const wire::Key out = wire::derive(key, "Hi There");
    cr_assert_neq(std::to_integer<int>(out[0]), 0xb0, "the purpose ends with a zero byte");
    const wire::JoinKey join_key = key;
    const wire::ByteString proved = wire::prove(text("Hi There"), join_key);
    constexpr int kExpected[] = {0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53,
                                 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b};
    for (std::size_t i = 0; i < wire::kTagBytes; ++i)
        cr_assert_eq(std::to_integer<int>(proved[8 + i]), kExpected[i], "byte %zu", i);
    cr_assert(wire::derive(key, "a") != wire::derive(key, "b"));
    cr_assert(wire::derive(key, "a", text("b")) != wire::derive(key, "ab"));
}

// RFC 4418, appendix: the key is the letters from a on, the nonce those from b on.
Test(protection, packets_are_tagged_by_umac_64) {
    wire::Key key{};
    for (int i = 0; i < 16; ++i) key[static_cast<std::size_t>(i)] = static_cast<std::byte>('a' + i);
    wire::Mac mac(key);
    const auto nonce = text("bcdefghi");
    const auto tag = [&](const std::string& first, const std::string& second) {
        return wire::get<std::uint64_t>(mac.tag(nonce, text(first), text(second)).data());
    };
    cr_assert_eq(tag("", ""), 0x6E155FAD26900BE1);
    cr_assert_eq(tag("aaa", ""), 0x44B5CB542F220104);
    cr_assert_eq(tag("a", "aa"), 0x44B5CB542F220104);
}

namespace {

// Returns the implementations in this build that the processor supports.
std::vector<std::unique_ptr<wire::Gcm>> all_gcms(const wire::Key& key) {
    std::vector<std::unique_ptr<wire::Gcm>> all;
    all.push_back(wire::make_gcm_by_nettle(key));
    all.push_back(wire::make_gcm(key));
    if (auto other = wire::make_gcm_by_multi_buffer(key)) all.push_back(std::move(other));
    return all;
}

wire::ByteString from_hex(std::string_view digits) {
    wire::ByteString out;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
        out.push_back(static_cast<std::byte>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
    return out;
}

}  // namespace

// McGrew and Viega's test case 4 of GCM, which NIST SP 800-38D refers to, and case 1, which has no bytes.
Test(gcm, known_packets_have_the_known_tags) {
    const auto secret = from_hex("feffe9928665731c6d6a8f9467308308"),
               drawn = from_hex("cafebabefacedbaddecaf888"),
               plain = from_hex(
                   "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                   "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"),
               readable = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
               sealed = from_hex(
                   "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
                   "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091");
    wire::Key key{};
    std::ranges::copy(secret, key.begin());
    wire::Gcm::Nonce nonce;
    std::ranges::copy(drawn, nonce.begin());
    for (auto& gcm : all_gcms(key)) {
        wire::ByteString out(plain.size());
        cr_assert(std::ranges::equal(gcm->encrypt(nonce, readable, plain, out.data()),
                                     from_hex("5bc94fbc3221a5db94fae95ae7121a47")));
        cr_assert(out == sealed);
        cr_assert(std::ranges::equal(gcm->decrypt(nonce, readable, sealed, out.data()),
                                     from_hex("5bc94fbc3221a5db94fae95ae7121a47")));
        cr_assert(out == plain);
    }
    for (auto& gcm : all_gcms({}))
        cr_assert(std::ranges::equal(gcm->tag({}, {}, {}), from_hex("58e2fccefa7e3061367f1d57a4e7455a")));
}

// A tag created by one library must be valid in the other, however the bytes are split into pieces.
Test(gcm, libraries_agree_wherever_pieces_end) {
    wire::ByteString bytes(1500);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
    const auto gcms = all_gcms(kKey);
    const wire::Gcm::Nonce nonce{std::byte{5}};
    for (const std::size_t all : {0, 1, 15, 16, 17, 60, 1392, 1452, 1500}) {
        wire::ByteString unused;
        const wire::Gcm::Tag expected = gcms[0]->encrypt(nonce, Bytes(bytes).first(all), {}, unused.data());
        for (std::size_t first = 0; first <= all; first += first < 70 ? 1 : 97)
            for (const auto& gcm : gcms)
                cr_assert(gcm->tag(nonce, Bytes(bytes).first(first),
                                   Bytes(bytes).subspan(first, all - first)) == expected,
                          "%zu and %zu bytes", first, all - first);
    }
}
