#include "datagram/counter.h"

#include <rdma/fi_errno.h>

#include <memory>

#include "datagram/domain.h"
#include "datagram/refusal.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {

Counter::Counter(Domain& domain) : fid_cntr{}, domain_(domain), waiter_(domain.mutex()) {}

int Counter::open(Domain& domain, fi_cntr_attr* attr, fid_cntr** counter, void* context) {
    static fi_ops object_ops{sizeof(fi_ops), &close, kRefuse, &control, kRefuse, kRefuse, kRefuse};
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
    if (const int rc = open_wait(made->waiter_.nest(), attr->wait_obj); rc != 0) return rc;
    made->fid_cntr::fid = {FI_CLASS_CNTR, context, &object_ops};
    made->fid_cntr::ops = &ops;
    domain.users.enter();
    *counter = made.release();  // close() deletes it
    return 0;
}

Counter* Counter::find(Handle& object) {
    if (object.fclass != FI_CLASS_CNTR || object.ops->close != &Counter::close) return nullptr;
    return &object_of<Counter, fid_cntr>(&object);
}

int Counter::close(Handle* object) noexcept {
    Counter& counter = object_of<Counter, fid_cntr>(object);
    return close_unused(counter, counter.domain_.users);
}

int Counter::control(Handle* object, int command, void* argument) noexcept {
    if (command != FI_GETWAIT) return -FI_ENOSYS;
    return object_of<Counter, fid_cntr>(object).waiter_.nest().get_wait(argument);
}

void Counter::count(bool failed) {
    ++(failed ? failed_ : done_);
    waiter_.nest().wake();
}

void Counter::prepare_wait() {
    const std::lock_guard lock(domain_.mutex());
    waiter_.prepare();
}

std::uint64_t Counter::read(fid_cntr* fid) noexcept {
    Counter& counter = of(*fid);
    const std::lock_guard lock(counter.domain_.mutex());
    guard([&] { return counter.waiter_.progress(), 0; });
    return counter.done_;
}

std::uint64_t Counter::readerr(fid_cntr* fid) noexcept {
    Counter& counter = of(*fid);
    const std::lock_guard lock(counter.domain_.mutex());
    return counter.failed_;
}

template <std::uint64_t Counter::*Value, bool Add>
int Counter::change(fid_cntr* fid, std::uint64_t value) noexcept {
    Counter& counter = of(*fid);
    const std::lock_guard lock(counter.domain_.mutex());
    counter.*Value = Add ? counter.*Value + value : value;
    counter.waiter_.nest().wake();
    return 0;
}

int Counter::wait(fid_cntr* fid, std::uint64_t threshold, int timeout) noexcept {
    return guard([&] {
        Counter& counter = of(*fid);
        std::uint64_t failed = 0;
        {
            const std::lock_guard lock(counter.domain_.mutex());
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
