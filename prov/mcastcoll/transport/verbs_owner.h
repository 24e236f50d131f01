// Owners of what rdma-core makes. Each is destroyed in the reverse order of the declarations that use them.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>

#include <memory>
#include <utility>

#include "base/system.h"

namespace mcastcoll {

// rdma-core's functions return what nobody could act upon here.
template <auto destroy>
struct VerbsDestroyer {
    template <typename Object>
    void operator()(Object* object) const {
        (void)destroy(object);
    }
};

inline void destroy_event_channel(rdma_event_channel* channel) {
    rdma_destroy_event_channel(channel);
}
// A queue pair goes with its identifier.
inline void destroy_id(rdma_cm_id* id) {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    rdma_destroy_id(id);
}

using CmChannelOwner = std::unique_ptr<rdma_event_channel, VerbsDestroyer<destroy_event_channel>>;
using CmIdOwner = std::unique_ptr<rdma_cm_id, VerbsDestroyer<destroy_id>>;
using CompletionChannelOwner = std::unique_ptr<ibv_comp_channel, VerbsDestroyer<ibv_destroy_comp_channel>>;
using CompletionQueueOwner = std::unique_ptr<ibv_cq, VerbsDestroyer<ibv_destroy_cq>>;
using MemoryOwner = std::unique_ptr<ibv_mr, VerbsDestroyer<ibv_dereg_mr>>;
using AddressOwner = std::unique_ptr<ibv_ah, VerbsDestroyer<ibv_destroy_ah>>;

// Memory that devices write into. A child of fork() does not get it: with it, writing to a page would leave
// the device with the old one.
class DeviceMemory {
  public:
    DeviceMemory() = default;
    DeviceMemory(DeviceMemory&& other) noexcept
        : at_(std::exchange(other.at_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    DeviceMemory& operator=(DeviceMemory&& other) noexcept {
        std::swap(at_, other.at_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~DeviceMemory() {
        if (at_ != nullptr) ::munmap(at_, size_);
    }
    static Result<DeviceMemory> map(std::size_t size) {
        void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return system_error(errno, "memory for RDMA");
        (void)::madvise(at, size, MADV_DONTFORK);
        DeviceMemory memory;
        memory.at_ = at;
        memory.size_ = size;
        return memory;
    }
    std::byte* data() const { return static_cast<std::byte*>(at_); }
    std::size_t size() const { return size_; }

  private:
    void* at_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace mcastcoll
