// The shared memory of the processes of a host, in virtual time. A member sees changes of its peers at its
// next poll; a change makes the waiting peers poll. Members may fail at any moment, and waiting peers detect
// the failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/types.h"
#include "group/host_level.h"
#include "memory_readers.h"

namespace mcastcoll::sim {

class HostMemory {
  public:
    // `leader` is the leader's endpoint, which stands for each member that has not opened the memory yet.
    HostMemory(MemoryReaders& readers, std::uint32_t members, std::uint32_t leader,
               std::vector<std::byte> its_table)
        : table(std::move(its_table)),
          endpoints(members, leader),
          dead_from(members, kNever),
          readers_(readers) {}

    struct Part {
        bool posted = false;
        std::vector<std::byte> input;
    };
    struct Operation {
        explicit Operation(std::size_t members) : parts(members) {}
        std::vector<Part> parts;
        std::vector<std::byte> result;  // of a broadcast: the root's bytes so far
        bool released = false;
        std::uint32_t done = 0, all_before = 0;  // places: those before all_before have posted

        // The first place without a post; past the end if there is none.
        std::uint32_t missing() {
            while (all_before < parts.size() && parts[all_before].posted) ++all_before;
            return all_before;
        }
    };
    Operation& at(std::uint64_t number) {
        return operations_.try_emplace(number, dead_from.size()).first->second;
    }
    // The last member to leave erases the operation.
    void leave(std::uint64_t number) {
        if (++at(number).done == dead_from.size()) operations_.erase(number);
    }
    void fail(int error, std::uint32_t because_of);
    // Makes all members poll.
    void changed();
    // Makes one member poll.
    void changed_for(std::uint32_t member) { readers_.look(endpoints[member]); }
    void copied(std::uint32_t member, std::size_t bytes) { readers_.has_read(endpoints[member], bytes); }
    // Kills the process at an endpoint. Its peers can detect the failure from `known` on.
    void dies(std::uint32_t endpoint, Nanoseconds known);

    static constexpr std::uint32_t kNoMember = UINT32_MAX;
    const std::vector<std::byte> table;  // made by the leader, for the other members
    int failure = 0;
    std::uint32_t lost = kNoMember;
    std::vector<std::uint32_t> endpoints;  // by place; members that have opened the memory
    std::vector<Nanoseconds> dead_from;    // by place; from then on survivors can detect a failure
    bool member_died = false;

  private:
    MemoryReaders& readers_;
    std::map<std::uint64_t, Operation> operations_;
};

}  // namespace mcastcoll::sim
