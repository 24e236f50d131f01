// The interfaces between a group and its process: for the join, messages, multicast, shared memory and the
// process watch (which reports the end of a watched process), and callbacks for results. The provider
// implements them with sockets, endpoints and shared memory; tests and the simulator with a network that
// loses, duplicates and reorders.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "group/host_level.h"
#include "group/join_port.h"
#include "group/member_table.h"
#include "group/multicast.h"
#include "group/outbox.h"
#include "wire/packet.h"

namespace mcastcoll::group {

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

    // Watches a process. Group::on_peer_lost() follows when the process is gone.
    virtual void watch(Outbox::Peer peer, const wire::ByteString& watch_point, Nanoseconds now) = 0;
    // Checks a process that may already be gone. If it is, on_peer_lost() follows soon.
    virtual void look_at(Outbox::Peer peer, const wire::ByteString& watch_point, Nanoseconds now) = 0;

    // Finds the member table in the leader's memory. The leader makes the memory before the other members of
    // the host are welcomed.
    virtual Result<SharedBytes> find_table(const HostMemoryName& name) = 0;
    virtual Result<std::unique_ptr<HostLevel>> open_host(const HostMembers& members) = 0;

    // The group has its keys, and now receives datagrams and messages with these keys.
    virtual void keyed() = 0;
    // The group has joined, or is about to fail.
    virtual void changed() = 0;
    // The join is over: 0 or FI_E*.
    virtual void join_ended(int error) = 0;
    // The join ended without a group. Peers may still count on this member.
    virtual void remember_ended(int error) = 0;
    // A joined group has failed because of the lost rank, or kNoRank.
    virtual void failed(int error, Rank lost) = 0;
    // An operation has ended with 0 or FI_E*. Called once for each submitted operation.
    virtual void completed(std::uint64_t cookie, int error) = 0;

    // Describes a hello for an unknown group, received while this join waits for a hello: a clause of a log
    // sentence, or "".
    virtual std::string describe_stray_hello() = 0;
    // Logs a sentence for the user.
    virtual void warn(std::string_view sentence) = 0;
    // The address of a member, for the log.
    virtual std::string address_of(Rank rank) const = 0;
    // Reports once why this process cannot share memory on its host.
    virtual void warn_of_memory(std::string_view why) { warn(why); }
    // The text of a positive FI_E* code.
    virtual std::string text_of(int error) const = 0;

  protected:
    ~Port() = default;
};

}  // namespace mcastcoll::group
