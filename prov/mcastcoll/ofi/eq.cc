#include "ofi/eq.h"

#include <rdma/fi_errno.h>

#include <memory>

#include "provider/fid_owner.h"
#include "provider/log.h"

namespace mcastcoll::ofi {

int Eq::open(Fabric& fabric, const fi_ops_fabric& inner_ops, fid_fabric& inner_fabric, fi_eq_attr* attr,
             fid_eq** eq, void* context) {
    if (attr == nullptr || eq == nullptr) return -FI_EINVAL;
    // As with completion queues (cq.cc).
    if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC && attr->wait_obj != FI_WAIT_FD) {
        log_line(Level::warn, "fi_eq_open: of wait objects there are FI_WAIT_NONE, _UNSPEC and _FD");
        return -FI_ENOSYS;
    }
    const int rc = open_inner(
        *attr, [&](fi_eq_attr* with) { return inner_ops.eq_open(&inner_fabric, with, eq, context); });
    if (rc != 0) return rc;

    FidOwner<fid_eq> opened(*eq);  // closed if anything fails
    auto own = std::make_unique<Eq>(fabric, **eq);
    if (const int failed = own->prepare(attr->wait_obj); failed != 0) return failed;
    fi_ops_eq& ops = own->install(*own);
    ops.read = &Eq::read;
    ops.sread = &Eq::sread;
    opened.release();
    own.release();  // close() deletes it
    return 0;
}

ssize_t Eq::read(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length,
                 std::uint64_t flags) noexcept {
    Eq& eq = of(*fid);
    if (eq.fabric_.active()) guard([&] { return eq.fabric_.progress_on_read(), 0; });
    return eq.graft_.inner()->read(fid, event, buffer, length, flags);
}

bool Eq::inner_pending() {
    std::uint32_t event = 0;
    std::byte entry[512];
    return graft_.inner()->sread(&inner_, &event, entry, sizeof entry, 1, FI_PEEK) != -FI_EAGAIN;
}

ssize_t Eq::read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags) {
    if (!wait_object_.is_open()) return -FI_ENOSYS;
    const Deadline deadline(timeout);
    for (;;) {
        const ssize_t got = read(&inner_, event, buffer, length, flags);
        if (got != -FI_EAGAIN) return got;
        if (deadline.over()) return -FI_EAGAIN;
        if (const int rc = sleep(deadline, [] { return false; }); rc != 0) return rc;
    }
}

ssize_t Eq::sread(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                  std::uint64_t flags) noexcept {
    return guard([&] { return of(*fid).read_blocking(event, buffer, length, timeout, flags); });
}

}  // namespace mcastcoll::ofi
