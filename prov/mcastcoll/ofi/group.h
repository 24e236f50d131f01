// One collective group of an endpoint: the fid_mc that fi_join_collective hands out, around one member's life
// in the group (group/group.h). It is fed by the station.
#pragma once

#include <rdma/fi_collective.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "group/joins.h"
#include "mcastcoll/mcastcoll.h"
#include "ofi/group_port.h"
#include "ofi/open_operations.h"
#include "ofi/request.h"
#include "ports/team_level.h"
#include "provider/log.h"
#include "provider/settings.h"

namespace mcastcoll::ofi {

class Station;

// Whether blocking calls may go straight to the host's shared memory, without the lock, and whether one does.
class Shortcut {
  public:
    void set(bool works) { works_ = works; }
    bool enter() {
        return works_.load(std::memory_order_acquire) && !in_use_.exchange(true, std::memory_order_acquire);
    }
    void leave() { in_use_.store(false, std::memory_order_release); }
    bool in_use() const { return in_use_; }

  private:
    std::atomic<bool> works_{false}, in_use_{false};
};

class Group final : public group::Joins::Member {
  public:
    Group(Station& station, JoinPlan plan);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    Station& station() { return station_; }
    std::unique_lock<std::mutex> lock() const;
    fid_mc* mc() { return &handle_.fid; }
    static Group& of(fid_mc& mc) { return *reinterpret_cast<Handle&>(mc).group; }
    fi_addr_t token() const { return plan_.token; }
    const wire::JoinId& join_id() const override { return plan_.id; }
    std::size_t size() const { return plan_.members.size(); }
    Rank self() const { return plan_.self; }
    const std::vector<wire::ByteString>& members() const override { return plan_.members; }
    group::Group& core() override { return core_; }
    const group::Group& core() const { return core_; }
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
    // The public extension's: posts and waits.
    ssize_t run(const fi_mcastcoll_request& request, int (*meanwhile)(void*), void* argument);
    // The core's word on what submit() has begun.
    void completed(std::uint32_t cookie, int error);
    // The core has joined, or is about to fail.
    void set_shortcut();
    // fi_close() by the application: -FI_EBUSY while operations are open. The group lingers until it is done.
    int close(Nanoseconds now);
    // Adds this group's counters to the sums.
    void add_counters(engine::Counters& sum, group::LevelCounters& levels) const;

    // As the parent of others: it has an address of its own, and somebody hears it.
    bool can_lend() const;
    // What these members can borrow of its address, or nothing.
    std::optional<Loan> lend(const std::vector<wire::ByteString>& members) {
        return port_.multicast().lend(members, core_.levels().placement(), core_.levels().key());
    }

  private:
    struct Handle {
        fid_mc fid{};
        Group* group = nullptr;
    };
    void open_fid();  // group_fid.cc
    // group_run.cc. A blocking call goes straight to the host's shared memory, past everything else and
    // without the lock.
    bool enter_team() { return operations_.empty() && shortcut_.enter(); }
    ssize_t run_in_team(host::Operation& operation, int (*meanwhile)(void*), void* argument);
    ssize_t run_over_levels(const Request& request, int (*meanwhile)(void*), void* argument);
    bool nap(const int& over);
    ssize_t why_not_open() const;
    // Null until the host's leader has made it.
    host::Team* team() {
        auto* level = static_cast<TeamLevel*>(core_.levels().host());
        return level == nullptr ? nullptr : &level->team();
    }

    Station& station_;
    const JoinPlan plan_;
    Handle handle_;
    GroupPort port_;
    OpenOperations operations_;
    Shortcut shortcut_;
    group::Group core_;
};

}  // namespace mcastcoll::ofi
