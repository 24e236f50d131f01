#include "ofi/collective.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <complex>
#include <cstdint>

#include "ofi/endpoint.h"
#include "ofi/guard.h"

namespace mcastcoll::ofi {
namespace {

Endpoint& of(const fid_ep& endpoint) {
    return Graft<fi_ops_collective>::owner_of<Endpoint>(endpoint.collective);
}

// Flags that change nothing here: completion is when the buffer may be used again and holds the result.
constexpr std::uint64_t kKnownFlags = FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
                                      FI_DELIVERY_COMPLETE | FI_MORE | FI_COLLECTIVE | FI_COMMIT_COMPLETE;

ssize_t broadcast(fid_ep* fid, void* buffer, std::size_t count, void*, fi_addr_t group, fi_addr_t root,
                  fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return guard([&]() -> ssize_t {
        Endpoint& endpoint = of(*fid);
        const auto width = datatype_bytes(datatype);
        if (!width || (flags & ~kKnownFlags) != 0) return -FI_EINVAL;
        if (count > SIZE_MAX / *width || (count > 0 && buffer == nullptr)) return -FI_EINVAL;
        const EndpointLock lock(endpoint);
        if (!endpoint.station) return -FI_EINVAL;  // no group can have been joined
        return endpoint.station->broadcast(buffer, count * *width, group, root, flags, context);
    });
}

ssize_t barrier2(fid_ep* fid, fi_addr_t group, std::uint64_t flags, void* context) noexcept {
    return guard([&]() -> ssize_t {
        Endpoint& endpoint = of(*fid);
        if ((flags & ~kKnownFlags) != 0) return -FI_EINVAL;
        const EndpointLock lock(endpoint);
        if (!endpoint.station) return -FI_EINVAL;
        return endpoint.station->barrier(group, flags, context);
    });
}

ssize_t barrier(fid_ep* fid, fi_addr_t group, void* context) noexcept {
    return barrier2(fid, group, 0, context);
}

}  // namespace

void set_collectives(fi_ops_collective& table) {
    table.barrier = &barrier;
    table.broadcast = &broadcast;
    table.barrier2 = &barrier2;
    table.alltoall = [](auto...) -> ssize_t { return -FI_ENOSYS; };
    table.allreduce = [](auto...) -> ssize_t { return -FI_ENOSYS; };
    table.allgather = [](auto...) -> ssize_t { return -FI_ENOSYS; };
    table.reduce_scatter = [](auto...) -> ssize_t { return -FI_ENOSYS; };
    table.reduce = [](auto...) -> ssize_t { return -FI_ENOSYS; };
    table.scatter = [](auto...) -> ssize_t { return -FI_ENOSYS; };
    table.gather = [](auto...) -> ssize_t { return -FI_ENOSYS; };
    table.msg = [](auto...) -> ssize_t { return -FI_ENOSYS; };
}

std::optional<std::size_t> datatype_bytes(fi_datatype datatype) {
    switch (static_cast<int>(datatype)) {
        case FI_INT8:
        case FI_UINT8:
        case FI_VOID:
            return 1;
        case FI_INT16:
        case FI_UINT16:
            return sizeof(std::int16_t);
        case FI_INT32:
        case FI_UINT32:
            return sizeof(std::int32_t);
        case FI_INT64:
        case FI_UINT64:
            return sizeof(std::int64_t);
        case FI_FLOAT:
            return sizeof(float);
        case FI_DOUBLE:
            return sizeof(double);
        case FI_FLOAT_COMPLEX:
            return sizeof(std::complex<float>);
        case FI_DOUBLE_COMPLEX:
            return sizeof(std::complex<double>);
        case FI_LONG_DOUBLE:
            return sizeof(long double);
        case FI_LONG_DOUBLE_COMPLEX:
            return sizeof(std::complex<long double>);
        case FI_INT128:
        case FI_UINT128:
            return 16;
        default:
            return {};
    }
}

}  // namespace mcastcoll::ofi
