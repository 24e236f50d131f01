#include "wire/protection.h"

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"

namespace mcastcoll::wire {
namespace {

// In the number of a message: messages and multicasts are counted apart, so that those that overtake each
// other are near each other in number.
constexpr std::uint64_t kMessage = std::uint64_t{1} << 63;

// No two packets of a group have the same sender and number.
Gcm::Nonce nonce_of(Bytes header) {
    static_assert(Gcm::kNonceBytes == sizeof(Rank) + sizeof(std::uint64_t));
    Gcm::Nonce nonce;
    std::memcpy(nonce.data(), header.data() + kSenderOffset, sizeof(Rank));
    std::memcpy(nonce.data() + sizeof(Rank), header.data() + kNumberOffset, sizeof(std::uint64_t));
    return nonce;
}

// What is never encrypted: the header up to its tag, and whom it is for.
std::array<std::byte, kTagOffset + sizeof(Rank)> readable(Bytes header, Rank to) {
    std::array<std::byte, kTagOffset + sizeof(Rank)> out;
    std::memcpy(out.data(), header.data(), kTagOffset);
    put(out.data() + kTagOffset, index_of(to));
    return out;
}

}  // namespace

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
    const Key tag = hmac(*key, inner);
    if (!are_equal(Bytes(tag).first(kTagBytes), word.last(kTagBytes))) return {};
    return inner;
}

std::uint64_t hash_members(const std::vector<ByteString>& addresses, const Key& key) {
    ByteString context;
    for (const ByteString& address : addresses) {
        context.push_back(static_cast<std::byte>(address.size()));
        context.insert(context.end(), address.begin(), address.end());
    }
    return get<std::uint64_t>(derive(key, "members", context).data());
}

Protection::Protection(Security security, MacKind kind, const Key& key) : security_(security) {
    if (!on()) return;
    if (security_ == Security::authenticate && kind == MacKind::umac64)
        mac_.emplace(key);
    else
        gcm_ = make_gcm(key);
    if (security_ == Security::encrypt) sealed_.resize(1 + kSealedAtOnce);
}

Protection::Protection(Protection&&) noexcept = default;
Protection::~Protection() = default;

const char* Protection::describe() const {
    switch (security_) {
        case Security::authenticate:
            return mac_ ? "members prove what they send, by UMAC-64"
                        : "members prove what they send, by AES-128-GMAC";
        case Security::encrypt:
            return "members prove what they send, encrypted";
        case Security::off:
            break;
    }
    return "strangers can forge packets: no secret, or FI_MCASTCOLL_SECURITY=off";
}

Protection::Tag Protection::tag_of(Bytes header, Bytes payload, Rank to) {
    // The payload first: what is aligned to a MAC's blocks it need not copy.
    if (gcm_) return gcm_->tag(nonce_of(header), payload, readable(header, to));
    const Mac::Tag made = mac_->tag(nonce_of(header), payload, readable(header, to));
    Tag tag{};  // what it does not fill is zeros
    std::copy(made.begin(), made.end(), tag.begin());
    return tag;
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
    if (security_ == Security::encrypt) {
        ByteString& room = next_room(to);
        if (room.size() < payload.size()) room.resize(payload.size());
        tag = gcm_->encrypt(nonce_of(header), readable(header, to), payload, room.data());
        payload = Bytes(room).first(payload.size());
    } else {
        tag = tag_of(header, payload, to);
    }
    std::memcpy(header.data() + kTagOffset, tag.data(), tag.size());
    return payload;
}

std::optional<Bytes> Protection::unseal(Bytes packet, Rank to) {
    if (!on()) return packet;
    if (packet.size() < kHeaderBytes) return {};
    const Tag tag = security_ == Security::encrypt ? decrypt(packet, to)
                                                   : tag_of(packet, packet.subspan(kHeaderBytes), to);
    if (!are_equal(tag, packet.subspan(kTagOffset, kTagBytes))) return {};
    if (to != kNoRank && !taken_[peek_sender(packet)].take(get<std::uint64_t>(packet.data() + kNumberOffset)))
        return {};
    return security_ == Security::encrypt ? Bytes(opened_).first(packet.size()) : packet;
}

Protection::Tag Protection::decrypt(Bytes packet, Rank to) {
    if (opened_.size() < packet.size()) opened_.resize(packet.size());
    std::memcpy(opened_.data(), packet.data(), kHeaderBytes);
    return gcm_->decrypt(nonce_of(packet), readable(packet, to), packet.subspan(kHeaderBytes),
                         opened_.data() + kHeaderBytes);
}

}  // namespace mcastcoll::wire
