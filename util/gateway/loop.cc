#include "gateway/loop.h"

#include <errno.h>
#include <sched.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/system.h"

namespace mcastcoll::gateway {

Result<void> Loop::open() {
    epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.valid()) return system_error(errno, "epoll_create1");
    now_ = monotonic_now();
    return {};
}

Result<void> Loop::add(int descriptor, Watched& watched, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &watched;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
        return system_error(errno, "epoll_ctl");
    return {};
}

void Loop::remove(int descriptor) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

// Kernels before 5.11, and valgrind, support only milliseconds.
int Loop::sleep(std::span<epoll_event> events, std::int64_t longest_ns) {
    const int max = static_cast<int>(events.size());
    if (fine_) {
        const timespec wait{0, static_cast<long>(longest_ns)};
        const int count = epoll_pwait2(epoll_.get(), events.data(), max, &wait, nullptr);
        if (count >= 0 || errno != ENOSYS) return count;
        fine_ = false;
    }
    return epoll_wait(epoll_.get(), events.data(), max, static_cast<int>((longest_ns + 999'999) / 1'000'000));
}

void Loop::run_once(Nanoseconds until, Nanoseconds spin) {
    std::array<epoll_event, 256> events;
    const Nanoseconds last = now_, before = monotonic_now();
    int count = 0;
    now_ = before;
    while (spin.value > 0 && now_ < until && now_ - before < spin) {
        count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
        if (count != 0) break;
        sched_yield();  // the peer may need this core
        now_ = monotonic_now();
    }
    if (count <= 0) {
        const std::int64_t left = std::clamp<std::int64_t>((until - now_).value, 0, 999'999'999);
        count = sleep(events, left);
        now_ = monotonic_now();
    }
    overslept_ = now_ - std::max(last, std::min(until, before + Nanoseconds{1'000'000'000}));
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        static_cast<Watched*>(event.data.ptr)->on_events(event.events);
    }
    deferred_.clear();
}

}  // namespace mcastcoll::gateway
