#include "memory_meter.h"

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "unmetered.h"

namespace {

// The simulator has one thread; allocations of other threads of a test runner do not count.
thread_local std::int64_t live_bytes = 0;
thread_local int metering = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
    void* memory = alignment <= alignof(std::max_align_t)
                       ? std::malloc(bytes == 0 ? 1 : bytes)
                       : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (metering > 0 && memory != nullptr)
        live_bytes += static_cast<std::int64_t>(malloc_usable_size(memory));
    return memory;
}

void* checked(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

void give_back(void* memory) {
    if (metering > 0 && memory != nullptr)
        live_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
    std::free(memory);
}

}  // namespace

// The forms for arrays call these. The standard library's nothrow forms do, too, but not the sanitizers'.
void* operator new(std::size_t bytes) {
    return checked(allocate(bytes, 1));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return checked(allocate(bytes, static_cast<std::size_t>(alignment)));
}
void operator delete(void* memory) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    give_back(memory);
}

namespace mcastcoll::sim {

MemoryMeter::MemoryMeter() : before_(live_bytes) {
    ++metering;
}
MemoryMeter::~MemoryMeter() {
    --metering;
}
std::int64_t MemoryMeter::grown() const {
    return live_bytes - before_;
}

Unmetered::Unmetered() : meters_(std::exchange(metering, 0)) {}
Unmetered::~Unmetered() {
    metering = meters_;
}

}  // namespace mcastcoll::sim
