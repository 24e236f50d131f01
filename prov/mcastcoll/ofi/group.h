// One collective group of an endpoint: the fid_mc that fi_join_collective hands out, around one member's life
// in the group (group/group.h), whose port it is. It is fed by the station.
#pragma once

#include <rdma/fi_collective.h>

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "group/joins.h"
#include "mcastcoll/mcastcoll.h"
#include "ofi/open_operations.h"
#include "ofi/request.h"
#include "ports/group_multicast.h"
#include "ports/team_level.h"
#include "provider/log.h"
#include "provider/settings.h"

namespace mcastcoll::ofi {

class LiveStation;

struct JoinPlan {
    wire::JoinId id;
    Rank self{};
    std::vector<wire::ByteString> members;  // inner addresses in rank order, normalised
    fi_addr_t token = 0;                    // what fi_mc_addr() shall say
    fi_addr_t parent = FI_ADDR_NOTAVAIL;    // the group that the application named as this one's parent
    void* context = nullptr;
    Nanoseconds deadline = kNever;  // of the join
    GroupSettings settings;         // this member's wish; rank 0's becomes the group's
};

// For the log.
std::string name_of(const JoinPlan& plan);

class Group final : private group::Port, public group::Joins::Member {
  public:
    Group(LiveStation& station, JoinPlan plan);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    fid_mc* mc() { return &mc_.fid; }
    fi_addr_t token() const { return plan_.token; }
    const wire::JoinId& join_id() const override { return plan_.id; }
    std::size_t size() const { return plan_.members.size(); }
    Rank self() const { return plan_.self; }
    const std::vector<wire::ByteString>& members() const override { return plan_.members; }
    std::string name() const { return name_of(plan_); }
    group::Group& core() override { return core_; }
    const group::Group& core() const { return core_; }
    GroupMulticast& multicast() override { return multicast_; }
    // Of what travels for this group: its own, and its engine's if that differs.
    struct Keys {
        std::array<GroupKey, 2> keys{};
        std::size_t count = 0;
        const GroupKey* begin() const { return keys.data(); }
        const GroupKey* end() const { return keys.data() + count; }
    };
    Keys keys() const;

    bool comes_from(Rank rank, const group::Source& source) override;
    void within(Nanoseconds now, FunctionRef<void()> body) noexcept override;
    // A multicast datagram with this group's key.
    void on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds now);

    // 0 or -FI_E*. over: where the outcome of a blocking call goes; null: to the completion queue.
    ssize_t submit(const Request& request, int* over, Nanoseconds now);
    // fi_close() by the application: -FI_EBUSY while operations are open. The group lingers until it is done.
    int close(Nanoseconds now);
    // Adds this group's counters to the sums.
    void add_counters(engine::Counters& sum, group::LevelCounters& levels) const;

    // As the parent of others: it has an address of its own, and somebody hears it.
    bool can_lend() const;
    // What these members can borrow of its address, or nothing.
    std::optional<Loan> lend(const std::vector<wire::ByteString>& members) {
        return multicast_.lend(members, core_.levels().placement(), core_.levels().key());
    }

  private:
    struct McFid {
        fid_mc fid{};
        Group* group = nullptr;
    };
    // Operations that may be open at once.
    static constexpr std::size_t kMostOpen = 256;

    static Group& of(fid_mc* mc) { return *reinterpret_cast<McFid*>(mc)->group; }
    static int close_mc(fid* fid) noexcept;
    static int open_operations(fid* object, const char* name, std::uint64_t flags, void** operations,
                               void* context) noexcept;
    static int get_settings(fid_mc* mc, fi_mcastcoll_group_settings* settings) noexcept;
    static ssize_t run(fid_mc* mc, const fi_mcastcoll_request* request, int (*meanwhile)(void*),
                       void* argument) noexcept;
    static int get_shape(fid_mc* mc, fi_mcastcoll_group_shape* shape) noexcept;
    static int get_asked(fid_mc* mc, std::uint64_t* times) noexcept;
    static const char* advice(fid_mc* mc, const fi_mcastcoll_request* request) noexcept;

    // group_run.cc. A blocking call goes straight to the host's shared memory, past everything else and
    // without the lock.
    bool enter_team() {
        return shortcut_.load(std::memory_order_acquire) && operations_.empty() &&
               !in_team_.exchange(true, std::memory_order_acquire);
    }
    ssize_t run_in_team(host::Operation& operation, int (*meanwhile)(void*), void* argument);
    ssize_t run_over_levels(const Request& request, int (*meanwhile)(void*), void* argument);
    bool nap(const int& over);
    ssize_t why_not_open() const;
    // Null until the host's leader has made it.
    host::Team* team() {
        auto* level = static_cast<TeamLevel*>(core_.levels().host());
        return level == nullptr ? nullptr : &level->team();
    }

    // group_port.cc
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

    LiveStation& station_;
    McFid mc_;
    const JoinPlan plan_;
    GroupMulticast multicast_;
    OpenOperations operations_{kMostOpen};
    std::map<Rank, group::Source> sources_;  // where members' datagrams of the join came from
    // Whether blocking calls may use the team without the lock, and whether one does.
    std::atomic<bool> shortcut_{false}, in_team_{false};
    group::Group core_;
};

}  // namespace mcastcoll::ofi
