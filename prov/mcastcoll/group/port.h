// What a group needs of the process that it lives in: for its join, and beyond it messages, multicast, shared
// memory, a watch over processes; and who is told what becomes of it. The provider's ports have sockets,
// endpoints and memories behind them; a test's or the simulator's have a network that loses, doubles and
// reorders.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "group/member_table.h"
#include "group/outbox.h"
#include "levels/level.h"
#include "wire/packet.h"

namespace mcastcoll::group {

// What the levels outside the engine count, for the statistics.
struct LevelCounters {
    // What the application asked for, but for blocking operations inside one host, which only that counts.
    std::uint64_t group_operations = 0, group_bytes = 0;
    std::uint64_t host_operations = 0, host_bytes = 0, host_single_copies = 0, host_sleeps = 0;
    std::uint64_t plans_reduction = 0, plans_chains = 0, plans_split = 0, block_bytes_broadcast = 0;
    std::uint64_t site_pieces_sent = 0, site_bytes_sent = 0, site_bad_pieces = 0;
    std::uint64_t unproven_packets = 0;  // of strangers
    std::uint64_t exchange_pieces_sent = 0, exchange_bytes_sent = 0, exchange_bad_pieces = 0;
};

struct NamedLevelCounter {
    const char* name;
    std::uint64_t LevelCounters::*member;
};
inline constexpr NamedLevelCounter kLevelCounters[] = {
    {"group_operations", &LevelCounters::group_operations},
    {"group_bytes", &LevelCounters::group_bytes},
    {"host_operations", &LevelCounters::host_operations},
    {"host_bytes", &LevelCounters::host_bytes},
    {"host_single_copies", &LevelCounters::host_single_copies},
    {"host_sleeps", &LevelCounters::host_sleeps},
    {"plans_reduction", &LevelCounters::plans_reduction},
    {"plans_chains", &LevelCounters::plans_chains},
    {"plans_split", &LevelCounters::plans_split},
    {"block_bytes_broadcast", &LevelCounters::block_bytes_broadcast},
    {"site_pieces_sent", &LevelCounters::site_pieces_sent},
    {"site_bytes_sent", &LevelCounters::site_bytes_sent},
    {"site_bad_pieces", &LevelCounters::site_bad_pieces},
    {"unproven_packets", &LevelCounters::unproven_packets},
    {"exchange_pieces_sent", &LevelCounters::exchange_pieces_sent},
    {"exchange_bytes_sent", &LevelCounters::exchange_bytes_sent},
    {"exchange_bad_pieces", &LevelCounters::exchange_bad_pieces},
};
static_assert(sizeof(LevelCounters) == std::size(kLevelCounters) * sizeof(std::uint64_t),
              "a counter is missing from the list");

// The level inside a host: shared memory. Members are counted by their places on the host.
class HostLevel : public levels::Level {
  public:
    // Ends every leg, because of this member.
    virtual void end_because_of(std::uint32_t member, int error) = 0;
    // Why others of this host have ended it, a positive FI_E* code, and whose death was the reason; 0, and
    // nobody's place, when none has.
    virtual int failure() const = 0;
    virtual std::uint32_t lost() const = 0;
    // The rank of a lost member of another host, for the messages of this host's processes. It is named
    // before the level fails because of it; kNoRank: nobody was.
    virtual Rank lost_elsewhere() const { return kNoRank; }
    virtual void name_lost_elsewhere(Rank) {}
    // Who was last waited for in vain.
    virtual std::uint32_t awaited() const = 0;
    virtual std::string explain() const = 0;
    virtual void add_counters(LevelCounters& sum) const = 0;
    // What the leader has put there for the others.
    virtual SharedBytes table() const = 0;
};

// Round trips between networks that were measured for one join and need not be measured for the next.
class RoundTrips {
  public:
    // Pairs of networks. What comes when they are all there is measured again each time.
    static constexpr std::size_t kMost = 1024;

    // By the identities that topology::SiteSurvey gives, in either order.
    std::optional<Nanoseconds> find(std::uint64_t one, std::uint64_t other) const {
        const auto found = times_.find(std::minmax(one, other));
        return found == times_.end() ? std::nullopt : std::optional(found->second);
    }
    // The first word counts.
    void keep(std::uint64_t one, std::uint64_t other, Nanoseconds time) {
        if (times_.size() < kMost) times_.emplace(std::minmax(one, other), time);
    }

  private:
    std::map<std::pair<std::uint64_t, std::uint64_t>, Nanoseconds> times_;
};

// For a join.
class JoinPort {
  public:
    // This member's greeting for this join.
    virtual wire::Hello own_hello() const = 0;
    // A greeting to where a member very likely has its service address: each attempt tries another place.
    virtual void greet(Rank to, std::uint32_t attempt, Bytes hello) = 0;
    // A datagram to where a member was heard from. Before it was, as greet().
    virtual void send(Rank to, std::uint32_t attempt, Bytes datagram) = 0;
    // The latest greeting of this rank for another join of the same list, which this process has not called;
    // or null.
    virtual const wire::Hello* miscounted_hello(Rank rank) = 0;

    virtual RoundTrips& round_trips() = 0;

    // A member's private endpoint, to be told reliably. The error's code is an errno.
    virtual Result<Outbox::Peer> peer(const wire::ByteString& private_address) = 0;
    virtual void tell(std::vector<Outbox::Peer> to, wire::ByteString word) = 0;
    // What this join has told and what is not under way yet will not be.
    virtual void withdraw() = 0;

    // A sentence for who wants to know how it went.
    virtual void explain(std::string_view sentence) = 0;

  protected:
    ~JoinPort() = default;
};

// Everybody's greeting, by rank.
using Guests = std::vector<wire::Hello>;

// The addresses that rank 0 chooses for a group and that the leaders of its hosts listen to.
class Multicast {
  public:
    // Rank 0, of a welcome that has everything else: its key, epoch, addresses, and how long its datagrams
    // are. 0 or FI_E*.
    virtual int offer(wire::Welcome& welcome, const Guests& guests) = 0;
    // A leader of a host, once. Afterwards joined(), or why_not() says why there is no multicast here.
    virtual void join(const wire::Welcome& welcome, const levels::Placement& placement) = 0;
    virtual bool joined() const = 0;
    virtual const std::string& why_not() const = 0;
    // Where it goes, for people.
    virtual std::string name() const = 0;

    // Call send() only when can_send(). The payload stays where it is until the next flush().
    virtual bool can_send() const = 0;
    virtual void send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t range) = 0;
    virtual void flush() = 0;
    // The payloads are the application's again.
    virtual void forget_payloads() = 0;

  protected:
    ~Multicast() = default;
};

// What tells the memory of a host's members from all others.
struct HostMemoryName {
    GroupKey key{};
    Epoch epoch{};
    wire::ByteString leader_point;  // how the leader's process is watched
};

// The members of a host that share memory.
struct HostMembers {
    HostMemoryName name;
    std::uint32_t self = 0, size = 0;
    // Of the leader, at place 0, which makes the memory: each member's clusters, outside in, and what is to
    // lie there for the others.
    std::vector<std::vector<std::uint32_t>> clusters{};
    Bytes table{};
    // Of the others: what find_table() has found.
    std::shared_ptr<const void> memory{};
};

class Port : public JoinPort {
  public:
    virtual Multicast& multicast() = 0;

    // Messages are reliable and in order. Call send_message() only when can_send().
    virtual bool can_send() const = 0;
    virtual void send_message(Outbox::Peer to, const wire::HeaderBytes& header, Bytes payload) = 0;
    // As tell(), but not to be withdrawn.
    virtual void tell_for_good(std::vector<Outbox::Peer> to, wire::ByteString word) = 0;

    // Group::on_peer_lost() is to follow when this process is gone.
    virtual void watch(Outbox::Peer peer, const wire::ByteString& watch_point, Nanoseconds now) = 0;
    // The same, of a process that may be gone: if so, it is to follow soon.
    virtual void look_at(Outbox::Peer peer, const wire::ByteString& watch_point, Nanoseconds now) = 0;

    // The leader makes the memory before it welcomes the others, who find it by its name.
    virtual Result<SharedBytes> find_table(const HostMemoryName& name) = 0;
    virtual Result<std::unique_ptr<HostLevel>> open_host(const HostMembers& members) = 0;

    // The group has its keys: what comes with them is for it.
    virtual void keyed() = 0;
    // It has joined, or is about to fail.
    virtual void changed() = 0;
    // The join is over: 0 or FI_E*.
    virtual void join_ended(int error) = 0;
    // This member's join is over without a group, and others may still count on it.
    virtual void remember_ended(int error) = 0;
    // A group that had joined has failed because of this member, or kNoRank.
    virtual void failed(int error, Rank lost) = 0;
    // 0 or FI_E*; once for each operation that was submitted.
    virtual void completed(std::uint64_t cookie, int error) = 0;

    // Who greets, but for a group that is not known here, while this one waits for a greeting: "" or a clause
    // of such a sentence.
    virtual std::string stray_greeting() = 0;
    // A sentence for the user to see; where a member is, for such a sentence.
    virtual void warn(std::string_view sentence) = 0;
    virtual std::string address_of(Rank rank) const = 0;
    // Why this process can share no memory with others of its host, for the user to see once.
    virtual void warn_of_memory(std::string_view why) { warn(why); }
    // Of a positive FI_E* code.
    virtual std::string text_of(int error) const = 0;

  protected:
    ~Port() = default;
};

}  // namespace mcastcoll::group
