#include "ofi/domain.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <memory>

#include "mcastcoll/mcastcoll.h"
#include "ofi/av.h"
#include "ofi/cq.h"
#include "ofi/endpoint.h"
#include "ofi/inner.h"
#include "ofi/request.h"
#include "provider/fid_owner.h"
#include "provider/guard.h"
#include "provider/log.h"
#include "wire/join.h"

namespace mcastcoll::ofi {
namespace {

// What fi_query_collective() says an operation can have; README.md does, too.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

int Domain::graft(Fabric& fabric, fid_domain& inner, const fi_info& info) {
    FidOwner<fid_domain> opened(&inner);  // closed if anything fails before it has a new table
    auto domain = std::unique_ptr<Domain>(new (std::nothrow) Domain(fabric, inner));
    if (!domain) return -FI_ENOMEM;
    domain->object_graft_.prepare(inner.fid.ops);
    domain->domain_graft_.prepare(inner.ops);
    opened.release();
    domain->collective_ = (info.caps & FI_COLLECTIVE) != 0;
    domain->automatic_ =
        info.domain_attr != nullptr && (info.domain_attr->data_progress == FI_PROGRESS_AUTO ||
                                        info.domain_attr->control_progress == FI_PROGRESS_AUTO);
    domain->object_graft_.install(inner.fid.ops, domain.get()).close = &Domain::close;
    fi_ops_domain& ops = domain->domain_graft_.install(inner.ops, domain.get());
    ops.endpoint = &Domain::open_endpoint;
    if (has(domain->domain_graft_.inner(), &fi_ops_domain::endpoint2))
        ops.endpoint2 = &Domain::open_endpoint2;
    if (domain->collective_) {
        ops.cq_open = &Domain::open_cq;
        ops.av_open = &Domain::open_av;
        ops.poll_open = &Domain::open_poll;
        ops.query_collective = &Domain::query_collective;
    }
    domain.release();  // close() deletes it
    return 0;
}

int Domain::close(fid* object) noexcept {
    return guard([&] {
        Domain& domain = Graft<fi_ops>::owner_of<Domain>(object->ops);
        const int rc = close_inner(object, domain.object_graft_, domain.domain_graft_);
        if (rc == 0) delete &domain;
        return rc;
    });
}

template <typename Open>
int Domain::open_any_endpoint(fi_info* info, fid_ep** endpoint, Open open) {
    if (info == nullptr || endpoint == nullptr) return -FI_EINVAL;
    InfoOwner inner = to_inner(*info);
    if (!inner) return -FI_ENOMEM;
    const bool wanted = collective_ && (info->caps & FI_COLLECTIVE) != 0;
    if (!wanted) return open(inner.get());
    auto prepared = Endpoint::prepare(*this, std::move(inner));
    if (const int rc = open(prepared->owned_info.get()); rc != 0) return rc;
    Endpoint::graft(std::move(prepared), **endpoint);
    return 0;
}

int Domain::open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) noexcept {
    return guard([&] {
        Domain& self = of(*domain);
        return self.open_any_endpoint(info, endpoint, [&](fi_info* inner) {
            return self.domain_graft_.inner()->endpoint(domain, inner, endpoint, context);
        });
    });
}

int Domain::open_endpoint2(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                           void* context) noexcept {
    return guard([&] {
        Domain& self = of(*domain);
        return self.open_any_endpoint(info, endpoint, [&](fi_info* inner) {
            return self.domain_graft_.inner()->endpoint2(domain, inner, endpoint, flags, context);
        });
    });
}

int Domain::open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept {
    return guard([&] {
        Domain& self = of(*domain);
        return Cq::open(self.fabric_, *self.domain_graft_.inner(), *domain, attr, cq, context);
    });
}

// A set of the inner provider's would never tell of a collective.
int Domain::open_poll(fid_domain*, fi_poll_attr*, fid_poll**) noexcept {
    log_line(Level::warn, "fi_poll_open: there are no poll sets where there are collectives");
    return -FI_ENOSYS;
}

int Domain::open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) noexcept {
    return guard([&] {
        Domain& self = of(*domain);
        if (attr == nullptr || av == nullptr) return -FI_EINVAL;
        const int rc = self.domain_graft_.inner()->av_open(domain, attr, av, context);
        return rc != 0 ? rc : Av::graft(**av, *attr);
    });
}

int Domain::query_collective(fid_domain*, fi_collective_op operation, fi_collective_attr* attr,
                             std::uint64_t flags) noexcept {
    if (attr == nullptr || attr->mode != 0 || flags != 0) return -FI_EINVAL;
    if (const int rc = supports(operation, attr->datatype, attr->op); rc != 0) return rc;
    const std::size_t width = datatype_bytes(attr->datatype).value_or(1);
    attr->datatype_attr = {.count = kMostBytes / width, .size = width};
    static_assert(FI_MCASTCOLL_MAX_MEMBERS == wire::kMostMembers);
    attr->max_members = FI_MCASTCOLL_MAX_MEMBERS;
    return 0;
}

}  // namespace mcastcoll::ofi
