// The collective groups of an endpoint. A Group is the fid_mc returned by fi_join_collective and contains the
// protocol object of one member (group/group.h). The Group implements the protocol object's port with the
// endpoint's sockets, messages and watch, and reports results to the fid_mc and the application's queues. The
// CollectiveEndpoint passes received data to the Group.
#pragma once

#include <array>
#include <atomic>

#include "group/run_queue.h"
#include "ofi/facilities.h"
#include "ofi/join_request.h"
#include "ofi/open_operations.h"
#include "ofi/request.h"
#include "ports/group_multicast.h"
#include "ports/munge_secret.h"
#include "ports/team_level.h"
#include "provider/log.h"

namespace mcastcoll::ofi {

class GroupTable;

// Warns the user, once per process, that groups have no shared memory on this host.
void warn_of_no_shared_memory(std::string_view why) noexcept;

// The application identifies a group by its fi_addr. The class has so many methods because it implements all
// of group::Port and group::Joins::Member, most of them in a line or two.
class Group final : public fid_mc, public group::Joins::Member, private group::Port {
  public:
    // `calls`: the applications' operations on the fid_mc.
    Group(Facilities& shared, GroupTable& groups, fi_ops& calls, JoinRequest join_request);
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    Facilities& facilities() { return shared_; }
    // False in a child of fork(): the group belongs to the parent.
    bool is_here() const { return shared_.endpoint.process.is_here(); }
    static Group& of(fid_mc& mc) { return static_cast<Group&>(mc); }
    const wire::JoinId& join_id() const override { return join_request_.core.id; }
    std::size_t size() const { return join_request_.members->size(); }
    Rank self() const { return join_request_.core.self; }
    const group::MemberList& members() const override { return join_request_.members; }
    const wire::JoinKey& key() const override { return join_request_.message_key; }
    group::Group& core() override { return *core_; }
    const group::Group& core() const { return *core_; }
    // Keys of the packets of this group: the group's own and its engine's, which may be equal. Valid once the
    // group is formed.
    std::array<GroupKey, 2> keys() const;

    // Starts the join, or first the request for the secret that the join needs.
    void start(Nanoseconds now);
    // Runs timers and carries out effects.
    void pump(Nanoseconds now);
    Nanoseconds next_deadline() const;
    // Removes the group from the joins: later join messages are not for this group.
    void leave_joins() noexcept {
        if (std::exchange(entered_, false)) shared_.joins.remove(*this);
    }

    bool comes_from(Rank rank, const group::Source& source) override;
    void within(Nanoseconds now, FunctionRef<void()> body) noexcept override;
    // Handles a multicast datagram with this group's key.
    void on_datagram(MutableBytes bytes, const transport::SocketAddress& source, Nanoseconds now);

    // Returns 0 or -FI_E*. over: receives the outcome of a blocking call; null: the outcome goes to the
    // completion queue.
    ssize_t submit(const Request& request, int* over, Nanoseconds now);
    // Lets a blocking call use the host's shared memory directly, without the lock and past all other layers.
    // After a result of true the caller must call leave_team().
    bool enter_team() {
        if (!operations_.empty() || !team_alone_.load(std::memory_order_acquire) || in_team_.exchange(true))
            return false;
        // Another thread may have submitted an operation in the meantime. submit() opens its operation before
        // testing in_team_, so at most one of the two threads continues.
        if (operations_.empty()) [[likely]]
            return true;
        leave_team();
        return false;
    }
    void leave_team() { in_team_.store(false, std::memory_order_release); }
    // Valid once the host's leader has created the shared memory.
    host::Team& team() { return static_cast<ports::TeamLevel*>(core_->levels().host())->team(); }
    // Closes the group for the application. Returns -FI_EBUSY while operations are open. The group lingers
    // (stays to answer other members) until no member needs this member any longer.
    int close(Nanoseconds now);
    // Makes the next turn of progress visit this group.
    void wake() noexcept;
    // Adds this group's counters to the sums.
    void add_counters(engine::Counters& sum, group::LevelCounters& levels) const;

    // Lends this group's multicast address to a new group of these members. Empty unless this group has an
    // address of its own and some member receives its multicast.
    std::optional<ports::BorrowedAddress> share_address(const std::vector<wire::ByteString>& members);

    group::QueuePlace run;  // belongs to GroupTable

  private:
    void enter(Nanoseconds now);
    void await_secret(Nanoseconds now);
    ssize_t why_not_open() const;
    void write_error(std::uint32_t event, int error, std::uint64_t data);

    // group::Port
    ports::GroupMulticast& multicast() override { return multicast_; }
    wire::Hello own_hello() const override;
    void send_hello(Rank to, std::uint32_t attempt, Bytes hello) override {
        shared_.service_socket.send_hello((*join_request_.members)[index_of(to)], attempt,
                                          wire::prove(hello, key()));
    }
    void send(Rank to, std::uint32_t attempt, Bytes datagram) override;
    const wire::Hello* miscounted_hello(Rank rank) override {
        return shared_.joins.miscounted_hello(*this, rank);
    }
    group::RoundTrips& round_trips() override { return shared_.round_trips; }
    Result<fi_addr_t> peer(const wire::ByteString& address) override {
        return shared_.messenger->peer(address);
    }
    void queue_message(std::vector<fi_addr_t> to, wire::ByteString message) override {
        shared_.messenger->queue_message(std::move(to), wire::prove(message, key()), join_request_.token);
    }
    void queue_final_message(std::vector<fi_addr_t> to, wire::ByteString message) override {
        shared_.messenger->queue_message(std::move(to), wire::prove(message, key()));
    }
    void withdraw() override { shared_.messenger->withdraw(join_request_.token); }
    bool can_send() const override { return shared_.messenger->can_send(account_); }
    void send_message(fi_addr_t to, const wire::HeaderBytes& header, Bytes payload) override {
        shared_.messenger->send(account_, to, header, payload);
    }
    void watch(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) override {
        shared_.watch.watch(peer, watch_point, now);
    }
    void look_at(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) override {
        shared_.watch.look_at(peer, watch_point, now);
    }
    Result<group::SharedBytes> find_table(const group::HostMemoryName& name) override {
        return ports::find_team_table(name);
    }
    Result<std::unique_ptr<group::HostLevel>> open_host(const group::HostMembers& members) override {
        return ports::open_team_level(members, OpenOperations::kMax);
    }
    void keyed() override;
    void changed() override;
    void join_ended(int error) override;
    void remember_ended(int error) override {
        if (entered_) shared_.joins.remember_ended(*this, error);
    }
    void failed(int error, Rank lost) override;
    void completed(std::uint64_t cookie, int error) override;
    void explain(std::string_view sentence) override {
        provider::log_line(provider::Level::info, "{}: {}", join_request_.name(), sentence);
    }
    std::string describe_stray_hello() override;
    void warn(std::string_view sentence) override {
        provider::log_line(provider::Level::warn, "{}: {}", join_request_.name(), sentence);
    }
    void warn_of_memory(std::string_view why) override { warn_of_no_shared_memory(why); }
    std::string address_of(Rank rank) const override;
    std::string text_of(int error) const override { return fi_strerror(error); }

    Facilities& shared_;
    GroupTable& groups_;
    JoinRequest join_request_;
    ports::GroupMulticast multicast_;
    ports::Messenger::Account account_;
    // Source addresses of the members' join datagrams.
    std::map<Rank, group::Source> sources_;
    OpenOperations operations_;
    // Whether blocking calls may use the host's shared memory directly, and whether one is doing so.
    std::atomic<bool> team_alone_{false}, in_team_{false};
    bool entered_ = false;  // added to shared_.joins
    // Set while the secret is requested or members may request it.
    std::unique_ptr<ports::MungeSecret> secret_;
    std::unique_ptr<group::Group> core_;  // replaced once when the secret is known
};

}  // namespace mcastcoll::ofi
