// The collective endpoint of one libfabric endpoint: its state for collectives. Owns the service socket, the
// private inner endpoint, the multicast sockets, the watch over peers' processes, and the groups. The first
// join opens the CollectiveEndpoint, so an application that never joins pays nothing.
// The fabric's lock must be held in all calls, unless noted otherwise.
#pragma once

#include "group/poll_selector.h"
#include "ofi/facilities.h"
#include "ofi/group.h"
#include "ofi/group_table.h"
#include "ofi/join_request.h"
#include "ports/foreign_connection_pace.h"
#include "ports/service_pace.h"
#include "topology/job_report.h"

namespace mcastcoll::ofi {

class CollectiveEndpoint final : public Facilities, private ports::Messenger::Receiver {
  public:
    explicit CollectiveEndpoint(BoundEndpoint& its_endpoint) : Facilities(its_endpoint) {}
    ~CollectiveEndpoint();
    // Opens the sockets and the private endpoint. Called once, before all other calls.
    Result<void> open();

    // fi_join with FI_COLLECTIVE: starts the join and returns. FI_JOIN_COMPLETE or an error follows on the
    // event queue.
    int join(const fi_collective_addr& address, std::uint64_t flags, fid_mc** mc, void* context);
    // Finds a group by the application's token; null if there is none.
    Group* find(fi_addr_t token) const { return groups_.find(token); }
    // True while the application holds a group: the endpoint must not be closed.
    bool has_open_groups() const { return groups_.has_open(); }
    // Makes progress without blocking. Reads the sources where a packet is expected at every turn and the
    // other sources only every few turns, unless `everywhere` is set.
    void progress(bool everywhere = false);
    // True while an operation, a join or a closing group needs progress on every call.
    bool busy() const;
    // A descriptor that polls readable when progress() has work, including expired timers.
    int wait_descriptor() const { return wait_set.descriptor(); }
    // Called before sleeping on wait_descriptor(). Returns false if the caller must not sleep: work is
    // pending, or the messenger would first need a pause that `may_pause` does not allow
    // (Messenger::prepare_wait).
    bool prepare_wait(bool may_pause = true);

    // Moves the alarm of a sleeping thread to the earliest deadline. Calls of another thread may have created
    // earlier deadlines, and that thread may not call again.
    void keep_alarm();
    // Sum over all groups, closed ones included; empty if there is no counter of this name.
    std::optional<std::uint64_t> counter(std::string_view name) const;
    int close_group(Group& group);
    static CollectiveEndpoint& of(Group& group) {
        return static_cast<CollectiveEndpoint&>(group.facilities());
    }

  private:
    // The applications' operations on a group's fid_mc: group_calls.cc.
    static fi_ops& group_calls();
    void open_multicast();
    Nanoseconds next_deadline() const;

    void on_message(MutableBytes message) override;
    void dispatch(MutableBytes message, Nanoseconds now);
    void on_send_error(fi_addr_t peer, int error) override;
    void report_lost(fi_addr_t peer, int error, std::string_view reason, Nanoseconds now);
    void note_busy();
    void end_foreign_connections(Nanoseconds now);
    bool has_members_at(const transport::SocketAddress& host) const;
    void read_service_socket(Nanoseconds now);
    std::uint64_t foreign_datagrams() const {
        return joins.foreign_datagrams() + secrets.foreign_datagrams();
    }
    Nanoseconds set_service_wakes();
    void receive_multicasts(Nanoseconds now);
    void on_datagram(MutableBytes bytes, const transport::SocketAddress& source, Nanoseconds now);
    Result<JoinRequest> make_join_request(const fi_collective_addr& address, void* context);
    Result<void> add_munge_request(JoinRequest& join_request, const wire::ByteString& set_key);
    void remove_done() noexcept;
    void drain();
    bool wants_report(Nanoseconds now);
    void write_report();
    void write_statistics() const;

    wire::ByteString own_address_;
    GroupTable groups_;
    std::map<std::uint64_t, std::uint32_t> sequences_;  // number of joins so far, by JoinRequest::counted_as
    fi_addr_t next_token_ = std::uint64_t{0x6d63} << 48;
    std::uint64_t turns_ = 0, visits_ = 0;  // turns of progress(), and visits of groups in these turns
    std::size_t busy_groups_ = 0;
    engine::PollHint poll_hint_ = engine::kPollAll;  // combined hint of the busy groups
    group::PollSelector poll_selector_;
    Nanoseconds looked_around_at_{}, service_read_at_{};
    ports::ServicePace service_pace_;
    bool service_wakes_ = true, slept_ = false;
    std::uint64_t foreign_messages_ = 0, foreign_connections_ended_ = 0;
    // The private endpoint's address. Empty if source addresses cannot distinguish members from other hosts.
    std::optional<transport::SocketAddress> listens_at_;
    ports::ForeignConnectionPace foreign_pace_;

    // The data for mcastcoll-topo --job about this endpoint, in a file of its own (topology/job_report.h).
    std::optional<topology::JobReport> report_;
    bool report_given_up_ = false;
    Nanoseconds next_report_{};  // earliest time of the next report
};

}  // namespace mcastcoll::ofi
