#include "ofi/cq.h"

#include <sched.h>

namespace mcastcoll::ofi {

int Cq::open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context) {
    if (attr == nullptr || cq == nullptr) return -FI_EINVAL;
    const fi_wait_obj wanted = attr->wait_obj;
    // Other wait objects would wake for the inner provider's events, but not for collectives.
    if (wanted != FI_WAIT_NONE && wanted != FI_WAIT_UNSPEC && wanted != FI_WAIT_FD &&
        wanted != FI_WAIT_YIELD) {
        provider::log_line(
            provider::Level::warn,
            "fi_cq_open: the wait object must be FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD or FI_WAIT_YIELD");
        return -FI_ENOSYS;
    }
    const auto open_one = [&](fi_cq_attr* with) {
        return domain.inner_ops().cq_open(&domain.inner(), with, cq, context);
    };
    // FI_WAIT_YIELD is implemented here, because not all inner providers support it.
    fi_cq_attr without = *attr;
    without.wait_obj = FI_WAIT_NONE;
    const int rc = wanted == FI_WAIT_YIELD ? open_one(&without) : open_inner(*attr, open_one);
    if (rc != 0) return rc;

    provider::FidOwner<fid_cq> opened(*cq);  // closed if anything fails
    auto own = std::make_unique<Cq>(domain.fabric(), **cq, attr->format);
    if (const int failed = own->prepare(attr->wait_obj); failed != 0) return failed;
    const bool sleeps = own->wait_object_.is_open();
    if (wanted == FI_WAIT_FD && !sleeps) return -FI_ENOSYS;
    own->yields_ = !sleeps && (wanted == FI_WAIT_UNSPEC || wanted == FI_WAIT_YIELD);
    own->install();
    fill(*(*cq)->ops);
    opened.release();
    own.release();  // close() deletes it
    return 0;
}

void Cq::fill(fi_ops_cq& ops) {
    ops.read = [](fid_cq* object, void* buffer, std::size_t count) noexcept {
        return of(*object).read(buffer, count);
    };
    ops.readfrom = [](fid_cq* object, void* buffer, std::size_t count, fi_addr_t* source) noexcept {
        return of(*object).readfrom(buffer, count, source);
    };
    ops.readerr = [](fid_cq* object, fi_cq_err_entry* entry, std::uint64_t flags) noexcept -> ssize_t {
        Cq& cq = of(*object);
        if (cq.has_own() && cq.fabric_.is_here()) {
            const std::lock_guard lock(cq.fabric_.mutex());
            if (cq.own_.take_error(*entry, cq.fabric_.api_version()) > 0) return 1;
        }
        return cq.inner_ops().readerr(object, entry, flags);
    };
    // A blocking read without a wait object returns an error. libfabric's own providers crash in this case.
    ops.sread = [](fid_cq* object, void* buffer, std::size_t count, const void*, int timeout) noexcept {
        return provider::guard([&] { return of(*object).read_blocking(buffer, count, nullptr, timeout); });
    };
    ops.sreadfrom = [](fid_cq* object, void* buffer, std::size_t count, fi_addr_t* source, const void*,
                       int timeout) noexcept {
        return provider::guard([&] { return of(*object).read_blocking(buffer, count, source, timeout); });
    };
    ops.signal = [](fid_cq* object) noexcept {
        Cq& cq = of(*object);
        return cq.wait_object_.is_open() || cq.yields_ ? cq.wait_object_.signal() : -FI_ENOSYS;
    };
}

ssize_t Cq::read_own(void* buffer, std::size_t count, fi_addr_t* source) {
    if (!has_own()) return -FI_EAGAIN;
    const std::lock_guard lock(fabric_.mutex());
    const ssize_t taken = own_.take(buffer, count, source);
    if (taken == 0) return -FI_EAGAIN;
    if (taken > 0 && own_.any())
        // Another thread may still sleep, if this thread was woken in its place.
        wait_object_.wake();
    return taken;
}

// Completions of collectives come first.
ssize_t Cq::read(void* buffer, std::size_t count) {
    const ssize_t got = progress_and_read_own(buffer, count, nullptr);
    return got != -FI_EAGAIN ? got : inner_ops().read(&inner_, buffer, count);
}

// Does not call read() even without a source: some inner providers implement reads by calling the table's
// readfrom().
ssize_t Cq::readfrom(void* buffer, std::size_t count, fi_addr_t* source) {
    const ssize_t got = progress_and_read_own(buffer, count, source);
    return got != -FI_EAGAIN ? got : inner_ops().readfrom(&inner_, buffer, count, source);
}

ssize_t Cq::progress_and_read_own(void* buffer, std::size_t count, fi_addr_t* source) {
    if (!fabric_.active() && !has_own()) return -FI_EAGAIN;
    if (!fabric_.is_here()) return -FI_EBADF;
    return provider::guard([&] {
        fabric_.progress_on_read();
        return read_own(buffer, count, source);
    });
}

bool Cq::inner_pending() {
    // Takes nothing, because the count is 0. With a timeout of 0 the provider would not even look at the
    // descriptor.
    std::byte nowhere[sizeof(fi_cq_tagged_entry)];
    return inner_ops().sread(&inner_, nowhere, 0, nullptr, 1) != -FI_EAGAIN;
}

ssize_t Cq::read_blocking(void* buffer, std::size_t count, fi_addr_t* source, int timeout) {
    if (!wait_object_.is_open() && !yields_) return -FI_ENOSYS;
    const Deadline deadline(timeout);
    for (;;) {
        const ssize_t got = source != nullptr ? readfrom(buffer, count, source) : read(buffer, count);
        if (got != -FI_EAGAIN) return got;
        if (deadline.over() || wait_object_.take_signal()) return -FI_EAGAIN;
        if (!wait_object_.is_open()) {
            sched_yield();
            continue;
        }
        if (const int rc = sleep(deadline); rc != 0) return rc;
    }
}

}  // namespace mcastcoll::ofi
