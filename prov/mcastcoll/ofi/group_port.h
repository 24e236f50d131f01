// What a group asks of its process, answered by the station's sockets, messages and watch; what it tells goes
// to the group's fid_mc and the application's queues.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "group/joins.h"
#include "ofi/join_plan.h"
#include "ports/group_multicast.h"

namespace mcastcoll::ofi {

class Group;
class Station;

class GroupPort final : public group::Port {
  public:
    GroupPort(Station& station, const JoinPlan& plan, Group& group);

    // A member's datagram of the join came from there.
    void came_from(Rank rank, const group::Source& source) { sources_.insert_or_assign(rank, source); }
    GroupMulticast& multicast() override { return multicast_; }
    const GroupMulticast& multicast() const { return multicast_; }

    wire::Hello own_hello() const override;
    void greet(std::uint32_t attempt, Bytes hello) override;
    void send(Rank to, std::uint32_t attempt, Bytes datagram) override;
    const wire::Hello* miscounted_hello(Rank rank) override;
    std::optional<Nanoseconds> round_trip(std::uint64_t one, std::uint64_t other) const override;
    void keep_round_trip(std::uint64_t one, std::uint64_t other, Nanoseconds round_trip) override;
    Result<fi_addr_t> peer(const wire::ByteString& private_address) override;
    int tell(std::vector<fi_addr_t> to, wire::ByteString word) override;
    void tell_for_good(std::vector<fi_addr_t> to, wire::ByteString word) override;
    void withdraw() override;
    bool can_send() const override;
    void send_message(fi_addr_t to, const wire::HeaderBytes& header, Bytes payload) override;
    void watch(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) override;
    void look_at(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) override;
    Result<std::unique_ptr<group::HostLevel>> open_host(const group::HostMembers& members) override;
    void keyed() override;
    void changed() override;
    void join_ended(int error) override;
    void remember_ended(int error) override;
    void failed(int error, Rank lost) override;
    void completed(std::uint64_t cookie, int error) override;
    void explain(std::string_view sentence) override;
    void warn(std::string_view sentence) override;
    std::string address_of(Rank rank) const override;
    std::string text_of(int error) const override;

  private:
    Station& station_;
    const JoinPlan& plan_;
    Group& group_;
    GroupMulticast multicast_;
    std::map<Rank, group::Source> sources_;
};

}  // namespace mcastcoll::ofi
