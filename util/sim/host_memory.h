// The shared memory of the processes of a host, and a group's level in that memory, in virtual time. A member
// sees changes of its peers at its next poll; a change makes the waiting peers poll. Members may fail at any
// moment, and waiting peers detect the failure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "group/host_level.h"
#include "group/level_counters.h"
#include "memory_meter.h"

namespace mcastcoll::sim {

// Notifies the processes of a host, which are simulated elsewhere and decide when to poll the memory.
class MemoryReaders {
  public:
    // The memory has changed for this endpoint.
    virtual void look(std::uint32_t endpoint) = 0;
    // The endpoint has read so many bytes, which occupies its processor.
    virtual void has_read(std::uint32_t endpoint, std::size_t bytes) = 0;

  protected:
    ~MemoryReaders() = default;
};

class HostMemory {
  public:
    // Initially all places belong to the leader.
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
    // Makes all members poll, or one member.
    void changed();
    void changed_for(std::uint32_t member) { readers_.look(endpoints[member]); }
    void copied(std::uint32_t member, std::size_t bytes) { readers_.has_read(endpoints[member], bytes); }
    // Peers can detect the failure from `known` on.
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

class MemoryLevel final : public group::HostLevel {
  public:
    MemoryLevel(std::shared_ptr<HostMemory> memory, std::uint32_t self)
        : memory_(std::move(memory)), self_(self) {}

    int post(levels::LevelOperation& level_operation, Nanoseconds now) override;
    void advance(levels::LevelOperation& level_operation, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override {
        const bool waits = awaited_ != HostMemory::kNoMember && memory_->failure == 0;
        return waits ? memory_->dead_from[awaited_] : kNever;
    }
    void fail(int error, Nanoseconds now) override;
    void end_because_of(std::uint32_t member, int error) override { memory_->fail(error, member); }
    int failure() const override { return memory_->failure; }
    std::uint32_t lost() const override { return memory_->lost; }
    std::uint32_t awaited() const override { return awaited_; }
    std::string explain() const override { return "simulated"; }
    group::SharedBytes table() const override { return {memory_, memory_->table}; }
    void add_counters(group::LevelCounters&) const override {}

  private:
    std::uint32_t members() const { return static_cast<std::uint32_t>(memory_->dead_from.size()); }
    void wake_readers(const levels::LevelOperation& level_operation, HostMemory::Operation& operation);
    bool all_here(HostMemory::Operation& operation);
    bool is_here(const HostMemory::Operation& operation, std::uint32_t member);
    bool move(levels::LevelOperation& level_operation);
    bool move_broadcast(levels::LevelOperation& level_operation, HostMemory::Operation& operation);
    bool move_allreduce(levels::LevelOperation& level_operation, HostMemory::Operation& operation);
    void take_result(const levels::LevelOperation& level_operation,
                     const HostMemory::Operation& operation) const;
    bool end(levels::LevelOperation& level_operation, int error);

    const std::shared_ptr<HostMemory> memory_;
    const std::uint32_t self_;
    std::vector<levels::LevelOperation*> open_;
    std::uint32_t awaited_ = HostMemory::kNoMember;
};

}  // namespace mcastcoll::sim
