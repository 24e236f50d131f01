#include "host_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "reduce/slices.h"

namespace mcastcoll::sim {

using levels::Kind;

namespace {

std::size_t input_bytes(const levels::Leg& leg, std::uint32_t self, std::uint32_t members) {
    if (leg.kind == Kind::barrier || leg.kind == Kind::broadcast) return 0;
    if (leg.kind == Kind::scatter) return self == index_of(leg.root) ? leg.bytes * members : 0;
    return leg.kind == Kind::alltoall ? leg.bytes * members : leg.bytes;
}

}  // namespace

int MemoryLevel::post(levels::Leg& leg, Nanoseconds) {
    if (memory_->failure != 0) return memory_->failure;
    HostMemory::Part& part = memory_->at(leg.number).parts[self_];
    part.posted = true;
    const std::size_t bytes = input_bytes(leg, self_, members());
    if (bytes > 0) part.input.assign(leg.input, leg.input + bytes);
    open_.push_back(&leg);
    memory_->changed();
    return 0;
}

void MemoryLevel::advance(levels::Leg&, Nanoseconds) {
    memory_->changed();
}

bool MemoryLevel::progress(Nanoseconds now) {
    bool moved = false;
    awaited_ = HostMemory::kNobody;
    for (levels::Leg* leg : open_) moved |= memory_->failure != 0 ? end(*leg, memory_->failure) : move(*leg);
    std::erase_if(open_, [](const levels::Leg* leg) { return leg->done; });
    if (awaited_ != HostMemory::kNobody && memory_->dead_from[awaited_] <= now)
        memory_->fail(ECONNRESET, awaited_);
    return moved;
}

void MemoryLevel::fail(int error, Nanoseconds) {
    memory_->fail(error, HostMemory::kNobody);
    for (levels::Leg* leg : open_) end(*leg, error);
    open_.clear();
}

bool MemoryLevel::end(levels::Leg& leg, int error) {
    leg.error = error;
    leg.done = true;
    memory_->leave(leg.number);
    memory_->changed();
    return true;
}

bool MemoryLevel::is_here(const HostMemory::Operation& operation, std::uint32_t member) {
    if (operation.parts[member].posted) return true;
    if (awaited_ == HostMemory::kNobody) awaited_ = member;
    return false;
}

bool MemoryLevel::all_here(const HostMemory::Operation& operation) {
    for (std::uint32_t member = 0; member < members(); ++member)
        if (!is_here(operation, member)) return false;
    return true;
}

bool MemoryLevel::move(levels::Leg& leg) {
    HostMemory::Operation& operation = memory_->at(leg.number);
    if (leg.kind == Kind::broadcast) return move_broadcast(leg, operation);
    if (leg.kind == Kind::barrier || leg.kind == Kind::reduce || leg.kind == Kind::allreduce)
        return move_reduction(leg, operation);
    return move_blocks(leg, operation);
}

bool MemoryLevel::move_broadcast(levels::Leg& leg, HostMemory::Operation& operation) {
    std::vector<std::byte>& there = operation.result;
    if (self_ == index_of(leg.root)) {
        const bool more = leg.ready > there.size();
        if (more) {
            there.insert(there.end(), leg.buffer + there.size(), leg.buffer + leg.ready);
            memory_->changed();
        }
        return leg.ready == leg.bytes ? end(leg, 0) : more;
    }
    const bool more = there.size() > leg.arrived;
    if (more) {
        std::memcpy(leg.buffer + leg.arrived, there.data() + leg.arrived, there.size() - leg.arrived);
        memory_->copied(self_, there.size() - leg.arrived);
    }
    leg.arrived = there.size();
    if (is_here(operation, index_of(leg.root)) && leg.arrived == leg.bytes) return end(leg, 0);
    if (awaited_ == HostMemory::kNobody) awaited_ = index_of(leg.root);
    return more;
}

void MemoryLevel::combine(const levels::Leg& leg, HostMemory::Operation& operation, std::byte* to) const {
    if (leg.bytes == 0) return;
    std::vector<std::byte> sum = operation.parts[0].input;
    for (std::uint32_t member = 1; member < members(); ++member)
        leg.combiner(sum.data(), operation.parts[member].input.data(), leg.bytes);
    std::memcpy(to, sum.data(), leg.bytes);
    memory_->copied(self_, leg.bytes * members());
}

bool MemoryLevel::move_reduction(levels::Leg& leg, HostMemory::Operation& operation) {
    if (leg.kind == Kind::reduce) {
        if (self_ != index_of(leg.root)) return end(leg, 0);
        if (!all_here(operation)) return false;
        combine(leg, operation, leg.buffer);
        return end(leg, 0);
    }
    if (self_ != 0) {
        if (!operation.released) {
            all_here(operation);
            if (awaited_ == HostMemory::kNobody) awaited_ = 0;
            return false;
        }
        if (leg.bytes > 0) std::memcpy(leg.buffer, operation.result.data(), leg.bytes);
        memory_->copied(self_, leg.bytes);
        return end(leg, 0);
    }
    bool moved = false;
    if (!leg.gathered) {
        if (!all_here(operation)) return false;
        combine(leg, operation, leg.buffer);
        leg.gathered = moved = true;
    }
    if (leg.hold && !leg.released) return moved;
    if (leg.bytes > 0) operation.result.assign(leg.buffer, leg.buffer + leg.bytes);
    operation.released = true;
    return end(leg, 0);
}

bool MemoryLevel::move_blocks(levels::Leg& leg, HostMemory::Operation& operation) {
    const std::size_t bytes = leg.bytes;
    const auto block = [&](std::uint32_t member, std::size_t index) {
        return operation.parts[member].input.data() + index * bytes;
    };
    if (leg.kind == Kind::scatter) {
        if (!is_here(operation, index_of(leg.root))) return false;
        std::memcpy(leg.buffer, block(index_of(leg.root), self_), bytes);
        memory_->copied(self_, bytes);
        return end(leg, 0);
    }
    if (leg.kind == Kind::gather && self_ != index_of(leg.root)) return end(leg, 0);
    if (!all_here(operation)) return false;
    if (leg.kind == Kind::reduce_scatter) {
        std::vector<std::byte> whole(bytes);
        combine(leg, operation, whole.data());
        const std::size_t element = leg.combiner.element_bytes;
        const Slice own = slice_of(self_, members(), bytes / element, element);
        if (own.bytes > 0) std::memcpy(leg.buffer, whole.data() + own.offset, own.bytes);
        return end(leg, 0);
    }
    for (std::uint32_t member = 0; member < members(); ++member)
        std::memcpy(leg.buffer + member * bytes, block(member, leg.kind == Kind::alltoall ? self_ : 0),
                    bytes);
    memory_->copied(self_, bytes * members());
    return end(leg, 0);
}

}  // namespace mcastcoll::sim
