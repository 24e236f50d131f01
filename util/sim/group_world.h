// Whole groups in virtual time: the provider's own groups (group/group.h), in processes on hosts and sites,
// from the greeting to the close. The network loses, doubles, delays and reorders datagrams and multicasts;
// messages come in order, as long as both ends live. One seed, one run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "group_member.h"
#include "host_memory.h"
#include "random.h"

namespace mcastcoll::sim {

struct GroupNetwork {
    std::uint64_t seed = 1;
    double loss = 0, doubled = 0;                    // of datagrams and multicasts
    double words_doubled = 0;                        // of a join, as by somebody who has heard them
    Nanoseconds delay = Nanoseconds::from_us(20);    // at least
    Nanoseconds jitter = Nanoseconds::from_us(20);   // on top of it, different for each
    Nanoseconds far = Nanoseconds::from_us(20'000);  // on top of both, between sites
    std::size_t messages_at_once = 32;               // that one process may have under way
    bool tells_failed_sends = true;                  // to processes that are gone
    Nanoseconds watch_delay = Nanoseconds::from_ms(20);
};

struct GroupOptions {
    std::vector<std::uint32_t> host_of;  // of each process
    std::vector<std::uint32_t> site_of;  // of each host
    std::vector<GroupPlan> groups;       // joined by each of their processes in this order
    GroupNetwork network;
    std::set<std::uint32_t> no_multicast;  // processes without
    Nanoseconds calls_within;              // joins are called up to this late
    Nanoseconds join_timeout = Nanoseconds::from_ms(10'000);
    // A moment, or when all members together have completed so many operations.
    struct Event {
        std::uint32_t process = 0;
        Nanoseconds at = kNever;
        std::uint64_t after = UINT64_MAX;
    };
    std::optional<Event> death, pause;
    std::optional<Event> restart;  // dies, and another starts in its place, which counts its joins anew
    std::uint32_t counted = 0;     // joins of the same members before, by processes that have not restarted
    std::optional<std::uint32_t> never_calls, silent;  // a process that does not join; one without surveys
    Nanoseconds pause_length;
    std::optional<Event> gives_up;           // closes what it has not joined yet
    Nanoseconds stall_timeout = kNever;      // after which whoever is waited for is given up
    std::optional<std::uint32_t> no_memory;  // a process that cannot share memory
};

class GroupWorld;

// A process as messages reach it: its number, and how often it was started before. Datagrams go to whoever
// has the number.
using Address = group::Outbox::Peer;
constexpr Address address_of(std::uint32_t number, std::uint32_t restarts) {
    return std::uint64_t{restarts} << 32 | number;
}
constexpr std::uint32_t number_of(Address address) {
    return static_cast<std::uint32_t>(address);
}

// What the provider's station is: the groups of one process, and how its messages go out.
class GroupProcess final : private group::Outbox::Port, private group::Joins::Port {
  public:
    GroupProcess(GroupWorld& world, Address self);

    GroupWorld& world() const { return world_; }
    Address address() const { return self_; }
    std::uint32_t number() const { return number_of(self_); }
    // That it has given to joins of the same members.
    std::uint32_t counted() const;
    bool has_multicast() const;
    wire::Peer as_peer() const;
    static Address at(const wire::ByteString& private_address);
    // Where datagrams to this number go: what applications know of a process.
    static wire::ByteString place_of(std::uint32_t number);
    group::Joins& joins() { return joins_; }
    std::vector<std::unique_ptr<GroupMember>>& members() { return members_; }

    void call(std::uint32_t group);
    void on_datagram(std::uint32_t from, Bytes bytes);
    void on_message(Bytes message);
    void on_multicast(const wire::ByteString& address, Bytes datagram);
    void on_peer_lost(Address peer, int error);
    // Pumps the groups and lets the applications work, until nothing more comes of it.
    void turn();
    Nanoseconds next_deadline() const { return next_deadline_; }

    bool can_send() const { return under_way_ < most_under_way_ && outbox_.empty(); }
    void send_now(group::Outbox::Peer to, Bytes message);
    void tell(std::vector<group::Outbox::Peer> to, wire::ByteString word, group::Outbox::Owner owner);
    void withdraw(group::Outbox::Owner owner) { outbox_.withdraw(owner); }
    void sent();
    std::optional<Nanoseconds> round_trip(std::uint64_t one, std::uint64_t other) const;
    void keep_round_trip(std::uint64_t one, std::uint64_t other, Nanoseconds time) {
        round_trips_.insert_or_assign({one, other}, time);
    }

  private:
    bool has_room(std::size_t) const override { return under_way_ < most_under_way_; }
    void send_word(group::Outbox::Peer to, Bytes word) override { send_now(to, word); }
    // group::Joins::Port
    bool may_be(const wire::ByteString& member, const group::Source& source) const override {
        return member == source;
    }
    bool same_host(const wire::ByteString& one, const wire::ByteString& other) const override;
    void reply(const group::Source& source, Bytes datagram) override;
    Result<Address> peer(const wire::ByteString& private_address) override { return at(private_address); }
    void tell(std::vector<Address> to, wire::ByteString word) override;
    void foreign_version(const group::Source&, std::uint8_t) override {}

    GroupWorld& world_;
    const Address self_;
    const std::size_t most_under_way_;
    std::size_t under_way_ = 0;
    group::Outbox outbox_;
    std::vector<std::unique_ptr<GroupMember>> members_;  // until they are closed and nobody needs them
    group::Joins joins_{*this};
    std::map<std::pair<std::uint64_t, std::uint64_t>, Nanoseconds> round_trips_;
    Nanoseconds next_deadline_ = kNever;
};

class GroupWorld {
  public:
    explicit GroupWorld(GroupOptions options);
    // Until nothing happens any more. Returns what went wrong, or "".
    std::string run();

    const GroupOptions& options() const { return options_; }
    Nanoseconds now() const { return now_; }
    Random& random() { return random_; }
    std::uint64_t completions() const { return completions_; }

    // For processes and members.
    bool has_memory(std::uint32_t process) const { return options_.no_memory != process; }
    void complain(std::string what);
    void count_completion() { ++completions_; }
    void datagram(std::uint32_t from, std::uint32_t to, Bytes bytes);
    void message(Address from, Address to, Bytes bytes);
    void multicast(std::uint32_t from, const wire::ByteString& address, Bytes bytes);
    void watch(Address watcher, Address peer);
    // Null: its leader has not made it yet.
    std::shared_ptr<HostMemory> memory(const group::HostMembers& members, std::uint32_t process);
    std::uint32_t host_of(std::uint32_t process) const { return options_.host_of[process]; }
    std::uint32_t site_of(std::uint32_t process) const { return options_.site_of[host_of(process)]; }
    // What is left of a member when its process lets go of it.
    void retire(std::unique_ptr<GroupMember> member) { retired_.push_back(std::move(member)); }

  private:
    // Something that happens to a process: waits while that computes, and is not when it is dead.
    void at(Nanoseconds time, Address process, std::function<void(GroupProcess&)> what);
    // To whoever has this number by then.
    void at_number(Nanoseconds time, std::uint32_t number, std::function<void(GroupProcess&)> what);
    bool lives(Address process) const;
    Nanoseconds delay(std::uint32_t from, std::uint32_t to);
    void kill(std::uint32_t process);
    void start_again(std::uint32_t process);
    void strike();
    std::string judge() const;
    bool harmed(const GroupPlan& plan) const;
    std::string judge_group(std::uint32_t number) const;

    struct Event {
        std::uint32_t number;
        std::optional<Address> only;  // nobody else of that number
        std::function<void(GroupProcess&)> what;
    };
    const GroupOptions options_;
    Random random_;
    Nanoseconds now_{1};
    Nanoseconds harmed_at_{};  // when somebody died or gave up, the last of them
    Nanoseconds called_at_{};  // the last that a join is called
    std::multimap<Nanoseconds, Event> events_;
    std::vector<std::unique_ptr<GroupProcess>> processes_;
    std::vector<Nanoseconds> paused_until_;
    std::map<std::pair<Address, Address>, Nanoseconds> last_message_;  // for the order
    std::set<std::pair<Address, Address>> watches_;
    struct Shared {
        std::shared_ptr<HostMemory> memory;
        std::vector<std::uint32_t> processes;  // by place; those that have opened it
    };
    std::map<std::pair<GroupKey, std::uint32_t>, Shared> memories_;  // by host
    std::vector<std::unique_ptr<GroupMember>> retired_;
    std::uint64_t completions_ = 0, steps_ = 0;
    bool died_ = false, paused_ = false, gave_up_ = false, restarted_ = false;
    std::string wrong_;
};

// Groups as the seed draws them: who is where, what they do, which weather, who dies or computes. Returns
// what went wrong, or "".
std::string run_groups(std::uint64_t seed);
// One line for a report.
std::string summary_of_groups(std::uint64_t seed);

}  // namespace mcastcoll::sim
