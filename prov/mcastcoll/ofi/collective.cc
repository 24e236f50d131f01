// The collective operations of an endpoint's table: what the application said becomes a request, which the
// station gets.
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "ofi/endpoint.h"
#include "ofi/message_form.h"
#include "ofi/request.h"
#include "ofi/station.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {
namespace {

Endpoint& of(const fid_ep& endpoint) {
    return Graft<fi_ops_collective>::owner_of<Endpoint>(endpoint.collective);
}

ssize_t submit(fid_ep* fid, const char* name, const Result<Request>& request) {
    if (!request) {
        log_line(Level::info, "{}: {}", name, request.error().message);
        return -request.error().code;
    }
    Endpoint& endpoint = of(*fid);
    const EndpointLock lock(endpoint);
    if (!endpoint.station) return -FI_EINVAL;  // no group can have been joined
    return endpoint.station->collective(request.value());
}

ssize_t post(fid_ep* fid, const char* name, const Call& call) noexcept {
    return guard([&] { return submit(fid, name, make_request(call)); });
}

ssize_t broadcast(fid_ep* fid, void* buffer, std::size_t count, void*, fi_addr_t group, fi_addr_t root,
                  fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_broadcast",
                {FI_BROADCAST, nullptr, buffer, count, datatype, FI_NOOP, group, root, flags, context});
}

ssize_t barrier2(fid_ep* fid, fi_addr_t group, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_barrier",
                {FI_BARRIER, nullptr, nullptr, 0, FI_VOID, FI_NOOP, group, 0, flags, context});
}

ssize_t barrier(fid_ep* fid, fi_addr_t group, void* context) noexcept {
    return barrier2(fid, group, 0, context);
}

ssize_t allreduce(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                  fi_addr_t group, fi_datatype datatype, fi_op op, std::uint64_t flags,
                  void* context) noexcept {
    return post(fid, "fi_allreduce",
                {FI_ALLREDUCE, input, result, count, datatype, op, group, 0, flags, context});
}

ssize_t reduce(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*, fi_addr_t group,
               fi_addr_t root, fi_datatype datatype, fi_op op, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_reduce",
                {FI_REDUCE, input, result, count, datatype, op, group, root, flags, context});
}

ssize_t allgather(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                  fi_addr_t group, fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_allgather",
                {FI_ALLGATHER, input, result, count, datatype, FI_NOOP, group, 0, flags, context});
}

ssize_t alltoall(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                 fi_addr_t group, fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_alltoall",
                {FI_ALLTOALL, input, result, count, datatype, FI_NOOP, group, 0, flags, context});
}

ssize_t reduce_scatter(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                       fi_addr_t group, fi_datatype datatype, fi_op op, std::uint64_t flags,
                       void* context) noexcept {
    return post(fid, "fi_reduce_scatter",
                {FI_REDUCE_SCATTER, input, result, count, datatype, op, group, 0, flags, context});
}

ssize_t scatter(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                fi_addr_t group, fi_addr_t root, fi_datatype datatype, std::uint64_t flags,
                void* context) noexcept {
    return post(fid, "fi_scatter",
                {FI_SCATTER, input, result, count, datatype, FI_NOOP, group, root, flags, context});
}

ssize_t gather(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*, fi_addr_t group,
               fi_addr_t root, fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_gather",
                {FI_GATHER, input, result, count, datatype, FI_NOOP, group, root, flags, context});
}

ssize_t message(fid_ep* fid, const fi_msg_collective* message, fi_ioc* results, void**,
                std::size_t result_count, std::uint64_t flags) noexcept {
    return guard([&]() -> ssize_t {
        if (message == nullptr) return -FI_EINVAL;
        return submit(fid, "the message form", make_request(*message, {results, result_count}, flags));
    });
}

}  // namespace

void set_collectives(fi_ops_collective& table) {
    table.barrier = &barrier;
    table.broadcast = &broadcast;
    table.alltoall = &alltoall;
    table.allreduce = &allreduce;
    table.allgather = &allgather;
    table.reduce_scatter = &reduce_scatter;
    table.reduce = &reduce;
    table.scatter = &scatter;
    table.gather = &gather;
    table.msg = &message;
    table.barrier2 = &barrier2;
}

}  // namespace mcastcoll::ofi
