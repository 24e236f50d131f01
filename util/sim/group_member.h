// Members of groups in virtual time: processes, and their part in each group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "group/join_memory.h"
#include "group/joins.h"
#include "group_options.h"
#include "host_memory.h"

namespace mcastcoll::sim {

// The address of a process for messages: its number, and the count of earlier starts. Datagrams are addressed
// by number alone.
using Address = group::Outbox::Peer;
constexpr Address address_of(std::uint32_t number, std::uint32_t restarts) {
    return std::uint64_t{restarts} << 32 | number;
}
constexpr std::uint32_t number_of(Address address) {
    return static_cast<std::uint32_t>(address);
}

class GroupMember;
class GroupProcess;

// The interface of processes and members to the world, for everything between processes.
class GroupEnvironment : public Simulation {
  public:
    const GroupOptions& options() const { return options_; }
    Random& random() { return random_; }
    using Simulation::begun, Simulation::network;
    Network& network() { return network_; }
    // Warnings of members to their users.
    std::vector<std::string> warnings;
    SharedGroup& shared_group(std::uint32_t group) { return shared_groups_[group]; }
    std::uint32_t host_of(std::uint32_t process) const { return options_.host_of[process]; }
    // A restarted process has the endpoint after all others.
    std::uint32_t endpoint_of(Address process) const {
        return process == number_of(process) ? number_of(process) : processes();
    }

    // Number of operations of this group that a member may have posted by now.
    virtual std::size_t may_post(std::uint32_t group) const = 0;
    // A member has joined, or has completed one more operation.
    virtual void step_completed(std::uint32_t group, std::uint32_t rank, std::uint32_t endpoint,
                                bool joined) = 0;
    virtual bool may_send(std::uint32_t endpoint) = 0;
    virtual void message(std::uint32_t endpoint, Address to, Bytes header, Bytes payload) = 0;
    virtual void watch(std::uint32_t endpoint, Address peer) = 0;
    // The shared memory of a host's processes: created by the leader, found by the remaining processes. Null:
    // no such memory.
    virtual std::shared_ptr<HostMemory> make_memory(const group::HostMembers& members,
                                                    const GroupProcess& leader) = 0;
    virtual std::shared_ptr<HostMemory> find_memory(GroupKey key, const GroupProcess& process) const = 0;
    // Takes over a member released by its process.
    virtual void retire(std::unique_ptr<GroupMember> member) = 0;

  protected:
    GroupEnvironment(const Conditions& conditions, std::uint32_t endpoints, GroupOptions&& options)
        : Simulation(conditions, first_numbers(endpoints), std::vector<std::uint32_t>(endpoints),
                     options.groups.size()),
          options_(std::move(options)) {
        for (const GroupSetup& setup : options_.groups)
            shared_groups_.emplace_back(shared_groups_.size() + 1, setup);
    }
    std::uint32_t processes() const { return static_cast<std::uint32_t>(options_.host_of.size()); }

    const GroupOptions options_;
    std::vector<SharedGroup> shared_groups_;  // by group
};

// The counterpart of the provider's collective endpoint in virtual time: the groups of one process, and its
// output of messages.
class GroupProcess final : private group::Outbox::Port, private group::Joins::Port {
  public:
    GroupProcess(GroupEnvironment& world, Address self);
    ~GroupProcess();

    GroupEnvironment& world() const { return world_; }
    std::uint32_t endpoint() const { return endpoint_; }
    std::uint32_t number() const { return number_of(self_); }
    // Number of joins of the same members so far.
    std::uint32_t counted() const;
    bool has_multicast() const;
    wire::Peer as_peer() const;
    group::Joins& joins() { return joins_; }
    std::vector<std::unique_ptr<GroupMember>>& members() { return members_; }

    void call(std::uint32_t group);
    void on_datagram(std::uint32_t from, Bytes bytes);
    void on_message(Bytes message);
    // Delivers messages left by an earlier run of the same members, with the same names and the same secret.
    void on_earlier_ends();
    void on_multicast(Bytes datagram);
    void on_peer_lost(Address peer);
    // Runs the groups and the applications until neither makes progress.
    void progress();
    Nanoseconds next_deadline() const { return next_deadline_; }

    bool can_send();
    void send_now(Address to, Bytes header, Bytes payload);
    // No join message is longer than a message of the provider.
    void queue_message(std::vector<Address> to, wire::ByteString message, group::Outbox::Owner owner);
    void withdraw(group::Outbox::Owner owner) { outbox_.withdraw(owner); }
    void sent();
    group::RoundTrips& round_trips() { return round_trips_; }

  private:
    MutableBytes own(Bytes packet);
    bool has_room(std::size_t) const override;
    void send_join_message(Address to, Bytes message) override { send_now(to, message, {}); }
    // group::Joins::Port
    bool may_be(const wire::ByteString& member, const group::Source& source) const override {
        return member == source;
    }
    bool same_host(const wire::ByteString& one, const wire::ByteString& other) const override;
    void reply(const group::Source& source, Bytes datagram) override;
    Result<Address> peer(const wire::ByteString& private_address) override {
        return value_of<Address>(private_address);
    }
    void queue_message(std::vector<Address> to, wire::ByteString message) override {
        queue_message(std::move(to), std::move(message), group::Outbox::kNoOwner);
    }
    void foreign_version(const group::Source&, std::uint8_t) override {}

    GroupEnvironment& world_;
    const Address self_;
    const std::uint32_t endpoint_;
    std::size_t under_way_ = 0;  // messages
    group::Outbox outbox_;
    std::vector<std::unique_ptr<GroupMember>> members_;  // until closed and no longer needed by peers
    group::Joins joins_{*this};
    group::RoundTrips round_trips_;
    wire::ByteString own_;
    Nanoseconds next_deadline_ = kNever;
};

// A process's part in one group, in virtual time: the counterpart of the provider's group (ofi/group.h)
// around the pure group, and the application, which checks every byte. Most of the methods implement the
// ports of a group.
class GroupMember final : public group::Joins::Member, private group::Port, private group::Multicast {
  public:
    GroupMember(GroupProcess& process, SharedGroup& shared);

    group::Group& core() override { return core_; }
    const wire::JoinId& join_id() const override { return id_; }
    const group::MemberList& members() const override { return shared_.addresses(); }
    const wire::JoinKey& key() const override { return process_.world().options().key; }
    bool comes_from(Rank rank, const group::Source& source) override {
        return index_of(rank) < members()->size() && (*members())[index_of(rank)] == source;
    }
    void within(Nanoseconds, FunctionRef<void()> body) noexcept override { body(); }
    bool has_key(GroupKey key) const;
    bool listens() const { return listens_; }

    // The application: posts as far as allowed, and closes at the end. Returns true if it made progress.
    bool work();
    // The application closes groups that it has not joined yet.
    void give_up();
    // The process fails; its peers continue.
    void dies();

    // Of the join, of the group, or of an operation.
    int error() const { return error_; }
    // Has joined and completed everything, or has been notified of a failure.
    bool over() const { return join_over_ && completed_ == posted_ && (error_ != 0 || all_completed()); }
    Nanoseconds over_at() const { return over_at_; }
    // Whether the buffers of the last completed operations are unchanged.
    bool scribbled() const;
    std::string state() const;

  private:
    struct Posted {
        std::vector<std::byte> input, buffer;
        SharedGroup::Content expected;  // expected contents of the buffer, until completion
        bool done = false, scribbled = false;
    };
    // group::JoinPort
    wire::Hello own_hello() const override;
    void send_hello(Rank to, std::uint32_t attempt, Bytes bytes) override;
    void send(Rank to, std::uint32_t attempt, Bytes datagram) override;
    const wire::Hello* miscounted_hello(Rank rank) override {
        return process_.joins().miscounted_hello(*this, rank);
    }
    group::RoundTrips& round_trips() override { return process_.round_trips(); }
    Result<Address> peer(const wire::ByteString& private_address) override {
        return value_of<Address>(private_address);
    }
    void queue_message(std::vector<Address> to, wire::ByteString message) override {
        process_.queue_message(std::move(to), wire::prove(message, key()), id_.list_hash);
    }
    void withdraw() override { process_.withdraw(id_.list_hash); }
    void explain(std::string_view) override {}
    // group::Port
    group::Multicast& multicast() override { return *this; }
    bool can_send() const override { return process_.can_send(); }
    void send_message(Address to, const wire::HeaderBytes& header, Bytes payload) override {
        process_.send_now(to, header, payload);
    }
    void queue_final_message(std::vector<Address> to, wire::ByteString message) override {
        process_.queue_message(std::move(to), wire::prove(message, key()), group::Outbox::kNoOwner);
    }
    void watch(Address peer, const wire::ByteString&, Nanoseconds) override;
    void look_at(Address peer, const wire::ByteString& point, Nanoseconds now) override {
        watch(peer, point, now);
    }
    Result<group::SharedBytes> find_table(const group::HostMemoryName& name) override;
    Result<std::unique_ptr<group::HostLevel>> open_host(const group::HostMembers& members) override;
    void keyed() override {}
    void changed() override {}
    void join_ended(int code) override;
    void remember_ended(int code) override { process_.joins().remember_ended(*this, code); }
    void failed(int code, Rank) override { end(code); }
    void completed(std::uint64_t cookie, int code) override;
    std::string describe_stray_hello() override;
    void warn(std::string_view sentence) override;
    std::string address_of(Rank) const override { return "somewhere"; }
    std::string text_of(int code) const override { return std::to_string(code); }
    // group::Multicast
    int offer(wire::Welcome& welcome, const group::Hellos& hellos) override;
    void join(const wire::Welcome& welcome, const levels::Placement& placement) override;
    bool joined() const override { return listens_; }
    const std::string& why_not() const override { return why_not_; }
    std::string name() const override { return "simulated"; }
    void send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t range) override;
    void flush() override {}
    void forget_payloads() override {}

    GroupEnvironment& world() const { return process_.world(); }
    std::uint32_t group() const { return static_cast<std::uint32_t>(shared_.number() - 1); }
    bool all_completed() const { return completed_ == setup_.script.size(); }
    void end(int code);
    void post(std::size_t number);
    Posted& operation(std::size_t number) { return operations_[number - forgotten_]; }
    // Fills in the input and the expected result of an operation.
    void fill(std::size_t number);
    // Drops completed operations except the last few.
    void forget_old();

    GroupProcess& process_;
    SharedGroup& shared_;
    const GroupSetup& setup_;
    const wire::JoinId id_;
    const std::uint32_t rank_;
    std::vector<Posted> operations_;  // from the first kept operation to the last posted
    std::size_t forgotten_ = 0, posted_ = 0, completed_ = 0;
    bool join_over_ = false, closed_ = false;
    bool listens_ = false;  // to the group's multicasts
    int error_ = 0;
    Nanoseconds over_at_ = kNever;
    std::string why_not_;
    group::Group core_;
};

}  // namespace mcastcoll::sim
