// What tells members from strangers: tags that only who has a key can make. A group's packets have a tag in
// their header, the words of a join have one behind them. SECURITY.md says what that is good for, FORMAT.md
// where the tags are.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "wire/gcm.h"
#include "wire/packet.h"
#include "wire/peer.h"
#include "wire/taken_numbers.h"

namespace mcastcoll::wire {

enum class Security : std::uint8_t {
    off,           // a checksum, which anybody can make
    authenticate,  // nobody else can make, or change, what members take
    encrypt,       // nor read it
};

// By what packets that stay readable are proven. The numbers travel in the welcome.
enum class MacKind : std::uint8_t { umac64, gmac };
inline constexpr std::uint8_t kMacKinds = 2;

// Of a join; none: strangers cannot be told from members.
using JoinKey = std::optional<Key>;

// A word of a join with its tag behind it: HMAC-SHA-256, cut to kTagBytes. Without a key the word alone.
ByteString prove(Bytes word, const JoinKey& key);
// The word that has the right tag behind it, or nothing.
std::optional<Bytes> proven(Bytes word, const JoinKey& key);

// What tells a list of members, and this key, from others: who has no key cannot compute it.
std::uint64_t hash_members(const std::vector<ByteString>& addresses, const Key& key);

// Protects the packets of one group, as one member sends and takes them: by a Mac or GMAC, or encrypted by
// AES-128-GCM, with the sender's rank and a number that it never uses twice as nonce. A key is of one group
// alone (derive()), so that no nonce comes again after a restart. Messages are also counted for each receiver
// alone: what a sender sends to others must not make its messages to this member look old.
class Protection {
  public:
    // Sealed payloads that can be under way at once.
    static constexpr std::size_t kSealedAtOnce = 64;

    // kind: unless they are encrypted.
    Protection(Security security, MacKind kind, const Key& key);
    Protection(Protection&&) noexcept;
    ~Protection();

    bool on() const { return security_ != Security::off; }
    // What packets have besides.
    Checksum checksum() const { return on() ? Checksum::none : Checksum::crc32c; }
    // For people.
    const char* describe() const;
    // Of a packet to this member, or by multicast to kNoRank: what is to travel behind the header. Encrypted,
    // it stays where it is until the next message, or kSealedAtOnce multicasts later.
    Bytes seal(HeaderBytes& header, Bytes payload, Rank to);
    // Whether the packet is one of a member's to this one, or by multicast to kNoRank. If so it is readable
    // afterwards, without its tag; if not, its bytes are of no use any more. A message that comes again is
    // refused; what comes again by multicast the protocol takes once anyway.
    bool unseal(MutableBytes packet, Rank to);

  private:
    using Tag = Gcm::Tag;

    // Of a packet that stays readable: of two pieces, one behind the other.
    Tag tag_of(const Gcm::Nonce& nonce, Bytes first, Bytes second);
    // Where the next encrypted payload goes.
    ByteString& next_room(Rank to);
    // Has the right tag; makes it readable.
    bool is_proven(MutableBytes packet, Rank to, std::uint64_t place_in_row);

    const Security security_;
    std::optional<Mac> mac_;  // one of both, unless it is off
    std::unique_ptr<Gcm> gcm_;
    std::uint64_t messages_ = 0, multicasts_ = 0;  // sealed so far
    std::vector<ByteString> sealed_;               // the first is messages'
    std::size_t next_sealed_ = 0;
    // Messages sealed for each member, and taken from each.
    std::unordered_map<Rank, std::uint64_t> sent_;
    std::unordered_map<Rank, TakenNumbers> taken_;
};

}  // namespace mcastcoll::wire
