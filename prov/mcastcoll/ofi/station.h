// A station is what one endpoint needs for collectives: its service socket, its private inner endpoint, its
// multicast sockets, the watch over other processes, and its groups, including closed ones that still linger
// for others' sake. It is opened by the first join, so that an application that never joins pays nothing. All
// calls are made with the fabric's lock held, but for those that say otherwise.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "ofi/group_table.h"
#include "ofi/request.h"
#include "ports/greetings.h"
#include "ports/job_report.h"
#include "ports/messenger.h"
#include "ports/multicast_sockets.h"
#include "ports/process_watch.h"
#include "provider/log.h"
#include "provider/settings.h"
#include "transport/wait_set.h"

namespace mcastcoll::ofi {

struct Endpoint;

class Station final : private Messenger::Receiver {
  public:
    static Result<std::unique_ptr<Station>> open(Endpoint& endpoint);
    ~Station();

    // fi_join with FI_COLLECTIVE: starts the join and returns; FI_JOIN_COMPLETE or an error follows on the
    // event queue.
    int join(const fi_collective_addr& address, std::uint64_t flags, fid_mc** mc, void* context);
    // Begins one operation. 0, the completion goes to the endpoint's queue, or -FI_E*: nothing was begun.
    // -FI_ENOSYS depends on the group's shape and the kind only, so that all members get it, or none.
    ssize_t collective(const Request& request);
    // True while the application holds a group: the endpoint may not go from under it.
    bool has_open_groups() const { return groups_.has_open(); }
    // Moves everything that can move without blocking.
    void progress();
    // True while an operation, a join or a closing group needs progress on every call.
    bool busy() const;
    // A descriptor that polls readable when progress() has something to do, timers included.
    int wait_descriptor() const { return wait_set_.descriptor(); }
    // Called before sleeping on wait_descriptor(). False: something is pending already, do not sleep.
    bool prepare_wait();

    // For groups.
    const Settings& settings() const { return settings_; }
    // Blocking calls enter without the endpoint's lock.
    std::unique_lock<std::mutex> lock() const;
    void sleep(int milliseconds) const { wait_set_.sleep(milliseconds); }
    Messenger& messenger() { return *messenger_; }
    int close_group(Group& group);
    wire::Hello own_hello(const wire::JoinId& id, Rank self, std::size_t members) const;
    Greetings& greetings() { return greetings_; }
    // Work of one group. What throws there ends that group and harms no other: 0 or -FI_E*.
    int within(Group& group, Nanoseconds now, FunctionRef<void()> body) noexcept;
    MulticastSockets& multicast() { return multicast_; }
    GroupTable& groups() { return groups_; }
    void groups_changed() { report_.mark(); }
    group::Joins& joins() { return joins_; }
    group::RoundTrips& round_trips() { return round_trips_; }
    ProcessWatch& watch() { return watch_; }
    Endpoint& endpoint() { return endpoint_; }

  private:
    explicit Station(Endpoint& endpoint);
    Result<void> open_all();
    void open_multicast();
    Nanoseconds next_deadline() const;
    void keep_alarm();

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
    const Settings settings_;
    MulticastSockets multicast_;
    wire::ByteString own_address_, place_;
    Greetings greetings_;
    FidOwner<fid_fabric> fabric_;
    std::unique_ptr<Messenger> messenger_;
    ProcessWatch watch_;
    WaitSet wait_set_;

    GroupTable groups_;
    std::map<std::uint64_t, std::uint32_t> sequences_;  // joins called so far, by hash of the member list
    group::Joins joins_{greetings_};
    group::RoundTrips round_trips_;
    fi_addr_t next_token_;
    std::uint64_t turns_ = 0;
    std::size_t busy_groups_ = 0;
    Nanoseconds looked_around_at_{};
    std::uint64_t foreign_messages_ = 0;
    GroupsReport report_;
};

}  // namespace mcastcoll::ofi
