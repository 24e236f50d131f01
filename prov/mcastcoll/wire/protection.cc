#include "wire/protection.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

#include "wire/bytes.h"

namespace mcastcoll::wire {
namespace {

constexpr std::size_t kCipherKeyBytes = 16;
constexpr std::size_t kNonceBytes = 12;
// In the number of a message: messages and multicasts are counted apart, so that those that overtake each
// other are near each other in number.
constexpr std::uint64_t kMessage = std::uint64_t{1} << 63;

unsigned char* raw(std::byte* at) {
    return reinterpret_cast<unsigned char*>(at);
}

const unsigned char* raw(const std::byte* at) {
    return reinterpret_cast<const unsigned char*>(at);
}

// Nothing fails here but for want of memory.
void check(int result) {
    if (result != 1) throw std::bad_alloc();
}

Key hmac(const Key& key, Bytes bytes) {
    Key out;
    unsigned length = 0;
    if (::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(bytes.data()), bytes.size(),
               raw(out.data()), &length) == nullptr ||
        length != out.size())
        throw std::bad_alloc();
    return out;
}

bool same(const std::byte* one, const std::byte* other, std::size_t bytes) {
    return ::CRYPTO_memcmp(one, other, bytes) == 0;
}

}  // namespace

Key derive(const Key& from, std::string_view purpose, Bytes context) {
    ByteString text(purpose.size() + 1 + context.size());
    std::memcpy(text.data(), purpose.data(), purpose.size());
    std::copy(context.begin(), context.end(), text.begin() + static_cast<std::ptrdiff_t>(purpose.size()) + 1);
    return hmac(from, text);
}

ByteString prove(Bytes word, const JoinKey& key) {
    ByteString out(word.begin(), word.end());
    if (!key) return out;
    const Key tag = hmac(*key, word);
    out.insert(out.end(), tag.begin(), tag.begin() + kTagBytes);
    return out;
}

std::optional<Bytes> proven(Bytes word, const JoinKey& key) {
    if (!key) return word;
    if (word.size() < kTagBytes) return {};
    const Bytes inner = word.first(word.size() - kTagBytes);
    if (!same(hmac(*key, inner).data(), word.data() + inner.size(), kTagBytes)) return {};
    return inner;
}

bool TakenNumbers::take(std::uint64_t number) {
    const std::uint64_t block = number / kBits, last = last_ / kBits;
    if (number > last_) {
        for (std::uint64_t i = 1; i <= std::min(block - last, kWords); ++i) taken_[(last + i) % kWords] = 0;
        last_ = number;
    } else if (last - block >= kWords) {
        return false;
    }
    std::uint64_t& word = taken_[block % kWords];
    const std::uint64_t bit = std::uint64_t{1} << number % kBits;
    const bool taken = (word & bit) != 0;
    word |= bit;
    return !taken;
}

void Protection::Free::operator()(evp_cipher_ctx_st* context) const {
    ::EVP_CIPHER_CTX_free(context);
}

Protection::Cipher Protection::make_cipher(const Key& key, bool seals) {
    static_assert(kCipherKeyBytes <= std::tuple_size_v<Key>);
    Cipher cipher(::EVP_CIPHER_CTX_new());
    if (!cipher) throw std::bad_alloc();
    check(::EVP_CipherInit_ex(cipher.get(), EVP_aes_128_gcm(), nullptr, raw(key.data()), nullptr,
                              seals ? 1 : 0));
    return cipher;
}

Protection::Protection(Security security, const Key& key) : security_(security) {
    if (!on()) return;
    seals_ = make_cipher(key, true);
    if (security_ != Security::encrypt) return;
    opens_ = make_cipher(key, false);
    sealed_.resize(1 + kSealedAtOnce);
}

Protection::Protection(Protection&&) noexcept = default;
Protection::~Protection() = default;

const char* Protection::describe() const {
    switch (security_) {
        case Security::authenticate:
            return "members prove what they send";
        case Security::encrypt:
            return "members prove what they send, encrypted";
        case Security::off:
            break;
    }
    return "strangers can forge packets: no secret, or FI_MCASTCOLL_SECURITY=off";
}

void Protection::begin(evp_cipher_ctx_st* cipher, Bytes header, Rank to) const {
    std::array<std::byte, kNonceBytes> nonce;
    std::memcpy(nonce.data(), header.data() + kSenderOffset, sizeof(Rank));
    std::memcpy(nonce.data() + sizeof(Rank), header.data() + kNumberOffset, sizeof(std::uint64_t));
    std::array<std::byte, kTagOffset + sizeof(Rank)> clear;
    std::memcpy(clear.data(), header.data(), kTagOffset);
    put(clear.data() + kTagOffset, index_of(to));
    int length = 0;
    check(::EVP_CipherInit_ex(cipher, nullptr, nullptr, nullptr, raw(nonce.data()), -1));
    check(::EVP_CipherUpdate(cipher, nullptr, &length, raw(clear.data()), static_cast<int>(clear.size())));
}

Protection::Tag Protection::end_sealing() {
    Tag tag;
    int length = 0;
    check(::EVP_CipherFinal_ex(seals_.get(), raw(tag.data()), &length));
    check(::EVP_CIPHER_CTX_ctrl(seals_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()));
    return tag;
}

Protection::Tag Protection::tag_of(Bytes header, Bytes payload, Rank to) {
    begin(seals_.get(), header, to);
    int length = 0;
    if (!payload.empty())
        check(::EVP_CipherUpdate(seals_.get(), nullptr, &length, raw(payload.data()),
                                 static_cast<int>(payload.size())));
    return end_sealing();
}

ByteString& Protection::next_room(Rank to) {
    if (to != kNoRank) return sealed_.front();
    next_sealed_ = next_sealed_ % kSealedAtOnce + 1;
    return sealed_[next_sealed_];
}

Bytes Protection::seal(HeaderBytes& header, Bytes payload, Rank to) {
    if (!on()) return payload;
    put(header.data() + kNumberOffset, to == kNoRank ? ++multicasts_ : kMessage | ++messages_);
    Tag tag;
    if (security_ == Security::encrypt && !payload.empty()) {
        begin(seals_.get(), header, to);
        ByteString& room = next_room(to);
        if (room.size() < payload.size()) room.resize(payload.size());
        int length = 0;
        check(::EVP_CipherUpdate(seals_.get(), raw(room.data()), &length, raw(payload.data()),
                                 static_cast<int>(payload.size())));
        payload = Bytes(room).first(payload.size());
        tag = end_sealing();
    } else {
        tag = tag_of(header, payload, to);
    }
    std::memcpy(header.data() + kTagOffset, tag.data(), tag.size());
    return payload;
}

std::optional<Bytes> Protection::unseal(Bytes packet, Rank to) {
    if (!on()) return packet;
    if (packet.size() < kHeaderBytes || packet.size() > INT32_MAX) return {};
    const auto is_right = [&] {
        return same(tag_of(packet, packet.subspan(kHeaderBytes), to).data(), packet.data() + kTagOffset,
                    kTagBytes);
    };
    if (!(security_ == Security::encrypt ? decrypt(packet, to) : is_right())) return {};
    if (to != kNoRank && !taken_[peek_sender(packet)].take(get<std::uint64_t>(packet.data() + kNumberOffset)))
        return {};
    return security_ == Security::encrypt ? Bytes(opened_).first(packet.size()) : packet;
}

bool Protection::decrypt(Bytes packet, Rank to) {
    if (opened_.size() < packet.size()) opened_.resize(packet.size());
    std::memcpy(opened_.data(), packet.data(), kHeaderBytes);
    begin(opens_.get(), packet, to);
    int length = 0;
    const Bytes payload = packet.subspan(kHeaderBytes);
    if (!payload.empty())
        check(::EVP_CipherUpdate(opens_.get(), raw(opened_.data() + kHeaderBytes), &length,
                                 raw(payload.data()), static_cast<int>(payload.size())));
    check(::EVP_CIPHER_CTX_ctrl(opens_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, opened_.data() + kTagOffset));
    return ::EVP_CipherFinal_ex(opens_.get(), raw(opened_.data() + kHeaderBytes), &length) == 1;
}

}  // namespace mcastcoll::wire
