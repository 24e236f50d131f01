#include "ofi/av.h"

#include "ofi/av_set.h"

namespace mcastcoll::ofi {

// The inner provider is queried for the addresses even if the caller passes no array.
template <typename Insert>
int Av::insert_any(std::size_t count, fi_addr_t* addresses, Insert insert) noexcept {
    return provider::guard([&] {
        if (!all_known_) return insert(inner_ops(), addresses);
        std::vector<fi_addr_t> own;
        if (addresses == nullptr) {
            own.assign(count, FI_ADDR_NOTAVAIL);
            addresses = own.data();
        }
        const int inserted = insert(inner_ops(), addresses);
        const std::lock_guard lock(mutex_);
        if (inserted > 0)
            for (std::size_t i = 0; i < count; ++i)
                if (addresses[i] != FI_ADDR_NOTAVAIL) known_.insert(addresses[i]);
        return inserted;
    });
}

void Av::graft(fid_av& inner, const fi_av_attr& attr) {
    Av& av = take(inner);
    av.all_known_ = attr.name == nullptr && (attr.flags & FI_EVENT) == 0;
    fi_ops_av& ops = *inner.ops;
    const fi_ops_av* theirs = &av.inner_ops();
    if (ofi::has(theirs, &fi_ops_av::insert))
        ops.insert = [](fid_av* object, const void* raw, std::size_t count, fi_addr_t* addresses,
                        std::uint64_t flags, void* context) noexcept {
            return of(*object).insert_any(count, addresses, [&](fi_ops_av& own, fi_addr_t* out) {
                return own.insert(object, raw, count, out, flags, context);
            });
        };
    if (ofi::has(theirs, &fi_ops_av::insertsvc))
        ops.insertsvc = [](fid_av* object, const char* node, const char* service, fi_addr_t* address,
                           std::uint64_t flags, void* context) noexcept {
            return of(*object).insert_any(1, address, [&](fi_ops_av& own, fi_addr_t* out) {
                return own.insertsvc(object, node, service, out, flags, context);
            });
        };
    if (ofi::has(theirs, &fi_ops_av::insertsym))
        ops.insertsym = [](fid_av* object, const char* node, std::size_t nodes, const char* service,
                           std::size_t services, fi_addr_t* addresses, std::uint64_t flags,
                           void* context) noexcept {
            return of(*object).insert_any(nodes * services, addresses, [&](fi_ops_av& own, fi_addr_t* out) {
                return own.insertsym(object, node, nodes, service, services, out, flags, context);
            });
        };
    if (ofi::has(theirs, &fi_ops_av::remove))
        ops.remove = [](fid_av* object, fi_addr_t* addresses, std::size_t count,
                        std::uint64_t flags) noexcept {
            return provider::guard([&] {
                Av& self = of(*object);
                // Forgets the addresses before the removal, because another thread may receive a freed
                // address immediately.
                std::vector<fi_addr_t> forgotten;
                if (addresses != nullptr) {
                    const std::lock_guard lock(self.mutex_);
                    for (std::size_t i = 0; i < count; ++i)
                        if (self.known_.erase(addresses[i]) > 0) forgotten.push_back(addresses[i]);
                }
                const int rc = self.inner_ops().remove(object, addresses, count, flags);
                if (rc != 0) {
                    const std::lock_guard lock(self.mutex_);
                    self.known_.insert(forgotten.begin(), forgotten.end());
                }
                return rc;
            });
        };
    ops.av_set = [](fid_av* object, fi_av_set_attr* set_attr, fid_av_set** set, void* context) noexcept {
        return provider::guard([&] { return of(*object).open_set(set_attr, set, context); });
    };
}

bool Av::has(fi_addr_t address) const {
    const std::lock_guard lock(mutex_);
    if (address == FI_ADDR_NOTAVAIL || address == FI_ADDR_UNSPEC) return false;
    return !all_known_ || known_.count(address) > 0;
}

int Av::open_set(fi_av_set_attr* attr, fid_av_set** set, void* context) {
    if (attr == nullptr || set == nullptr) return -FI_EINVAL;
    auto made = AvSet::make(*this, *attr, context);
    if (!made) {
        provider::log_line(provider::Level::warn, "fi_av_set: {}", made.error().message);
        return -made.error().code;
    }
    *set = made.value();
    const std::lock_guard lock(mutex_);
    ++sets_;
    return 0;
}

}  // namespace mcastcoll::ofi
