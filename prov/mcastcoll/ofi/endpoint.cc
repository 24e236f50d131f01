#include "ofi/endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "ofi/station.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {
namespace {

Endpoint& of(const fid& object) {
    return Graft<fi_ops>::owner_of<Endpoint>(object.ops);
}

int close(fid* object) noexcept {
    return guard([&] {
        Endpoint& endpoint = of(*object);
        {
            const EndpointLock lock(endpoint);
            if (endpoint.station && endpoint.station->has_open_groups()) return -FI_EBUSY;
            if (endpoint.station) endpoint.domain->fabric().remove_station(*endpoint.station);
            endpoint.station.reset();
        }
        if (endpoint.automatic.exchange(false)) endpoint.domain->fabric().end_automatic();
        const int rc =
            close_inner(object, endpoint.object_graft, endpoint.cm_graft, endpoint.collective_graft);
        if (rc == 0) delete &endpoint;
        return rc;
    });
}

int bind(fid* object, fid* other, std::uint64_t flags) noexcept {
    return guard([&] {
        Endpoint& endpoint = of(*object);
        if (const int rc = endpoint.object_graft.inner()->bind(object, other, flags); rc != 0) return rc;
        if (other->fclass == FI_CLASS_AV) endpoint.av = reinterpret_cast<fid_av*>(other);
        if (other->fclass == FI_CLASS_EQ) endpoint.eq = reinterpret_cast<fid_eq*>(other);
        if (Cq* cq = Cq::find(*other); cq != nullptr) {
            if ((flags & FI_TRANSMIT) != 0) {
                endpoint.tx = cq;
                endpoint.selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
            }
            if ((flags & FI_RECV) != 0) endpoint.rx = cq;
        }
        return 0;
    });
}

int join(fid_ep* fid, const void* address, std::uint64_t flags, fid_mc** mc, void* context) noexcept {
    return guard([&]() -> int {
        Endpoint& endpoint = Graft<fi_ops_cm>::owner_of<Endpoint>(fid->cm);
        if ((flags & FI_COLLECTIVE) == 0) {
            const fi_ops_cm* inner = endpoint.cm_graft.inner();
            return has(inner, &fi_ops_cm::join) ? inner->join(fid, address, flags, mc, context) : -FI_ENOSYS;
        }
        const auto* where = static_cast<const fi_collective_addr*>(address);
        if (where == nullptr || mc == nullptr || AvSet::find(where->set) == nullptr) return -FI_EINVAL;
        if (endpoint.av == nullptr) return -FI_ENOAV;
        if (endpoint.tx == nullptr) return -FI_ENOCQ;
        if (endpoint.domain->is_automatic() && !endpoint.automatic.exchange(true)) {
            const int rc = endpoint.domain->fabric().begin_automatic();
            if (rc != 0) return endpoint.automatic = false, rc;
        }
        const EndpointLock lock(endpoint);
        if (!endpoint.station) {
            auto opened = Station::open(endpoint);
            if (!opened) {
                log_line(Level::warn, "fi_join: {}", opened.error().message);
                return -opened.error().code;
            }
            if (const int rc = endpoint.domain->fabric().add_station(*opened.value()); rc != 0) return rc;
            endpoint.station = std::move(opened).value();
        }
        return endpoint.station->join(*where, flags, mc, context);
    });
}

void install(Endpoint& endpoint);

int control(fid* object, int command, void* argument) noexcept {
    return guard([&] {
        Endpoint& endpoint = of(*object);
        const int rc = endpoint.object_graft.inner()->control(object, command, argument);
        // Some providers choose their tables only now.
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

Endpoint::Endpoint(Domain& its_domain, InfoOwner inner_info)
    : owned_info(std::move(inner_info)), info(owned_info.get()), domain(&its_domain) {}

Endpoint::~Endpoint() = default;

std::unique_ptr<Endpoint> Endpoint::prepare(Domain& domain, InfoOwner info) {
    auto endpoint = std::make_unique<Endpoint>(domain, std::move(info));
    endpoint->object_graft.prepare(nullptr);
    endpoint->cm_graft.prepare(nullptr);
    endpoint->collective_graft.prepare(nullptr);
    return endpoint;
}

void Endpoint::graft(std::unique_ptr<Endpoint> endpoint, fid_ep& inner) {
    endpoint->inner = &inner;
    install(*endpoint);
    endpoint.release();  // close() deletes it
}

void Endpoint::complete(void* op_context, std::uint64_t flags, int status) {
    const std::uint64_t default_flags = info->tx_attr != nullptr ? info->tx_attr->op_flags : 0;
    if (status != 0)
        tx->push_error(op_context, FI_COLLECTIVE, status);
    else if (!selective || ((flags | default_flags) & FI_COMPLETION) != 0)
        tx->push(op_context, FI_COLLECTIVE, 0, nullptr);
    else
        tx->release();
}

}  // namespace mcastcoll::ofi
