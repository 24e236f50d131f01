// A station is what one endpoint needs for collectives: its service socket, its private inner endpoint, its
// multicast sockets, the watch over other processes, and its groups. It is opened by the first join, so that
// an application that never joins pays nothing. All calls are made with the fabric's lock held, but for those
// that say otherwise.
#pragma once

#include "base/clock.h"
#include "group/attention.h"
#include "ofi/group.h"
#include "ports/strangers.h"
#include "topology/report.h"

namespace mcastcoll::ofi {

class Station final : public Facilities, private Messenger::Receiver {
  public:
    explicit Station(BoundEndpoint& its_endpoint) : Facilities(its_endpoint) {}
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
    // Moves everything that can move without blocking. It looks first where something is expected, and
    // elsewhere only every few turns, unless it is to look everywhere.
    void progress(bool everywhere = false);
    // True while an operation, a join or a closing group needs progress on every call.
    bool busy() const;
    // A descriptor that polls readable when progress() has something to do, timers included.
    int wait_descriptor() const { return wait_set.descriptor(); }
    // Called before sleeping on wait_descriptor(). False: something is pending already, do not sleep; or it
    // would take a pause (Messenger::prepare_wait).
    bool prepare_wait(bool may_pause = true);

    // A thread that sleeps went by the deadlines of before. What another thread has begun since, or brought
    // further, may have earlier ones, and that thread need not come back.
    void keep_alarm();
    // Of all groups, closed ones included; nothing where no counter is called so.
    std::optional<std::uint64_t> counter(std::string_view name) const;
    int close_group(Group& group);
    static Station& of(Group& group) { return static_cast<Station&>(group.facilities()); }

  private:
    static fi_ops& group_calls();  // what applications may call on a group's fid_mc: group_calls.cc
    void open_multicast();
    Nanoseconds next_deadline() const;

    void on_message(MutableBytes message) override;
    void dispatch(MutableBytes message, Nanoseconds now);
    void on_send_error(fi_addr_t peer, int error) override;
    void tell_lost(fi_addr_t peer, int error, std::string_view reason, Nanoseconds now);
    void note_busy();
    void look_for_strangers(Nanoseconds now);
    bool has_members_at(const SocketAddress& host) const;
    void receive_greetings(Nanoseconds now);
    std::uint64_t foreign_datagrams() const {
        return joins.foreign_datagrams() + secrets.foreign_datagrams();
    }
    Nanoseconds heed_greetings();
    void receive_multicasts(Nanoseconds now);
    void on_datagram(MutableBytes bytes, const SocketAddress& source, Nanoseconds now);
    Result<JoinPlan> plan_join(const fi_collective_addr& address, void* context);
    Result<void> plan_munge(JoinPlan& plan, const wire::ByteString& set_key);
    void bury_done() noexcept;
    void drain();
    bool wants_report(Nanoseconds now);
    void write_report();
    void write_statistics() const;

    wire::ByteString own_address_;
    GroupTable groups_;
    std::map<std::uint64_t, std::uint32_t> sequences_;  // joins called so far, by JoinPlan::counted_as
    fi_addr_t next_token_ = std::uint64_t{0x6d63} << 48;
    std::uint64_t turns_ = 0, visits_ = 0;  // of progress; of groups in these
    std::size_t busy_groups_ = 0;
    engine::Expectation expected_ = engine::kAnything;  // by them
    group::Attention attention_;
    Nanoseconds looked_around_at_{}, greetings_at_{};
    GreetingPace greeting_pace_;
    bool greetings_heeded_ = true, slept_ = false;
    std::uint64_t foreign_messages_ = 0, strangers_ended_ = 0;
    // The private endpoint's address; empty where source addresses do not tell strangers from members.
    std::optional<SocketAddress> listens_at_;
    StrangerPace stranger_pace_;

    // What mcastcoll-topo --job shows of this endpoint, in a file of its own (topology/report.h).
    std::optional<topology::JobReport> report_;
    bool report_given_up_ = false;
    Nanoseconds next_report_{};  // not earlier
};

}  // namespace mcastcoll::ofi
