#include "datagram/counter.h"

namespace mcastcoll::datagram {

int Counter::open(Domain& domain, fi_cntr_attr* attr, fid_cntr** counter, void* context) {
    static fi_ops_cntr ops{sizeof(fi_ops_cntr),
                           kCall<&Counter::read>,
                           kCall<&Counter::readerr>,
                           kCall<&Counter::change<&Counter::done_, true>>,
                           kCall<&Counter::change<&Counter::done_, false>>,
                           kCall<&Counter::wait>,
                           kCall<&Counter::change<&Counter::failed_, true>>,
                           kCall<&Counter::change<&Counter::failed_, false>>};
    if (attr == nullptr || counter == nullptr || attr->events != FI_CNTR_EVENTS_COMP) return -FI_EINVAL;
    auto made = std::make_shared<Counter>(domain, context);
    if (const int rc = open_wait(made->wait_object(), attr->wait_obj); rc != 0) return rc;
    made->fid_cntr::ops = &ops;
    return made->give_to(*counter);
}

void Counter::count(bool failed) {
    ++(failed ? failed_ : done_);
    wait_object().wake();
}

std::uint64_t Counter::read() {
    const std::lock_guard lock(parent().mutex);
    provider::guard([&] { return progress(), 0; });
    return done_;
}

std::uint64_t Counter::readerr() {
    const std::lock_guard lock(parent().mutex);
    return failed_;
}

template <std::uint64_t Counter::*Value, bool Add>
int Counter::change(std::uint64_t value) {
    const std::lock_guard lock(parent().mutex);
    this->*Value = Add ? this->*Value + value : value;
    wait_object().wake();
    return 0;
}

int Counter::wait(std::uint64_t threshold, int timeout) {
    const std::uint64_t failed = readerr();
    // Only one of several sleeping threads is woken, possibly one whose threshold is not reached yet. So
    // every thread looks again at this interval.
    constexpr int kRest_ms = 20;
    const ssize_t got = sleep_until(timeout, kRest_ms, [&]() -> ssize_t {
        if (done_ >= threshold) return 0;
        return failed_ != failed ? -FI_EAVAIL : -FI_EAGAIN;
    });
    return got == -FI_EAGAIN ? -FI_ETIMEDOUT : static_cast<int>(got);
}

}  // namespace mcastcoll::datagram
