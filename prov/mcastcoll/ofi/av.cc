#include "ofi/av.h"

#include <rdma/fi_errno.h>

#include <memory>
#include <vector>

#include "ofi/av_set.h"
#include "provider/fid_owner.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {

int Av::graft(fid_av& inner, const fi_av_attr& attr) {
    FidOwner<fid_av> opened(&inner);  // closed if anything fails before it has a new table
    auto av = std::unique_ptr<Av>(new (std::nothrow) Av(inner));
    if (!av) return -FI_ENOMEM;
    av->object_graft_.prepare(inner.fid.ops);
    av->av_graft_.prepare(inner.ops);
    opened.release();
    av->all_known_ = attr.name == nullptr && (attr.flags & FI_EVENT) == 0;
    av->object_graft_.install(inner.fid.ops, av.get()).close = &Av::close;
    fi_ops_av& ops = av->av_graft_.install(inner.ops, av.get());
    const fi_ops_av* own = av->av_graft_.inner();
    if (ofi::has(own, &fi_ops_av::insert)) ops.insert = &Av::insert;
    if (ofi::has(own, &fi_ops_av::insertsvc)) ops.insertsvc = &Av::insertsvc;
    if (ofi::has(own, &fi_ops_av::insertsym)) ops.insertsym = &Av::insertsym;
    if (ofi::has(own, &fi_ops_av::remove)) ops.remove = &Av::remove;
    ops.av_set = &Av::open_set;
    av.release();  // close() deletes it
    return 0;
}

int Av::close(fid* object) noexcept {
    return guard([&] {
        Av& av = Graft<fi_ops>::owner_of<Av>(object->ops);
        {
            const std::lock_guard lock(av.mutex_);
            if (av.sets_ > 0) return -FI_EBUSY;
        }
        const int rc = close_inner(object, av.object_graft_, av.av_graft_);
        if (rc == 0) delete &av;
        return rc;
    });
}

bool Av::has(fi_addr_t address) const {
    const std::lock_guard lock(mutex_);
    if (address == FI_ADDR_NOTAVAIL || address == FI_ADDR_UNSPEC) return false;
    return !all_known_ || known_.count(address) > 0;
}

void Av::on_set_closed() {
    const std::lock_guard lock(mutex_);
    --sets_;
}

// The caller may not want the addresses; we do.
template <typename Insert>
int Av::insert_any(std::size_t count, fi_addr_t* addresses, Insert insert) {
    if (!all_known_) return insert(addresses);
    std::vector<fi_addr_t> own;
    if (addresses == nullptr) {
        own.assign(count, FI_ADDR_NOTAVAIL);
        addresses = own.data();
    }
    const int inserted = insert(addresses);
    const std::lock_guard lock(mutex_);
    if (inserted > 0)
        for (std::size_t i = 0; i < count; ++i)
            if (addresses[i] != FI_ADDR_NOTAVAIL) known_.insert(addresses[i]);
    return inserted;
}

int Av::insert(fid_av* av, const void* raw, std::size_t count, fi_addr_t* addresses, std::uint64_t flags,
               void* context) noexcept {
    return guard([&] {
        Av& self = of(*av);
        return self.insert_any(count, addresses, [&](fi_addr_t* out) {
            return self.av_graft_.inner()->insert(av, raw, count, out, flags, context);
        });
    });
}

int Av::insertsvc(fid_av* av, const char* node, const char* service, fi_addr_t* address, std::uint64_t flags,
                  void* context) noexcept {
    return guard([&] {
        Av& self = of(*av);
        return self.insert_any(1, address, [&](fi_addr_t* out) {
            return self.av_graft_.inner()->insertsvc(av, node, service, out, flags, context);
        });
    });
}

int Av::insertsym(fid_av* av, const char* node, std::size_t nodes, const char* service, std::size_t services,
                  fi_addr_t* addresses, std::uint64_t flags, void* context) noexcept {
    return guard([&] {
        Av& self = of(*av);
        const fi_ops_av* inner = self.av_graft_.inner();
        return self.insert_any(nodes * services, addresses, [&](fi_addr_t* out) {
            return inner->insertsym(av, node, nodes, service, services, out, flags, context);
        });
    });
}

int Av::remove(fid_av* av, fi_addr_t* addresses, std::size_t count, std::uint64_t flags) noexcept {
    return guard([&] {
        Av& self = of(*av);
        const int rc = self.av_graft_.inner()->remove(av, addresses, count, flags);
        const std::lock_guard lock(self.mutex_);
        if (rc == 0 && addresses != nullptr)
            for (std::size_t i = 0; i < count; ++i) self.known_.erase(addresses[i]);
        return rc;
    });
}

int Av::open_set(fid_av* av, fi_av_set_attr* attr, fid_av_set** set, void* context) noexcept {
    return guard([&] {
        Av& self = of(*av);
        if (attr == nullptr || set == nullptr) return -FI_EINVAL;
        auto made = AvSet::make(self, *attr, context);
        if (!made) {
            log_line(Level::warn, "fi_av_set: {}", made.error().message);
            return -made.error().code;
        }
        *set = made.value();
        const std::lock_guard lock(self.mutex_);
        ++self.sets_;
        return 0;
    });
}

}  // namespace mcastcoll::ofi
