#include "ofi/endpoint.h"

#include <rdma/fi_cm.h>

#include "ofi/av_set.h"
#include "ofi/collective_endpoint.h"
#include "ofi/cq.h"

namespace mcastcoll::ofi {
namespace {

// Names of the calls, in libfabric's order of fi_collective_op.
constexpr const char* kNames[] = {"fi_barrier",   "fi_broadcast", "fi_alltoall",
                                  "fi_allreduce", "fi_allgather", "fi_reduce_scatter",
                                  "fi_reduce",    "fi_scatter",   "fi_gather"};

// Starts one operation. Returns 0 if the completion will go to the endpoint's queue, or -FI_E* if nothing was
// started. -FI_ENOSYS depends only on the group's shape and the kind, so either all members get this error or
// none.
template <typename... Arguments>
ssize_t post(fid_ep* fid, const char* name, const Arguments&... arguments) noexcept {
    return provider::guard([&]() -> ssize_t {
        const auto refuse = [&](const Error& error) {
            provider::log_line(provider::Level::info, "{}: {}", name, error.message);
            return -error.code;
        };
        Result<Request> request = make_request(arguments...);
        if (!request) return refuse(request.error());
        Endpoint& endpoint = Graft<fi_ops_collective>::owner_of<Endpoint>(fid->collective);
        if (!endpoint.process.is_here()) return -FI_EBADF;
        const auto lock = endpoint.lock();
        // An endpoint without a collective endpoint has no groups.
        Group* const group = endpoint.collective_endpoint
                                 ? endpoint.collective_endpoint->find(request.value().group)
                                 : nullptr;
        if (group == nullptr) return -FI_EINVAL;
        if (const auto fits = fit_to_group(request.value(), group->self(), group->size()); !fits)
            return refuse(fits.error());
        const ssize_t refused = group->submit(request.value(), nullptr, monotonic_now());
        if (refused == 0) endpoint.collective_endpoint->keep_alarm();
        return refused;
    });
}

ssize_t post(fid_ep* fid, const Call& call) noexcept {
    return post(fid, kNames[call.collective], call);
}

ssize_t barrier2(fid_ep* fid, fi_addr_t group, std::uint64_t flags, void* context) noexcept {
    return post(fid, {FI_BARRIER, nullptr, nullptr, 0, FI_VOID, FI_NOOP, group, 0, flags, context});
}

// For allreduce and reduce_scatter.
template <fi_collective_op kName>
ssize_t reduce_all(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                   fi_addr_t group, fi_datatype datatype, fi_op op, std::uint64_t flags,
                   void* context) noexcept {
    return post(fid, {kName, input, result, count, datatype, op, group, 0, flags, context});
}

// For allgather and alltoall.
template <fi_collective_op kName>
ssize_t move_all(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                 fi_addr_t group, fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
    return post(fid, {kName, input, result, count, datatype, FI_NOOP, group, 0, flags, context});
}

// For scatter and gather.
template <fi_collective_op kName>
ssize_t move_rooted(fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                    fi_addr_t group, fi_addr_t root, fi_datatype datatype, std::uint64_t flags,
                    void* context) noexcept {
    return post(fid, {kName, input, result, count, datatype, FI_NOOP, group, root, flags, context});
}

void set_collectives(fi_ops_collective& table) {
    table.barrier = [](fid_ep* fid, fi_addr_t group, void* context) noexcept {
        return barrier2(fid, group, 0, context);
    };
    table.barrier2 = &barrier2;
    table.broadcast = [](fid_ep* fid, void* buffer, std::size_t count, void*, fi_addr_t group, fi_addr_t root,
                         fi_datatype datatype, std::uint64_t flags, void* context) noexcept {
        return post(fid,
                    {FI_BROADCAST, nullptr, buffer, count, datatype, FI_NOOP, group, root, flags, context});
    };
    table.alltoall = &move_all<FI_ALLTOALL>;
    table.allreduce = &reduce_all<FI_ALLREDUCE>;
    table.allgather = &move_all<FI_ALLGATHER>;
    table.reduce_scatter = &reduce_all<FI_REDUCE_SCATTER>;
    table.reduce = [](fid_ep* fid, const void* input, std::size_t count, void*, void* result, void*,
                      fi_addr_t group, fi_addr_t root, fi_datatype datatype, fi_op op, std::uint64_t flags,
                      void* context) noexcept {
        return post(fid, {FI_REDUCE, input, result, count, datatype, op, group, root, flags, context});
    };
    table.scatter = &move_rooted<FI_SCATTER>;
    table.gather = &move_rooted<FI_GATHER>;
    table.msg = [](fid_ep* fid, const fi_msg_collective* message, fi_ioc* results, void**,
                   std::size_t result_count, std::uint64_t flags) noexcept -> ssize_t {
        if (message == nullptr) return -FI_EINVAL;
        return post(fid, "the message variant", *message, Pieces{results, result_count}, flags);
    };
}

Endpoint& of(const fid& object) {
    return Graft<fi_ops>::owner_of<Endpoint>(object.ops);
}

int close(fid* object) noexcept {
    return provider::guard([&] {
        Endpoint& endpoint = of(*object);
        // A child of fork() must not destroy the CollectiveEndpoint: ~CollectiveEndpoint() would send
        // messages through the parent's sockets.
        if (!endpoint.process.is_here())
            return close_inner(object, endpoint.object_graft, endpoint.cm_graft, endpoint.collective_graft);
        {
            const auto lock = endpoint.lock();
            if (endpoint.collective_endpoint && endpoint.collective_endpoint->has_open_groups())
                return -FI_EBUSY;
            if (endpoint.collective_endpoint)
                endpoint.domain.fabric().remove_collective_endpoint(*endpoint.collective_endpoint);
            endpoint.collective_endpoint.reset();
        }
        endpoint.thread.reset();
        const int rc =
            close_inner(object, endpoint.object_graft, endpoint.cm_graft, endpoint.collective_graft);
        if (rc == 0) delete &endpoint;
        return rc;
    });
}

int bind(fid* object, fid* other, std::uint64_t flags) noexcept {
    return provider::guard([&] {
        Endpoint& endpoint = of(*object);
        if (const int rc = endpoint.object_graft.inner()->bind(object, other, flags); rc != 0) return rc;
        if (other->fclass == FI_CLASS_AV) endpoint.av = reinterpret_cast<fid_av*>(other);
        if (other->fclass == FI_CLASS_EQ) endpoint.eq = reinterpret_cast<fid_eq*>(other);
        if (Cq* cq = Cq::find(*other); cq != nullptr && (flags & FI_TRANSMIT) != 0) {
            endpoint.tx = &cq->own();
            endpoint.selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
        }
        return 0;
    });
}

int join(fid_ep* fid, const void* address, std::uint64_t flags, fid_mc** mc, void* context) noexcept {
    return provider::guard([&]() -> int {
        Endpoint& endpoint = Graft<fi_ops_cm>::owner_of<Endpoint>(fid->cm);
        if ((flags & FI_COLLECTIVE) == 0) {
            const fi_ops_cm* inner = endpoint.cm_graft.inner();
            return has(inner, &fi_ops_cm::join) ? inner->join(fid, address, flags, mc, context) : -FI_ENOSYS;
        }
        if (!endpoint.process.is_here()) return -FI_EBADF;
        const auto* where = static_cast<const fi_collective_addr*>(address);
        if (where == nullptr || mc == nullptr || AvSet::find(where->set) == nullptr) return -FI_EINVAL;
        if (endpoint.av == nullptr) return -FI_ENOAV;
        if (endpoint.tx == nullptr) return -FI_ENOCQ;
        const auto thread = endpoint.domain.is_automatic() ? endpoint.domain.fabric().progress_thread()
                                                           : Result<std::shared_ptr<ProgressThread>>(nullptr);
        if (!thread) {
            provider::log_line(provider::Level::warn, "fi_join: FI_PROGRESS_AUTO: {}",
                               thread.error().message);
            return -thread.error().code;
        }
        const auto lock = endpoint.lock();
        endpoint.thread = thread.value();
        if (!endpoint.collective_endpoint) {
            auto collective_endpoint = std::make_unique<CollectiveEndpoint>(endpoint);
            if (const auto opened = collective_endpoint->open(); !opened) {
                provider::log_line(provider::Level::warn, "fi_join: {}", opened.error().message);
                return -opened.error().code;
            }
            if (const int rc = endpoint.domain.fabric().add_collective_endpoint(*collective_endpoint);
                rc != 0)
                return rc;
            endpoint.collective_endpoint = std::move(collective_endpoint);
        }
        return endpoint.collective_endpoint->join(*where, flags, mc, context);
    });
}

void install(Endpoint& endpoint);

int control(fid* object, int command, void* argument) noexcept {
    return provider::guard([&] {
        Endpoint& endpoint = of(*object);
        const int rc = endpoint.object_graft.inner()->control(object, command, argument);
        // Some providers set their tables only when the endpoint is enabled.
        if (rc == 0 && command == FI_ENABLE) install(endpoint);
        return rc;
    });
}

void install(Endpoint& endpoint) {
    if (!endpoint.object_graft.is_on()) {
        fi_ops& ops = endpoint.object_graft.install(endpoint.inner->fid.ops, &endpoint);
        ops.close = &close;
        ops.bind = &bind;
        ops.control = &control;
    }
    if (!endpoint.cm_graft.is_on()) endpoint.cm_graft.install(endpoint.inner->cm, &endpoint).join = &join;
    if (!endpoint.collective_graft.is_on())
        set_collectives(endpoint.collective_graft.install(endpoint.inner->collective, &endpoint));
}

}  // namespace

Endpoint::Endpoint(Domain& its_domain, provider::InfoOwner inner_info)
    : BoundEndpoint{its_domain.fabric().mutex(), its_domain.fabric().wait_objects(), std::move(inner_info)},
      domain(its_domain) {
    object_graft.prepare(nullptr);
    cm_graft.prepare(nullptr);
    collective_graft.prepare(nullptr);
}

Endpoint::~Endpoint() = default;

void Endpoint::graft(std::unique_ptr<Endpoint> endpoint, fid_ep& inner) {
    endpoint->inner = &inner;
    install(*endpoint);
    endpoint.release();  // close() deletes it
}

}  // namespace mcastcoll::ofi
