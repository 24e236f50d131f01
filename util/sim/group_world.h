// Whole groups in virtual time: the provider's own groups (group/group.h), in processes on hosts and sites,
// from the hello (a join's first message) to the close, in the network of network.h. A process is a processor
// with an endpoint, a host is a machine. Messages arrive in order while both ends live. A run is determined
// by one seed. The methods handle events of the network, requests of processes, and faults of the options.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "group_environment.h"
#include "group_member.h"
#include "group_process.h"

namespace mcastcoll::sim {

// Returns options of one group of all processes of a layout, with as many messages in flight as the links
// hold.
GroupOptions one_group(Model model);

// Limit of events, after which a world counts as endless.
std::uint64_t max_steps(const GroupOptions& options);

class GroupWorld final : public GroupEnvironment, public MemoryReaders {
  public:
    explicit GroupWorld(GroupOptions options);
    std::string run() override;

    std::uint64_t completions() const { return completions_; }
    std::uint64_t events() const { return steps_; }
    // The time at which the last process so far released a group.
    Nanoseconds left_at() const { return left_at_; }
    // Peak memory allocated by the provider's groups and joins in this process, at the end of a turn.
    std::int64_t peak_bytes(std::uint32_t process) const { return slots_[process].peak_bytes; }
    // Kills this process instead of the one in the options.
    void kill_at(std::uint32_t process, Nanoseconds at) { death_ = {process, at}; }
    // The live members of a group, in no particular order.
    std::vector<const GroupMember*> members_of(std::uint32_t group) const;

  private:
    // Work for a process at a given time: a call of a join, a lost peer, a repeated message, or only a poll.
    using Task = std::function<void(GroupProcess&)>;
    // A process, running or yet to be started.
    struct Slot {
        std::unique_ptr<GroupProcess> process;
        Nanoseconds wake_at = kNever;
        std::int64_t bytes = 0, peak_bytes = 0;
        std::vector<std::pair<Nanoseconds, Task>> tasks;
    };
    // Overrides of GroupEnvironment.
    std::size_t may_post(std::uint32_t group) const override;
    void step_completed(std::uint32_t group, std::uint32_t rank, std::uint32_t endpoint,
                        bool joined) override;
    bool may_send(std::uint32_t endpoint) override;
    void message(std::uint32_t endpoint, Address to, Bytes header, Bytes payload) override;
    void watch(std::uint32_t endpoint, Address peer) override;
    std::shared_ptr<HostMemory> make_memory(const group::HostMembers& members,
                                            const GroupProcess& leader) override;
    std::shared_ptr<HostMemory> find_memory(GroupKey key, const GroupProcess& process) const override;
    void retire(std::unique_ptr<GroupMember> member) override;
    // Overrides of MemoryReaders.
    void look(std::uint32_t endpoint) override;
    void has_read(std::uint32_t endpoint, std::size_t bytes) override;
    // Overrides of Sink.
    void on_packet(std::uint32_t endpoint, Bytes datagram) override;
    void on_message(std::uint32_t endpoint, std::uint32_t from, Bytes message) override;
    void on_datagram(std::uint32_t endpoint, std::uint32_t from, Bytes bytes) override;
    void on_sent(std::uint32_t from, std::uint32_t to) override;
    void on_wake(std::uint32_t endpoint, std::uint32_t tag) override;
    void schedule(std::uint32_t endpoint, Nanoseconds at, Task task);
    void start(std::uint32_t endpoint, std::uint32_t group, Nanoseconds at);
    void wake(std::uint32_t endpoint, Nanoseconds at);
    void progress(std::uint32_t endpoint, FunctionRef<void(GroupProcess&)> given);
    // Wraps every call into a process, to account for its memory.
    void metered(Slot& slot, FunctionRef<void(GroupProcess&)> body);
    void report_lost(std::uint32_t endpoint, Address peer, Nanoseconds at);

    Address address_at(std::uint32_t endpoint) const {
        return endpoint < processes() ? endpoint : address_of(options_.restart->host, 1);
    }
    std::uint32_t endpoint_now(std::uint32_t number) const {
        return restarted_ && options_.restart->host == number ? processes() : number;
    }
    void kill(std::uint32_t process);
    void start_again(std::uint32_t process);
    void trigger_events();
    std::string judge() const;
    bool affected(const GroupSetup& setup) const;
    std::string judge_group(std::uint32_t number) const;

    std::optional<HostEvent> death_;
    Nanoseconds last_failure_at_{};                        // last failure, early close, or end of a pause
    Nanoseconds called_at_{};                              // the last call of a join
    std::vector<Slot> slots_;                              // by endpoint
    std::set<std::pair<std::uint32_t, Address>> watches_;  // by endpoint
    std::map<std::pair<GroupKey, std::uint32_t>, std::shared_ptr<HostMemory>> memories_;  // by host
    std::vector<std::unique_ptr<GroupMember>> retired_;
    std::uint64_t completions_ = 0, steps_ = 0;
    Nanoseconds left_at_{};
    bool died_ = false, paused_ = false, gave_up_ = false, restarted_ = false;
};

}  // namespace mcastcoll::sim
