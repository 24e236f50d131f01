// What a group needs of the process that it lives in, beyond its join (join_port.h): messages, multicast,
// shared memory, a watch over processes; and who is told what becomes of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "group/host_level.h"
#include "group/join_port.h"
#include "group/survey_round.h"
#include "levels/placement.h"
#include "wire/join.h"
#include "wire/packet.h"

namespace mcastcoll::group {

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

// The members of a host that share memory.
struct HostMembers {
    GroupKey key{};
    Epoch epoch{};
    std::uint32_t self = 0, size = 0;
    std::vector<std::vector<std::uint32_t>> clusters;  // of each member, outside in
    wire::ByteString leader_point;                     // how the leader's process is watched
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

    // The leader, at place 0, makes the memory; for the others it is EAGAIN until it has.
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

    // A sentence for the user to see; where a member is, for such a sentence.
    virtual void warn(std::string_view sentence) = 0;
    virtual std::string address_of(Rank rank) const = 0;
    // Of a positive FI_E* code.
    virtual std::string text_of(int error) const = 0;

  protected:
    ~Port() = default;
};

}  // namespace mcastcoll::group
