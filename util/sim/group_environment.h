// The interface of processes and members to the world, for everything between processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "address.h"
#include "group_options.h"
#include "host_memory.h"
#include "network.h"
#include "random.h"
#include "shared_group.h"
#include "simulation.h"

namespace mcastcoll::sim {

class GroupMember;
class GroupProcess;

class GroupEnvironment : public Simulation {
  public:
    const GroupOptions& options() const { return options_; }
    Random& random() { return random_; }
    using Simulation::begun, Simulation::network;
    Network& network() { return network_; }
    // Warnings that members would log.
    std::vector<std::string> warnings;
    SharedGroup& shared_group(std::uint32_t group) { return shared_groups_[group]; }
    std::uint32_t host_of(std::uint32_t process) const { return options_.host_of[process]; }
    // Returns a process's endpoint: its number, or, for a restarted process, the number after all others.
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

}  // namespace mcastcoll::sim
