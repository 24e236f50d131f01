#include "datagram/memory.h"

#include <rdma/fi_errno.h>

#include "datagram/domain.h"
#include "datagram/object.h"
#include "datagram/refusal.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {
namespace {

// There is no RMA to register for.
constexpr std::uint64_t kLocalAccess = FI_SEND | FI_RECV;

struct Region : fid_mr {
    Region(Domain& its_domain, fi_ops& ops, void* context) : fid_mr{}, domain(its_domain) {
        fid_mr::fid = {FI_CLASS_MR, context, &ops};
        fid_mr::key = FI_KEY_NOTAVAIL;
        domain.users.enter();
    }
    Domain& domain;
};

int close(Handle* object) noexcept {
    return guard([&] {
        Region& region = object_of<Region, fid_mr>(object);
        region.domain.users.leave();
        delete &region;
        return 0;
    });
}

int make(Handle* object, std::uint64_t access, fid_mr** mr, void* context) {
    static fi_ops ops{sizeof(fi_ops), &close, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse};
    return guard([&] {
        if (object->fclass != FI_CLASS_DOMAIN || mr == nullptr) return -FI_EINVAL;
        if ((access & ~kLocalAccess) != 0) return -FI_EOPNOTSUPP;
        *mr = new Region(object_of<Domain, fid_domain>(object), ops, context);  // close() deletes it
        return 0;
    });
}

int reg(Handle* object, const void*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t,
        std::uint64_t, fid_mr** mr, void* context) noexcept {
    return make(object, access, mr, context);
}

int regv(Handle* object, const iovec*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t,
         std::uint64_t, fid_mr** mr, void* context) noexcept {
    return make(object, access, mr, context);
}

int regattr(Handle* object, const fi_mr_attr* attr, std::uint64_t, fid_mr** mr) noexcept {
    if (attr == nullptr || attr->iface != FI_HMEM_SYSTEM) return -FI_EINVAL;
    return make(object, attr->access, mr, attr->context);
}

}  // namespace

fi_ops_mr& memory_operations() {
    static fi_ops_mr ops{sizeof(fi_ops_mr), &reg, &regv, &regattr};
    return ops;
}

}  // namespace mcastcoll::ofi::datagram
