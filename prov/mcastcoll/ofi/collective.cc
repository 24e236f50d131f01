#include "ofi/collective.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "ofi/endpoint.h"
#include "ofi/message_form.h"
#include "ofi/request.h"
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
                {.collective = FI_BROADCAST,
                 .buffer = buffer,
                 .count = count,
                 .datatype = datatype,
                 .group = group,
                 .root = root,
                 .flags = flags,
                 .context = context});
}

ssize_t barrier2(fid_ep* fid, fi_addr_t group, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_barrier",
                {.collective = FI_BARRIER, .group = group, .flags = flags, .context = context});
}

ssize_t barrier(fid_ep* fid, fi_addr_t group, void* context) noexcept {
    return barrier2(fid, group, 0, context);
}

ssize_t allreduce(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                  fi_addr_t group, fi_datatype datatype, fi_op op, std::uint64_t flags,
                  void* context) noexcept {
    return post(fid, "fi_allreduce",
                {.collective = FI_ALLREDUCE,
                 .input = input,
                 .buffer = result,
                 .count = count,
                 .datatype = datatype,
                 .op = op,
                 .group = group,
                 .flags = flags,
                 .context = context});
}

ssize_t reduce(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*, fi_addr_t group,
               fi_addr_t root, fi_datatype datatype, fi_op op, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_reduce",
                {.collective = FI_REDUCE,
                 .input = input,
                 .buffer = result,
                 .count = count,
                 .datatype = datatype,
                 .op = op,
                 .group = group,
                 .root = root,
                 .flags = flags,
                 .context = context});
}

ssize_t allgather(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                  fi_addr_t group, fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_allgather",
                {.collective = FI_ALLGATHER,
                 .input = input,
                 .buffer = result,
                 .count = count,
                 .datatype = datatype,
                 .group = group,
                 .flags = flags,
                 .context = context});
}

ssize_t alltoall(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                 fi_addr_t group, fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_alltoall",
                {.collective = FI_ALLTOALL,
                 .input = input,
                 .buffer = result,
                 .count = count,
                 .datatype = datatype,
                 .group = group,
                 .flags = flags,
                 .context = context});
}

ssize_t reduce_scatter(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                       fi_addr_t group, fi_datatype datatype, fi_op op, std::uint64_t flags,
                       void* context) noexcept {
    return post(fid, "fi_reduce_scatter",
                {.collective = FI_REDUCE_SCATTER,
                 .input = input,
                 .buffer = result,
                 .count = count,
                 .datatype = datatype,
                 .op = op,
                 .group = group,
                 .flags = flags,
                 .context = context});
}

ssize_t scatter(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                fi_addr_t group, fi_addr_t root, fi_datatype datatype, std::uint64_t flags,
                void* context) noexcept {
    return post(fid, "fi_scatter",
                {.collective = FI_SCATTER,
                 .input = input,
                 .buffer = result,
                 .count = count,
                 .datatype = datatype,
                 .group = group,
                 .root = root,
                 .flags = flags,
                 .context = context});
}

ssize_t gather(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*, fi_addr_t group,
               fi_addr_t root, fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return post(fid, "fi_gather",
                {.collective = FI_GATHER,
                 .input = input,
                 .buffer = result,
                 .count = count,
                 .datatype = datatype,
                 .group = group,
                 .root = root,
                 .flags = flags,
                 .context = context});
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
