// Whole groups in virtual time: the provider's own groups (group/group.h), in processes on hosts and sites,
// from the greeting to the close, in the network of network.h: a process is a processor with an endpoint, a
// host a machine. Messages come in order, as long as both ends live. One seed, one run. Its methods are what
// a network tells, what a process asks for, and the troubles of the plan.
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
#include "simulation.h"

namespace mcastcoll::sim {

struct GroupOptions : Conditions {       // the model's layout follows from the rest
    std::vector<std::uint32_t> host_of;  // of each process
    std::vector<std::uint32_t> site_of;  // of each host
    std::vector<GroupPlan> groups;       // joined by each of their processes in this order
    double words_doubled = 0;            // of a join, later, as by somebody who has heard them
    std::size_t messages_at_once = 32;   // that one process may have under way
    bool tells_failed_sends = true;      // to processes that are gone
    Nanoseconds watch_delay = Nanoseconds::from_ms(20);
    std::set<std::uint32_t> no_multicast;  // processes without
    Nanoseconds calls_within;              // joins are called up to this late
    Nanoseconds join_timeout = Nanoseconds::from_ms(10'000);
    // after: all members together have completed that many. Hosts are processes here.
    std::optional<Strike> death, pause;
    std::optional<Strike> restart;  // dies, and another starts in its place, which counts its joins anew
    std::uint32_t counted = 0;      // joins of the same members before, by processes that have not restarted
    std::optional<std::uint32_t> never_calls, silent;  // a process that does not join; one without surveys
    Nanoseconds pause_length;
    std::optional<Strike> gives_up;          // closes what it has not joined yet
    Nanoseconds stall_timeout = kNever;      // after which whoever is waited for is given up
    std::optional<std::uint32_t> no_memory;  // a process that cannot share memory
};

// One group of all processes of a layout, which can have as many messages under way as links hold.
GroupOptions one_group(Model model);

class GroupWorld final : public Simulation {
  public:
    explicit GroupWorld(GroupOptions options);
    // Until nothing happens any more. Returns what went wrong, or "".
    std::string run();

    const GroupOptions& options() const { return options_; }
    Random& random() { return random_; }
    std::uint64_t completions() const { return completions_; }
    // Of every rank, from the start of an operation of a group with separated ones until it is through.
    const std::vector<Nanoseconds>& times(std::uint32_t group, std::size_t operation) const {
        return tracks_[group].times[operation];
    }
    // Called when a separated operation is over everywhere, and before the first.
    std::function<void(std::uint32_t group, std::size_t operations_done)> step_over;

    // For processes and members.
    bool has_memory(std::uint32_t process) const { return options_.no_memory != process; }
    // A member has joined, or come through one more operation.
    void came_through(std::uint32_t group, std::uint32_t rank, Address process, bool joined);
    // How many operations of this group may have begun by now.
    std::size_t begun(std::uint32_t group) const;
    bool may_send(Address from);
    void datagram(Address from, std::uint32_t to, Bytes bytes) {
        network_.send_datagram(endpoint_of(from), to, bytes);
    }
    void message(Address from, Address to, Bytes header, Bytes payload);
    void multicast(Address from, const wire::HeaderBytes& header, Bytes payload) {
        network_.multicast(endpoint_of(from), 0, header, payload);
    }
    void listen(Address process) { network_.listen(endpoint_of(process), 0); }
    void watch(Address watcher, Address peer);
    // Null: its leader has not made it yet.
    std::shared_ptr<HostMemory> memory(const group::HostMembers& members, Address process);
    std::uint32_t host_of(std::uint32_t process) const { return options_.host_of[process]; }
    std::uint32_t site_of(std::uint32_t process) const { return options_.site_of[host_of(process)]; }
    // What is left of a member when its process lets go of it.
    void retire(std::unique_ptr<GroupMember> member) { retired_.push_back(std::move(member)); }

  private:
    // Where a process is, or will be if it is started.
    struct Slot {
        std::unique_ptr<GroupProcess> process;
        Nanoseconds wake_at = kNever;
        std::vector<std::pair<Nanoseconds, std::uint32_t>> calls;           // of groups
        std::vector<std::pair<Nanoseconds, Address>> lost;                  // peers that it is to be told of
        std::vector<std::pair<Nanoseconds, std::vector<std::byte>>> heard;  // of joins, that come again
    };
    void on_packet(std::uint32_t endpoint, Bytes datagram) override;
    void on_message(std::uint32_t endpoint, std::uint32_t from, Bytes message) override;
    void on_datagram(std::uint32_t endpoint, std::uint32_t from, Bytes bytes) override;
    void on_sent(std::uint32_t from, std::uint32_t to) override;
    void on_wake(std::uint32_t endpoint, std::uint32_t tag) override;
    void start(std::uint32_t endpoint, std::uint32_t group, Nanoseconds at);
    void wake(std::uint32_t endpoint, Nanoseconds at);
    void turn(std::uint32_t endpoint);
    void tell_lost(std::uint32_t endpoint, Address peer, Nanoseconds at);

    // A process that is started again has the endpoint behind all others.
    std::uint32_t endpoint_of(Address process) const {
        return process == number_of(process) ? number_of(process) : processes();
    }
    Address address_at(std::uint32_t endpoint) const {
        return endpoint < processes() ? endpoint : address_of(options_.restart->host, 1);
    }
    std::uint32_t processes() const { return static_cast<std::uint32_t>(options_.host_of.size()); }
    std::uint32_t endpoint_now(std::uint32_t number) const {
        return restarted_ && options_.restart->host == number ? processes() : number;
    }
    void kill(std::uint32_t process);
    void start_again(std::uint32_t process);
    void strike();
    std::string judge() const;
    bool harmed(const GroupPlan& plan) const;
    std::string judge_group(std::uint32_t number) const;

    const GroupOptions options_;
    Nanoseconds harmed_at_{};  // when somebody died or gave up, the last of them
    Nanoseconds called_at_{};  // the last that a join is called
    std::vector<Slot> slots_;  // by endpoint
    std::set<std::pair<Address, Address>> watches_;
    struct Shared {
        std::shared_ptr<HostMemory> memory;
        std::vector<std::uint32_t> endpoints;  // by place; those that have opened it
    };
    std::map<std::pair<GroupKey, std::uint32_t>, Shared> memories_;  // by host
    // Of a group with separated operations.
    struct Track {
        std::size_t begun = 0;
        std::size_t unfinished = 0;  // members that have not joined, or come through what has begun
        Nanoseconds began_at{};
        std::vector<std::vector<Nanoseconds>> times;
    };
    std::vector<Track> tracks_;
    std::vector<std::unique_ptr<GroupMember>> retired_;
    std::uint64_t completions_ = 0, steps_ = 0;
    bool died_ = false, paused_ = false, gave_up_ = false, restarted_ = false;
};

}  // namespace mcastcoll::sim
