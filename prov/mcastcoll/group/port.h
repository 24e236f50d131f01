// The interfaces between a group and its process: for the join; messages, multicast, shared memory and a
// process watch; callbacks for results. The provider implements them with sockets, endpoints and shared
// memory; tests and the simulator with a network that loses, duplicates and reorders.
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

// Statistics of the levels outside the engine.
struct LevelCounters {
    // Operations submitted by the application. Blocking operations inside one host count only as
    // host_operations.
    std::uint64_t group_operations = 0, group_bytes = 0;
    std::uint64_t host_operations = 0, host_bytes = 0, host_single_copies = 0, host_sleeps = 0;
    std::uint64_t operations_by_reduction = 0, operations_by_chains = 0, operations_by_split = 0,
                  block_bytes_broadcast = 0;
    std::uint64_t site_pieces_sent = 0, site_bytes_sent = 0, site_bad_pieces = 0;
    std::uint64_t unproven_packets = 0;  // failed authentication
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
    {"operations_by_reduction", &LevelCounters::operations_by_reduction},
    {"operations_by_chains", &LevelCounters::operations_by_chains},
    {"operations_by_split", &LevelCounters::operations_by_split},
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

// The level inside a host, in shared memory. Members are numbered by their places on the host.
class HostLevel : public levels::Level {
  public:
    // Ends every level operation because of this member.
    virtual void end_because_of(std::uint32_t member, int error) = 0;
    // failure(): positive FI_E* code with which another process of this host ended the level, else 0. lost():
    // the host place of the lost member, or an invalid place.
    virtual int failure() const = 0;
    virtual std::uint32_t lost() const = 0;
    // The rank of a lost member of another host, for the log of this host's processes, or kNoRank. Set before
    // the level fails because of this member.
    virtual Rank lost_elsewhere() const { return kNoRank; }
    virtual void name_lost_elsewhere(Rank) {}
    // The member that was last awaited without success.
    virtual std::uint32_t awaited() const = 0;
    virtual std::string explain() const = 0;
    virtual void add_counters(LevelCounters& sum) const = 0;
    // The member table that the leader has put into the memory.
    virtual SharedBytes table() const = 0;
};

// Round trips between networks, measured for one join and reused by the next.
class RoundTrips {
  public:
    // Maximum number of network pairs. Pairs beyond the limit are measured again for each join.
    static constexpr std::size_t kMax = 1024;

    // Identities are those of topology::SiteSurvey, in either order.
    std::optional<Nanoseconds> find(std::uint64_t one, std::uint64_t other) const {
        const auto found = times_.find(std::minmax(one, other));
        return found == times_.end() ? std::nullopt : std::optional(found->second);
    }
    // The first value counts.
    void keep(std::uint64_t one, std::uint64_t other, Nanoseconds time) {
        if (times_.size() < kMax) times_.emplace(std::minmax(one, other), time);
    }

  private:
    std::map<std::pair<std::uint64_t, std::uint64_t>, Nanoseconds> times_;
};

// Of a join.
class JoinPort {
  public:
    // This member's hello for this join.
    virtual wire::Hello own_hello() const = 0;
    // Sends a hello to the likely service address of a member: each attempt tries another port.
    virtual void send_hello(Rank to, std::uint32_t attempt, Bytes hello) = 0;
    // Sends a datagram to the address from which a member last sent. Before that, like send_hello().
    virtual void send(Rank to, std::uint32_t attempt, Bytes datagram) = 0;
    // The latest hello of this rank for a join of the same list that this process has not called, or null.
    virtual const wire::Hello* miscounted_hello(Rank rank) = 0;

    virtual RoundTrips& round_trips() = 0;

    // Inserts a member's private address for reliable messages. The error's code is an errno.
    virtual Result<Outbox::Peer> peer(const wire::ByteString& private_address) = 0;
    virtual void queue_message(std::vector<Outbox::Peer> to, wire::ByteString message) = 0;
    // Drops the messages of this join that are not being sent yet.
    virtual void withdraw() = 0;

    // Logs a sentence about the course of the join.
    virtual void explain(std::string_view sentence) = 0;

  protected:
    ~JoinPort() = default;
};

// The hellos of all members, by rank.
using Hellos = std::vector<wire::Hello>;

// The multicast addresses of a group, chosen by rank 0 and joined by the host leaders.
class Multicast {
  public:
    // On rank 0: fills in the key, epoch, multicast addresses and datagram size of an otherwise complete
    // welcome. Returns 0 or FI_E*.
    virtual int offer(wire::Welcome& welcome, const Hellos& hellos) = 0;
    // On a host leader, once. Afterwards joined() is true, or why_not() gives the reason.
    virtual void join(const wire::Welcome& welcome, const levels::Placement& placement) = 0;
    virtual bool joined() const = 0;
    virtual const std::string& why_not() const = 0;
    // The multicast address, for the log.
    virtual std::string name() const = 0;

    // Call send() only when can_send(). The payload must stay valid until the next flush().
    virtual bool can_send() const = 0;
    virtual void send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t range) = 0;
    virtual void flush() = 0;
    // Drops the references to payloads: the buffers return to the application.
    virtual void forget_payloads() = 0;

  protected:
    ~Multicast() = default;
};

// Identifies the shared memory of a host's members.
struct HostMemoryName {
    GroupKey key{};
    Epoch epoch{};
    wire::ByteString leader_point;  // identifies the leader's process for the watch
};

// The members of a host that share memory.
struct HostMembers {
    HostMemoryName name;
    std::uint32_t self = 0, size = 0;
    // On the leader, at place 0, which makes the memory: each member's clusters, outermost first, and the
    // table to store for the others.
    std::vector<std::vector<std::uint32_t>> clusters{};
    Bytes table{};
    // On the others: the memory that find_table() found.
    std::shared_ptr<const void> memory{};
};

class Port : public JoinPort {
  public:
    virtual Multicast& multicast() = 0;

    // Messages are reliable and in order. Call send_message() only when can_send().
    virtual bool can_send() const = 0;
    virtual void send_message(Outbox::Peer to, const wire::HeaderBytes& header, Bytes payload) = 0;
    // Like queue_message(), but withdraw() does not apply.
    virtual void queue_final_message(std::vector<Outbox::Peer> to, wire::ByteString message) = 0;

    // Group::on_peer_lost() follows when this process is gone.
    virtual void watch(Outbox::Peer peer, const wire::ByteString& watch_point, Nanoseconds now) = 0;
    // The same for a process that may already be gone, in which case on_peer_lost() follows soon.
    virtual void look_at(Outbox::Peer peer, const wire::ByteString& watch_point, Nanoseconds now) = 0;

    // The leader makes the memory before the other members of the host are welcomed and find it by name.
    virtual Result<SharedBytes> find_table(const HostMemoryName& name) = 0;
    virtual Result<std::unique_ptr<HostLevel>> open_host(const HostMembers& members) = 0;

    // The group has its keys, and now receives datagrams and messages with these keys.
    virtual void keyed() = 0;
    // The group has joined, or is about to fail.
    virtual void changed() = 0;
    // The join is over: 0 or FI_E*.
    virtual void join_ended(int error) = 0;
    // The join ended without a group, while peers may still count on this member.
    virtual void remember_ended(int error) = 0;
    // A joined group has failed because of the lost rank, or kNoRank.
    virtual void failed(int error, Rank lost) = 0;
    // 0 or FI_E*; once for each submitted operation.
    virtual void completed(std::uint64_t cookie, int error) = 0;

    // Describes a hello for an unknown group, received while this join waits for a hello: a clause of a log
    // sentence, or "".
    virtual std::string describe_stray_hello() = 0;
    // warn() logs a sentence for the user; address_of() gives a member's address for such a sentence.
    virtual void warn(std::string_view sentence) = 0;
    virtual std::string address_of(Rank rank) const = 0;
    // Reports once why this process cannot share memory on its host.
    virtual void warn_of_memory(std::string_view why) { warn(why); }
    // The text of a positive FI_E* code.
    virtual std::string text_of(int error) const = 0;

  protected:
    ~Port() = default;
};

}  // namespace mcastcoll::group
