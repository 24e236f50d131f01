// The objects that an open fabric and its domains create: libfabric's tables, which depend on every kind of
// object.
#include <rdma/fi_endpoint.h>

#include "ofi/av.h"
#include "ofi/cq.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/eq.h"
#include "ofi/fabric.h"
#include "ofi/inner.h"
#include "ofi/request.h"

namespace mcastcoll::ofi {
namespace {

int trywait(Fabric& fabric, fid** objects, int count) {
    for (int i = 0; i < count; ++i) {
        if (Cq* cq = Cq::find(*objects[i]); cq != nullptr) cq->arm();
        if (Eq* eq = Eq::find(*objects[i]); eq != nullptr) eq->arm();
    }
    if (fabric.active() && !fabric.prepare_wait()) return -FI_EAGAIN;
    int rc = 0;
    for (int i = 0; i < count && rc == 0; ++i) {
        Cq* const cq = Cq::find(*objects[i]);
        Eq* const eq = Eq::find(*objects[i]);
        rc = cq != nullptr   ? cq->trywait()
             : eq != nullptr ? eq->trywait()
                             : fabric.inner_trywait(*objects[i]);
    }
    return rc;
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                void* context) noexcept {
    return provider::guard([&] {
        if (info == nullptr || domain == nullptr) return -FI_EINVAL;
        const provider::InfoOwner inner = to_inner(*info);
        if (!inner) return -FI_ENOMEM;
        Fabric& self = Fabric::of(*fabric);
        const int rc = flags == 0 ? self.inner_ops().domain(fabric, inner.get(), domain, context)
                                  : self.inner_ops().domain2(fabric, inner.get(), domain, flags, context);
        if (rc == 0) Domain::graft(self, **domain, *info);
        return rc;
    });
}

}  // namespace

void Fabric::graft(fid_fabric& inner) {
    const Fabric& fabric = take(inner);
    fi_ops_fabric& ops = *inner.ops;
    ops.domain = [](fid_fabric* object, fi_info* info, fid_domain** domain, void* context) noexcept {
        return open_domain(object, info, domain, 0, context);
    };
    if (has(&fabric.inner_ops(), &fi_ops_fabric::domain2)) ops.domain2 = &open_domain;
    ops.eq_open = [](fid_fabric* object, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept {
        return provider::guard([&] { return Eq::open(of(*object), attr, eq, context); });
    };
    ops.trywait = [](fid_fabric* object, fid** objects, int count) noexcept {
        return provider::guard([&] { return trywait(of(*object), objects, count); });
    };
}

void Domain::graft(Fabric& fabric, fid_domain& inner, const fi_info& info) {
    Domain& domain = take(inner, fabric);
    domain.collective_ = (info.caps & FI_COLLECTIVE) != 0;
    domain.automatic_ =
        info.domain_attr != nullptr && (info.domain_attr->data_progress == FI_PROGRESS_AUTO ||
                                        info.domain_attr->control_progress == FI_PROGRESS_AUTO);
    fi_ops_domain& ops = *inner.ops;
    ops.endpoint = [](fid_domain* object, fi_info* its_info, fid_ep** endpoint, void* context) noexcept {
        return open_endpoint(object, its_info, endpoint, 0, context);
    };
    if (has(&domain.inner_ops(), &fi_ops_domain::endpoint2)) ops.endpoint2 = &Domain::open_endpoint;
    if (!domain.collective_) return;
    ops.cq_open = [](fid_domain* object, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept {
        return provider::guard([&] { return Cq::open(of(*object), attr, cq, context); });
    };
    ops.av_open = [](fid_domain* object, fi_av_attr* attr, fid_av** av, void* context) noexcept {
        return provider::guard([&] {
            if (attr == nullptr || av == nullptr) return -FI_EINVAL;
            const int rc = of(*object).inner_ops().av_open(object, attr, av, context);
            if (rc == 0) Av::graft(**av, *attr);
            return rc;
        });
    };
    // The inner provider's poll sets would never report a collective.
    ops.poll_open = [](fid_domain*, fi_poll_attr*, fid_poll**) noexcept {
        provider::log_line(provider::Level::warn,
                           "fi_poll_open: poll sets are not supported by domains with collectives");
        return -FI_ENOSYS;
    };
    ops.query_collective = &query_collective;
}

int Domain::open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                          void* context) noexcept {
    return provider::guard([&] {
        if (info == nullptr || endpoint == nullptr) return -FI_EINVAL;
        provider::InfoOwner inner = to_inner(*info);
        if (!inner) return -FI_ENOMEM;
        Domain& self = of(*domain);
        const auto open = [&](fi_info* with) {
            return flags == 0 ? self.inner_ops().endpoint(domain, with, endpoint, context)
                              : self.inner_ops().endpoint2(domain, with, endpoint, flags, context);
        };
        if (!self.collective_ || (info->caps & FI_COLLECTIVE) == 0) return open(inner.get());
        auto prepared = std::make_unique<Endpoint>(self, std::move(inner));
        if (const int rc = open(prepared->info.get()); rc != 0) return rc;
        Endpoint::graft(std::move(prepared), **endpoint);
        return 0;
    });
}

}  // namespace mcastcoll::ofi
