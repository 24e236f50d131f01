// A station is what one endpoint needs for collectives: its service socket, its private inner endpoint, its
// multicast sockets, the watch over other processes, and its groups. It is opened by the first join, so that
// an application that never joins pays nothing. All calls are made with the fabric's lock held, but for those
// that say otherwise.
#pragma once

#include "base/clock.h"
#include "ofi/endpoint.h"
#include "ofi/group.h"
#include "topology/report.h"

namespace mcastcoll::ofi {

// The groups of one endpoint, including closed ones that still linger for others' sake: by what the
// application calls them and by the keys of what comes for them; and what those that are gone have counted.
class GroupTable {
  public:
    // Takes it over, or throws and leaves it where it is.
    void add(std::unique_ptr<Group>&& group);
    // Also of one that could not be added.
    void remove(Group& group) noexcept;
    // By what the application calls it, until it has closed it.
    Group* find(fi_addr_t token) const;
    void forget_token(Group& group) { by_token_.erase(group.fi_addr); }
    bool has_open() const { return !by_token_.empty(); }
    // By a key of its own, once it has them.
    void keyed(Group& group) {
        for (const GroupKey key : group.keys()) by_key_[static_cast<std::uint64_t>(key)] = &group;
    }
    Group* find_keyed(GroupKey key) const;

    // What a new group can borrow of another's address, for those who are to listen: of the group that the
    // application names, if it can lend; else of the smallest that has all the members.
    std::optional<Loan> find_loan(fi_addr_t named, const std::vector<wire::ByteString>& listeners) const;

    bool any_busy() const;
    bool any_greeting() const;
    Nanoseconds next_deadline() const;

    // Of all groups that are here, and of those that were.
    void sum_counters(engine::Counters& counters, group::LevelCounters& levels) const;
    // What came for nobody.
    engine::Counters& strays() { return ended_counters_; }

    // The last ones to come go first.
    void clear() {
        while (!groups_.empty()) groups_.pop_back();
    }
    bool empty() const { return groups_.empty(); }
    std::size_t size() const { return groups_.size(); }
    Group& operator[](std::size_t index) const { return *groups_[index]; }
    auto begin() const { return groups_.begin(); }
    auto end() const { return groups_.end(); }

  private:
    std::vector<std::unique_ptr<Group>> groups_;
    std::unordered_map<fi_addr_t, Group*> by_token_;
    std::unordered_map<std::uint64_t, Group*> by_key_;
    engine::Counters ended_counters_;
    group::LevelCounters ended_levels_;
};

class Station final : public Facilities, private Messenger::Receiver {
  public:
    explicit Station(Endpoint& endpoint) : endpoint_(endpoint) {}
    ~Station();
    // Once, before anything else.
    Result<void> open();

    // fi_join with FI_COLLECTIVE: starts the join and returns; FI_JOIN_COMPLETE or an error follows on the
    // event queue.
    int join(const fi_collective_addr& address, std::uint64_t flags, fid_mc** mc, void* context);
    // By what the application calls it, or null.
    Group* find(fi_addr_t token) const { return groups_.find(token); }
    // True while the application holds a group: the endpoint may not go from under it.
    bool has_open_groups() const { return groups_.has_open(); }
    // Moves everything that can move without blocking.
    void progress();
    // True while an operation, a join or a closing group needs progress on every call.
    bool busy() const;
    // A descriptor that polls readable when progress() has something to do, timers included.
    int wait_descriptor() const { return wait_set.descriptor(); }
    // Called before sleeping on wait_descriptor(). False: something is pending already, do not sleep.
    bool prepare_wait();

    // A thread that sleeps went by the deadlines of before. What another thread has begun since, or brought
    // further, may have earlier ones, and that thread need not come back.
    void keep_alarm();
    int close_group(Group& group);
    Endpoint& endpoint() { return endpoint_; }

  private:
    friend Group;  // which plugs its life into what is here
    void open_multicast();
    wire::Hello own_hello(const wire::JoinId& id, Rank self, std::size_t members) const;
    Nanoseconds next_deadline() const;

    void on_message(Bytes message) override;
    void dispatch(Bytes message, Nanoseconds now);
    void on_send_error(fi_addr_t peer, int error) override;
    void tell_lost(fi_addr_t peer, int error, std::string_view reason, Nanoseconds now);
    void receive_multicasts(Nanoseconds now);
    void on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds now);
    Result<JoinPlan> plan_join(const fi_collective_addr& address, void* context);
    void bury_done() noexcept;
    void drain();
    void write_report(Nanoseconds now);
    void write_statistics() const;

    Endpoint& endpoint_;
    wire::ByteString own_address_, place_;
    GroupTable groups_;
    std::map<std::uint64_t, std::uint32_t> sequences_;  // joins called so far, by hash of the member list
    fi_addr_t next_token_ = std::uint64_t{0x6d63} << 48;
    std::uint64_t turns_ = 0;
    std::size_t busy_groups_ = 0;
    Nanoseconds looked_around_at_{};
    std::uint64_t foreign_messages_ = 0;

    // What mcastcoll-topo --job shows of this endpoint, in a file of its own (topology/report.h).
    std::optional<topology::JobReport> report_;
    bool report_due_ = false, report_given_up_ = false;
    Nanoseconds next_report_{};  // not earlier
};

}  // namespace mcastcoll::ofi
