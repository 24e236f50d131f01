#include "datagram/counter.h"

#include <rdma/fi_errno.h>

#include <memory>

#include "datagram/domain.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {

Counter::Counter(Domain& domain) : Object(domain), waiter_(domain.mutex()) {}

int Counter::open(Domain& domain, fi_cntr_attr* attr, fid_cntr** counter, void* context) {
    static fi_ops_cntr ops{sizeof(fi_ops_cntr),
                           &read,
                           &readerr,
                           &change<&Counter::done_, true>,
                           &change<&Counter::done_, false>,
                           &wait,
                           &change<&Counter::failed_, true>,
                           &change<&Counter::failed_, false>};
    if (attr == nullptr || counter == nullptr || attr->events != FI_CNTR_EVENTS_COMP) return -FI_EINVAL;
    auto made = std::unique_ptr<Counter>(new Counter(domain));
    if (const int rc = open_wait(made->wait_object(), attr->wait_obj); rc != 0) return rc;
    made->fid_cntr::ops = &ops;
    *counter = hand_out(std::move(made), context);
    return 0;
}

void Counter::count(bool failed) {
    ++(failed ? failed_ : done_);
    wait_object().wake();
}

void Counter::prepare_wait() {
    const std::lock_guard lock(parent_.mutex());
    waiter_.prepare();
}

std::uint64_t Counter::read(fid_cntr* fid) noexcept {
    Counter& counter = of(*fid);
    const std::lock_guard lock(counter.parent_.mutex());
    guard([&] { return counter.waiter_.progress(), 0; });
    return counter.done_;
}

std::uint64_t Counter::readerr(fid_cntr* fid) noexcept {
    Counter& counter = of(*fid);
    const std::lock_guard lock(counter.parent_.mutex());
    return counter.failed_;
}

template <std::uint64_t Counter::*Value, bool Add>
int Counter::change(fid_cntr* fid, std::uint64_t value) noexcept {
    Counter& counter = of(*fid);
    const std::lock_guard lock(counter.parent_.mutex());
    counter.*Value = Add ? counter.*Value + value : value;
    counter.wait_object().wake();
    return 0;
}

int Counter::wait(fid_cntr* fid, std::uint64_t threshold, int timeout) noexcept {
    return guard([&] {
        Counter& counter = of(*fid);
        std::uint64_t failed = 0;
        {
            const std::lock_guard lock(counter.parent_.mutex());
            failed = counter.failed_;
        }
        const ssize_t got = counter.waiter_.wait(timeout, [&]() -> ssize_t {
            if (counter.done_ >= threshold) return 0;
            return counter.failed_ != failed ? -FI_EAVAIL : -FI_EAGAIN;
        });
        return got == -FI_EAGAIN ? -FI_ETIMEDOUT : static_cast<int>(got);
    });
}

}  // namespace mcastcoll::ofi::datagram
