#include "host_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "script.h"

namespace mcastcoll::sim {

using levels::Kind;

namespace {

std::size_t input_bytes(const levels::Leg& leg, std::uint32_t self, std::uint32_t members) {
    if (leg.kind == Kind::barrier || leg.kind == Kind::broadcast) return 0;
    if (leg.kind == Kind::scatter) return self == index_of(leg.root) ? leg.bytes * members : 0;
    return leg.kind == Kind::alltoall ? leg.bytes * members : leg.bytes;
}

}  // namespace

void HostMemory::fail(int error, std::uint32_t because_of) {
    if (failure != 0) return;
    failure = error;
    lost = because_of;
    changed();
}

void HostMemory::changed() {
    for (const std::uint32_t reader : endpoints) readers_.look(reader);
}

void HostMemory::dies(std::uint32_t endpoint, Nanoseconds known) {
    for (std::uint32_t place = 0; place < endpoints.size(); ++place) {
        if (endpoints[place] != endpoint) continue;
        dead_from[place] = known;
        member_died = true;
        changed();
    }
}

int MemoryLevel::post(levels::Leg& leg, Nanoseconds) {
    if (memory_->failure != 0) return memory_->failure;
    const Unmetered own;
    HostMemory::Operation& operation = memory_->at(leg.number);
    HostMemory::Part& part = operation.parts[self_];
    part.posted = true;
    const std::size_t bytes = input_bytes(leg, self_, members());
    if (bytes > 0) part.input.assign(leg.input, leg.input + bytes);
    open_.push_back(&leg);
    wake_readers(leg, operation);
    return 0;
}

// Wakes the members that can continue with this member's data, and itself. After a failure wakes all: each
// checks whether the failed member is the one awaited.
void MemoryLevel::wake_readers(const levels::Leg& leg, HostMemory::Operation& operation) {
    if (memory_->member_died) return memory_->changed();
    memory_->changed_for(self_);
    const bool of_root = leg.kind == Kind::broadcast || leg.kind == Kind::scatter;
    if (of_root ? self_ != index_of(leg.root) : operation.missing() < members()) return;
    if (leg.kind == Kind::barrier || leg.kind == Kind::allreduce) return memory_->changed_for(0);
    if (leg.kind == Kind::reduce || leg.kind == Kind::gather) return memory_->changed_for(index_of(leg.root));
    memory_->changed();
}

void MemoryLevel::advance(levels::Leg&, Nanoseconds) {
    memory_->changed_for(self_);
}

bool MemoryLevel::progress(Nanoseconds now) {
    const Unmetered own;
    bool moved = false;
    awaited_ = HostMemory::kNobody;
    for (levels::Leg* leg : open_) moved |= memory_->failure != 0 ? end(*leg, memory_->failure) : move(*leg);
    std::erase_if(open_, [](const levels::Leg* leg) { return leg->done; });
    if (awaited_ != HostMemory::kNobody && memory_->dead_from[awaited_] <= now)
        memory_->fail(ECONNRESET, awaited_);
    return moved;
}

void MemoryLevel::fail(int error, Nanoseconds) {
    const Unmetered own;
    memory_->fail(error, HostMemory::kNobody);
    for (levels::Leg* leg : open_) end(*leg, error);
    open_.clear();
}

bool MemoryLevel::end(levels::Leg& leg, int error) {
    leg.error = error;
    leg.done = true;
    memory_->leave(leg.number);
    return true;
}

bool MemoryLevel::is_here(const HostMemory::Operation& operation, std::uint32_t member) {
    if (operation.parts[member].posted) return true;
    if (awaited_ == HostMemory::kNobody) awaited_ = member;
    return false;
}

bool MemoryLevel::all_here(HostMemory::Operation& operation) {
    const std::uint32_t first = operation.missing();
    return first == members() || is_here(operation, first);
}

bool MemoryLevel::move(levels::Leg& leg) {
    HostMemory::Operation& operation = memory_->at(leg.number);
    if (leg.kind == Kind::broadcast) return move_broadcast(leg, operation);
    if (leg.kind == Kind::barrier || leg.kind == Kind::allreduce) return move_allreduce(leg, operation);
    const bool for_root = leg.kind == Kind::reduce || leg.kind == Kind::gather;
    if (for_root && self_ != index_of(leg.root)) return end(leg, 0);
    if (leg.kind == Kind::scatter ? !is_here(operation, index_of(leg.root)) : !all_here(operation))
        return false;
    take_result(leg, operation);
    return end(leg, 0);
}

void MemoryLevel::take_result(const levels::Leg& leg, const HostMemory::Operation& operation) const {
    const auto result =
        outcome(leg, self_, members(), [&](std::uint32_t member, std::size_t offset, std::size_t bytes) {
            const auto begin = operation.parts[member].input.begin() + static_cast<std::ptrdiff_t>(offset);
            return std::vector(begin, begin + static_cast<std::ptrdiff_t>(bytes));
        });
    std::ranges::copy(result, leg.buffer);
    if (leg.bytes > 0) memory_->copied(self_, leg.kind == Kind::scatter ? leg.bytes : leg.bytes * members());
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

bool MemoryLevel::move_allreduce(levels::Leg& leg, HostMemory::Operation& operation) {
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
        take_result(leg, operation);
        leg.gathered = moved = true;
    }
    if (leg.hold && !leg.released) return moved;
    if (leg.bytes > 0) operation.result.assign(leg.buffer, leg.buffer + leg.bytes);
    operation.released = true;
    memory_->changed();
    return end(leg, 0);
}

}  // namespace mcastcoll::sim
