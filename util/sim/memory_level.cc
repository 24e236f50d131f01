#include "memory_level.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "script.h"
#include "unmetered.h"

namespace mcastcoll::sim {

using levels::Kind;

namespace {

std::size_t input_bytes(const levels::LevelOperation& level_operation, std::uint32_t self,
                        std::uint32_t members) {
    if (level_operation.kind == Kind::barrier || level_operation.kind == Kind::broadcast) return 0;
    if (level_operation.kind == Kind::scatter)
        return self == index_of(level_operation.root) ? level_operation.bytes * members : 0;
    return level_operation.kind == Kind::alltoall ? level_operation.bytes * members : level_operation.bytes;
}

}  // namespace

int MemoryLevel::post(levels::LevelOperation& level_operation, Nanoseconds) {
    if (memory_->failure != 0) return memory_->failure;
    const Unmetered own;
    HostMemory::Operation& operation = memory_->at(level_operation.number);
    HostMemory::Part& part = operation.parts[self_];
    part.posted = true;
    const std::size_t bytes = input_bytes(level_operation, self_, members());
    if (bytes > 0) part.input.assign(level_operation.input, level_operation.input + bytes);
    open_.push_back(&level_operation);
    wake_readers(level_operation, operation);
    return 0;
}

// Wakes the members that can continue with this member's data, and itself. After a failure wakes all: each
// checks whether the failed member is the one awaited.
void MemoryLevel::wake_readers(const levels::LevelOperation& level_operation,
                               HostMemory::Operation& operation) {
    if (memory_->member_died) return memory_->changed();
    memory_->changed_for(self_);
    const bool of_root = level_operation.kind == Kind::broadcast || level_operation.kind == Kind::scatter;
    if (of_root ? self_ != index_of(level_operation.root) : operation.missing() < members()) return;
    if (level_operation.kind == Kind::barrier || level_operation.kind == Kind::allreduce)
        return memory_->changed_for(0);
    if (level_operation.kind == Kind::reduce || level_operation.kind == Kind::gather)
        return memory_->changed_for(index_of(level_operation.root));
    memory_->changed();
}

void MemoryLevel::advance(levels::LevelOperation&, Nanoseconds) {
    memory_->changed_for(self_);
}

bool MemoryLevel::progress(Nanoseconds now) {
    const Unmetered own;
    bool moved = false;
    awaited_ = HostMemory::kNoMember;
    for (levels::LevelOperation* level_operation : open_)
        moved |= memory_->failure != 0 ? end(*level_operation, memory_->failure) : move(*level_operation);
    std::erase_if(open_, [](const levels::LevelOperation* level_operation) { return level_operation->done; });
    if (awaited_ != HostMemory::kNoMember && memory_->dead_from[awaited_] <= now)
        memory_->fail(ECONNRESET, awaited_);
    return moved;
}

void MemoryLevel::fail(int error, Nanoseconds) {
    const Unmetered own;
    memory_->fail(error, HostMemory::kNoMember);
    for (levels::LevelOperation* level_operation : open_) end(*level_operation, error);
    open_.clear();
}

bool MemoryLevel::end(levels::LevelOperation& level_operation, int error) {
    level_operation.error = error;
    level_operation.done = true;
    memory_->leave(level_operation.number);
    return true;
}

bool MemoryLevel::is_here(const HostMemory::Operation& operation, std::uint32_t member) {
    if (operation.parts[member].posted) return true;
    if (awaited_ == HostMemory::kNoMember) awaited_ = member;
    return false;
}

bool MemoryLevel::all_here(HostMemory::Operation& operation) {
    const std::uint32_t first = operation.missing();
    return first == members() || is_here(operation, first);
}

bool MemoryLevel::move(levels::LevelOperation& level_operation) {
    HostMemory::Operation& operation = memory_->at(level_operation.number);
    if (level_operation.kind == Kind::broadcast) return move_broadcast(level_operation, operation);
    if (level_operation.kind == Kind::barrier || level_operation.kind == Kind::allreduce)
        return move_allreduce(level_operation, operation);
    const bool for_root = level_operation.kind == Kind::reduce || level_operation.kind == Kind::gather;
    if (for_root && self_ != index_of(level_operation.root)) return end(level_operation, 0);
    if (level_operation.kind == Kind::scatter ? !is_here(operation, index_of(level_operation.root))
                                              : !all_here(operation))
        return false;
    take_result(level_operation, operation);
    return end(level_operation, 0);
}

void MemoryLevel::take_result(const levels::LevelOperation& level_operation,
                              const HostMemory::Operation& operation) const {
    const auto result = outcome(
        level_operation, self_, members(), [&](std::uint32_t member, std::size_t offset, std::size_t bytes) {
            const auto begin = operation.parts[member].input.begin() + static_cast<std::ptrdiff_t>(offset);
            return std::vector(begin, begin + static_cast<std::ptrdiff_t>(bytes));
        });
    std::ranges::copy(result, level_operation.buffer);
    if (level_operation.bytes > 0)
        memory_->copied(self_, level_operation.kind == Kind::scatter ? level_operation.bytes
                                                                     : level_operation.bytes * members());
}

bool MemoryLevel::move_broadcast(levels::LevelOperation& level_operation, HostMemory::Operation& operation) {
    std::vector<std::byte>& there = operation.result;
    if (self_ == index_of(level_operation.root)) {
        const bool more = level_operation.ready > there.size();
        if (more) {
            there.insert(there.end(), level_operation.buffer + there.size(),
                         level_operation.buffer + level_operation.ready);
            memory_->changed();
        }
        return level_operation.ready == level_operation.bytes ? end(level_operation, 0) : more;
    }
    const bool more = there.size() > level_operation.arrived;
    if (more) {
        std::memcpy(level_operation.buffer + level_operation.arrived, there.data() + level_operation.arrived,
                    there.size() - level_operation.arrived);
        memory_->copied(self_, there.size() - level_operation.arrived);
    }
    level_operation.arrived = there.size();
    if (is_here(operation, index_of(level_operation.root)) &&
        level_operation.arrived == level_operation.bytes)
        return end(level_operation, 0);
    if (awaited_ == HostMemory::kNoMember) awaited_ = index_of(level_operation.root);
    return more;
}

bool MemoryLevel::move_allreduce(levels::LevelOperation& level_operation, HostMemory::Operation& operation) {
    if (self_ != 0) {
        if (!operation.released) {
            all_here(operation);
            if (awaited_ == HostMemory::kNoMember) awaited_ = 0;
            return false;
        }
        if (level_operation.bytes > 0)
            std::memcpy(level_operation.buffer, operation.result.data(), level_operation.bytes);
        memory_->copied(self_, level_operation.bytes);
        return end(level_operation, 0);
    }
    bool moved = false;
    if (!level_operation.gathered) {
        if (!all_here(operation)) return false;
        take_result(level_operation, operation);
        level_operation.gathered = moved = true;
    }
    if (level_operation.hold && !level_operation.released) return moved;
    if (level_operation.bytes > 0)
        operation.result.assign(level_operation.buffer, level_operation.buffer + level_operation.bytes);
    operation.released = true;
    memory_->changed();
    return end(level_operation, 0);
}

}  // namespace mcastcoll::sim
