// The station of one endpoint: see station.h for what it is for. Owns the service socket, the private
// endpoint, the watch over other processes, and the groups, including closed ones that still linger for
// others' sake.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/function_ref.h"
#include "group/round_trips.h"
#include "ofi/endpoint.h"
#include "ofi/group.h"
#include "ofi/station.h"
#include "ports/job_report.h"
#include "ports/messenger.h"
#include "ports/multicast_sockets.h"
#include "provider/log.h"
#include "provider/settings.h"
#include "transport/peer_watch.h"
#include "transport/rendezvous.h"

namespace mcastcoll::ofi {

// An inner address with everything removed that differs between members: padding, scope, a name's trailing
// zeros.
wire::ByteString normalise_address(Bytes inner_address);

class LiveStation final : public Station, private Messenger::Receiver, private group::Joins::Port {
  public:
    static Result<std::unique_ptr<Station>> open(Endpoint& endpoint);
    ~LiveStation() override;

    int join(const fi_collective_addr& address, std::uint64_t flags, fid_mc** mc, void* context) override;
    ssize_t collective(const Request& request) override;
    bool has_open_groups() const override { return !by_token_.empty(); }
    void progress() override;
    bool busy() const override;
    int wait_descriptor() const override { return poll_set_.get(); }
    bool prepare_wait() override;

    // For groups.
    const Settings& settings() const { return settings_; }
    // Blocking calls enter without the endpoint's lock.
    std::unique_lock<std::mutex> lock() const;
    Nanoseconds time() const { return monotonic_now(); }
    int progress_with_lock();
    Messenger& messenger() { return *messenger_; }
    int close_group(Group& group);
    wire::Hello own_hello(const wire::JoinId& id, Rank self, std::size_t members) const;
    // A datagram to where a member very likely has its service address, or where it was heard from.
    void greet(const wire::ByteString& member, std::uint32_t attempt, Bytes message);
    void reply(const group::Source& source, Bytes datagram) override {
        rendezvous_->reply(RendezvousSource::from_bytes(source), datagram);
    }
    bool may_be(const wire::ByteString& member, const group::Source& source) const override {
        return Rendezvous::may_be(member, RendezvousSource::from_bytes(source));
    }
    // Work of one group. What throws there ends that group and harms no other: 0 or -FI_E*.
    int within(Group& group, Nanoseconds now, FunctionRef<void()> body) noexcept;
    MulticastSockets& multicast() { return multicast_; }
    // What a new group can borrow of another's address, for those who are to listen. The application may have
    // named that one.
    std::optional<Loan> find_loan(fi_addr_t named, const std::vector<wire::ByteString>& listeners);
    void groups_changed() { report_.mark(); }
    void on_keyed(Group& group);
    group::Joins& joins() { return joins_; }
    group::RoundTrips& round_trips() { return round_trips_; }
    void watch(fi_addr_t messenger_peer, const wire::ByteString& watch_point, Nanoseconds now);
    // The same, for a peer that may be gone: if so, the watch is to say it soon.
    void look_at(fi_addr_t messenger_peer, const wire::ByteString& watch_point, Nanoseconds now);
    void report_join(fid_mc& mc, int error);
    // A joined group has failed; lost may be kNoRank.
    void report_failure(fid_mc& mc, int error, Rank lost);
    bool reserve_completion() { return endpoint_.reserve_completion(); }
    void release_completion() { endpoint_.release_completion(); }
    void complete(void* context, std::uint64_t flags, int status) {
        endpoint_.complete(context, flags, status);
    }
    template <typename... Arguments>
    void log(Level level, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
        log_line(level, text, std::forward<Arguments>(arguments)...);
    }

  private:
    explicit LiveStation(Endpoint& endpoint);
    Result<void> open_all();
    void open_multicast();
    Result<void> add_to_poll_set(int descriptor);
    Nanoseconds next_deadline() const;
    bool set_alarm(Nanoseconds time);
    void keep_alarm();

    bool same_host(const wire::ByteString& one, const wire::ByteString& other) const override;
    Result<fi_addr_t> peer(const wire::ByteString& private_address) override {
        return messenger_->peer(private_address);
    }
    void tell(std::vector<fi_addr_t> to, wire::ByteString word) override {
        messenger_->tell(std::move(to), std::move(word));
    }
    void foreign_version(const group::Source& source, std::uint8_t version) override;
    void on_message(Bytes message) override;
    void dispatch(Bytes message, Nanoseconds now);
    void on_send_error(fi_addr_t peer, int error) override;
    void tell_lost(fi_addr_t peer, int error, std::string_view reason, Nanoseconds now);
    void receive_multicasts(Nanoseconds now);
    void on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds now);
    Group* find(fi_addr_t token);
    Result<JoinPlan> plan_join(const fi_collective_addr& address, void* context);
    void bury_done() noexcept;
    void check_lost(Nanoseconds now);
    void drain();
    void write_report(Nanoseconds now);
    void write_statistics();
    void write_error(std::uint32_t event, fid_mc& mc, int error, std::uint64_t data);

    Endpoint& endpoint_;
    const Settings settings_;
    MulticastSockets multicast_;
    wire::ByteString own_address_, place_;
    std::unique_ptr<Rendezvous> rendezvous_;
    FidOwner<fid_fabric> fabric_;
    std::unique_ptr<Messenger> messenger_;
    std::unique_ptr<PeerWatch> watch_;
    FileDescriptor poll_set_, timer_;
    Nanoseconds alarm_at_ = kNever;  // what the timer is set to

    std::vector<std::unique_ptr<Group>> groups_;
    std::unordered_map<fi_addr_t, Group*> by_token_;
    std::unordered_map<std::uint64_t, Group*> by_key_;
    std::map<std::uint64_t, std::uint32_t> sequences_;  // joins called so far, by hash of the member list
    group::Joins joins_{*this};
    group::RoundTrips round_trips_;
    fi_addr_t next_token_;
    std::uint64_t turns_ = 0;
    std::size_t busy_groups_ = 0;
    Nanoseconds looked_around_at_{}, watched_at_{};
    engine::Counters ended_counters_;
    group::LevelCounters ended_levels_;
    std::uint64_t foreign_messages_ = 0;
    std::uint64_t doubts_ = 0;  // whether a member is still there
    GroupsReport report_;
};

}  // namespace mcastcoll::ofi
