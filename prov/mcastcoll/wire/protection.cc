#include "wire/protection.h"

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"

namespace mcastcoll::wire {
namespace {

// A bit of the number that only messages have set: messages and multicasts are counted separately.
constexpr std::uint64_t kMessage = std::uint64_t{1} << 63;

// No two packets of a group have the same sender and number.
Gcm::Nonce nonce_of(Bytes header) {
    static_assert(Gcm::kNonceBytes == sizeof(Rank) + sizeof(std::uint64_t));
    Gcm::Nonce nonce;
    std::memcpy(nonce.data(), header.data() + kSenderOffset, sizeof(Rank));
    std::memcpy(nonce.data() + sizeof(Rank), header.data() + kNumberOffset, sizeof(std::uint64_t));
    return nonce;
}

// Length of the header from the group key on, which is authenticated but never encrypted. It consists of
// whole cipher blocks.
constexpr std::size_t kReadableBytes = kHeaderBytes - kGroupKeyOffset;
static_assert(kReadableBytes % kTagBytes == 0 && kTagOffset + kTagBytes == kHeaderBytes);

// Fills the place of the tag, while a tag is made or checked, with authenticated data that is elsewhere: the
// bytes before the group key, the receiver, and the half of a message's position that is not transmitted. So
// the authenticated data of a received packet is contiguous, from the group key to the end, and one call
// processes it.
void fill_tag_place(std::byte* header, Rank to, std::uint64_t position) {
    static_assert(kGroupKeyOffset + sizeof(Rank) + sizeof(std::uint32_t) == kTagBytes);
    std::byte* const place = header + kTagOffset;
    std::memcpy(place, header, kGroupKeyOffset);
    put(place + kGroupKeyOffset, index_of(to));
    put(place + kGroupKeyOffset + sizeof(Rank), static_cast<std::uint32_t>(position >> 32));
}

}  // namespace

ByteString prove(Bytes message, const JoinKey& key) {
    ByteString out(message.begin(), message.end());
    if (!key) return out;
    const Key tag = hmac(*key, message);
    out.insert(out.end(), tag.begin(), tag.begin() + kTagBytes);
    return out;
}

std::optional<Bytes> proven(Bytes message, const JoinKey& key) {
    if (!key) return message;
    if (message.size() < kTagBytes) return {};
    const Bytes inner = message.first(message.size() - kTagBytes);
    const Key tag = hmac(*key, inner);
    if (!are_equal(Bytes(tag).first(kTagBytes), message.last(kTagBytes))) return {};
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
            return mac_ ? "packets are authenticated by UMAC-64"
                        : "packets are authenticated by AES-128-GMAC";
        case Security::encrypt:
            return "packets are encrypted and authenticated";
        case Security::off:
            break;
    }
    return "packets are not authenticated and can be forged: no secret, or FI_MCASTCOLL_SECURITY=off";
}

Protection::Tag Protection::tag_of(const Gcm::Nonce& nonce, Bytes first, Bytes second) {
    if (gcm_) return gcm_->tag(nonce, first, second);
    const Mac::Tag made = mac_->tag(nonce, first, second);
    Tag tag{};  // a shorter tag is padded with zeros
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
    // The position occupies the field of the checksum, which a group with a key does not use.
    std::uint64_t position = 0;
    if (to != kNoRank) {
        position = ++sent_[to];
        put(header.data() + kPositionOffset, static_cast<std::uint32_t>(position));
    }
    put(header.data() + kNumberOffset, to == kNoRank ? ++multicasts_ : kMessage | ++messages_);
    fill_tag_place(header.data(), to, position);
    const Bytes readable = Bytes(header).subspan(kGroupKeyOffset);
    Tag tag;
    if (security_ == Security::encrypt) {
        ByteString& room = next_room(to);
        if (room.size() < payload.size()) room.resize(payload.size());
        tag = gcm_->encrypt(nonce_of(header), readable, payload, room.data());
        payload = Bytes(room).first(payload.size());
    } else {
        tag = tag_of(nonce_of(header), readable, payload);
    }
    std::memcpy(header.data() + kTagOffset, tag.data(), tag.size());
    return payload;
}

bool Protection::is_proven(MutableBytes packet, Rank to, std::uint64_t position) {
    const Gcm::Nonce nonce = nonce_of(packet);
    const MutableBytes payload = packet.subspan(kHeaderBytes);
    Tag received;
    std::memcpy(received.data(), packet.data() + kTagOffset, received.size());
    fill_tag_place(packet.data(), to, position);
    const Bytes proven = packet.subspan(kGroupKeyOffset);
    const Tag made = security_ == Security::encrypt
                         ? gcm_->decrypt(nonce, proven.first(kReadableBytes), payload, payload.data())
                         : tag_of(nonce, proven, {});
    return are_equal(made, received);
}

bool Protection::unseal(MutableBytes packet, Rank to) {
    if (!on()) return true;
    if (packet.size() < kHeaderBytes) return false;
    if (to == kNoRank) return is_proven(packet, to, 0);
    // Allocation comes first: after an exception the caller could retry with an unchanged packet.
    const auto [taken, is_new] = taken_.try_emplace(peek_sender(packet));
    const std::uint64_t position =
        taken->second.complete(get<std::uint32_t>(packet.data() + kPositionOffset));
    const bool proven = is_proven(packet, to, position);
    if (!proven && is_new) taken_.erase(taken);
    return proven && taken->second.take(position);
}

}  // namespace mcastcoll::wire
