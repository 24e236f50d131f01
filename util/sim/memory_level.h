// A group's level in the memory of a host, in virtual time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "group/host_level.h"
#include "group/level_counters.h"
#include "host_memory.h"

namespace mcastcoll::sim {

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
