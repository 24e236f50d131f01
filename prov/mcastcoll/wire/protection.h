// Authentication tags that distinguish members from foreign hosts: in the header of a group's packets, and
// after join messages. SECURITY.md describes their purpose, FORMAT.md their position.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "wire/gcm.h"
#include "wire/mac.h"
#include "wire/packet.h"
#include "wire/peer.h"
#include "wire/taken_numbers.h"

namespace mcastcoll::wire {

enum class Security : std::uint8_t {
    off,           // a checksum only
    authenticate,  // only members can make or change packets that members accept
    encrypt,       // and only members can read them
};

// Algorithm of the tags of packets that stay readable. The numbers travel in the welcome.
enum class MacKind : std::uint8_t { umac64, gmac };
inline constexpr std::uint8_t kMacKinds = 2;

// Key of a join; none: foreign hosts cannot be distinguished from members.
using JoinKey = std::optional<Key>;

// Appends a tag to a join message: HMAC-SHA-256, truncated to kTagBytes. Without a key returns the message
// alone.
ByteString prove(Bytes message, const JoinKey& key);
// Returns the join message without its tag, or nothing if the tag is invalid. Without a key, the message has
// no tag.
std::optional<Bytes> proven(Bytes message, const JoinKey& key);

// Returns a hash of a list of members and of the key, which cannot be computed without the key.
std::uint64_t hash_members(const std::vector<ByteString>& addresses, const Key& key);

// Protects the packets of one group, on one member: authenticates by a Mac or GMAC, or encrypts by
// AES-128-GCM. The nonce is the sender's rank and a number that the sender never uses twice. A key belongs to
// one group alone (derive()), so no nonce repeats after a restart. Messages also have a position per
// receiver, so that messages to other members do not age the messages to this member.
class Protection {
  public:
    // Largest number of sealed payloads in use at once.
    static constexpr std::size_t kSealedAtOnce = 64;

    // kind: used unless packets are encrypted.
    Protection(Security security, MacKind kind, const Key& key);
    Protection(Protection&&) noexcept;
    ~Protection();

    bool on() const { return security_ != Security::off; }
    // The checksum of packets: none if they have tags.
    Checksum checksum() const { return on() ? Checksum::none : Checksum::crc32c; }
    // For log messages.
    const char* describe() const;
    // Protects a packet to this member, or with kNoRank a multicast; returns the payload to send. An
    // encrypted payload stays valid until the next message, or for kSealedAtOnce multicasts.
    Bytes seal(HeaderBytes& header, Bytes payload, Rank to);
    // Checks a packet to this member, or with kNoRank a multicast. A valid packet is readable afterwards,
    // without its tag; the bytes of an invalid packet are destroyed. Refuses replayed messages; the protocol
    // discards replayed multicasts itself.
    bool unseal(MutableBytes packet, Rank to);

  private:
    using Tag = Gcm::Tag;

    // Computes the tag of a packet that stays readable, over the concatenation of both parts.
    Tag tag_of(const Gcm::Nonce& nonce, Bytes first, Bytes second);
    // The buffer for the next encrypted payload to this member, or with kNoRank of a multicast.
    ByteString& next_room(Rank to);
    // Checks the tag and decrypts.
    bool is_proven(MutableBytes packet, Rank to, std::uint64_t position);

    const Security security_;
    std::optional<Mac> mac_;  // exactly one of Mac and Gcm if security is on
    std::unique_ptr<Gcm> gcm_;
    std::uint64_t messages_ = 0, multicasts_ = 0;  // number of sealed packets
    std::vector<ByteString> sealed_;               // the first buffer is for messages
    std::size_t next_sealed_ = 0;
    // By member: number of messages sent, and positions accepted.
    std::unordered_map<Rank, std::uint64_t> sent_;
    std::unordered_map<Rank, TakenNumbers> taken_;
};

}  // namespace mcastcoll::wire
