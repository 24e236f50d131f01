#include "ofi/eq.h"

namespace mcastcoll::ofi {

int Eq::open(Fabric& fabric, fi_eq_attr* attr, fid_eq** eq, void* context) {
    if (attr == nullptr || eq == nullptr) return -FI_EINVAL;
    // As for completion queues, other wait objects would not wake for collectives.
    if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC && attr->wait_obj != FI_WAIT_FD) {
        provider::log_line(provider::Level::warn,
                           "fi_eq_open: the wait object must be FI_WAIT_NONE, FI_WAIT_UNSPEC or FI_WAIT_FD");
        return -FI_ENOSYS;
    }
    const int rc = open_inner(*attr, [&](fi_eq_attr* with) {
        return fabric.inner_ops().eq_open(&fabric.inner(), with, eq, context);
    });
    if (rc != 0) return rc;

    provider::FidOwner<fid_eq> opened(*eq);  // closed if anything fails
    auto own = std::make_unique<Eq>(fabric, **eq);
    if (const int failed = own->prepare(attr->wait_obj); failed != 0) return failed;
    own->install();
    fi_ops_eq& ops = *(*eq)->ops;
    ops.read = [](fid_eq* object, std::uint32_t* event, void* buffer, std::size_t length,
                  std::uint64_t flags) noexcept { return of(*object).read(event, buffer, length, flags); };
    ops.sread = [](fid_eq* object, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                   std::uint64_t flags) noexcept {
        return provider::guard(
            [&] { return of(*object).read_blocking(event, buffer, length, timeout, flags); });
    };
    opened.release();
    own.release();  // close() deletes it
    return 0;
}

ssize_t Eq::read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
    if (fabric_.active() && !fabric_.is_here()) return -FI_EBADF;
    if (fabric_.active()) provider::succeeds([&] { fabric_.progress_on_read(); });
    return inner_ops().read(&inner_, event, buffer, length, flags);
}

bool Eq::inner_pending() {
    std::uint32_t event = 0;
    std::byte entry[512];
    return inner_ops().sread(&inner_, &event, entry, sizeof entry, 1, FI_PEEK) != -FI_EAGAIN;
}

ssize_t Eq::read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags) {
    if (!wait_object_.is_open()) return -FI_ENOSYS;
    const Deadline deadline(timeout);
    for (;;) {
        const ssize_t got = read(event, buffer, length, flags);
        if (got != -FI_EAGAIN) return got;
        if (deadline.over()) return -FI_EAGAIN;
        if (const int rc = sleep(deadline); rc != 0) return rc;
    }
}

}  // namespace mcastcoll::ofi
