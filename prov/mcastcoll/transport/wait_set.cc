#include "transport/wait_set.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "base/system.h"

namespace mcastcoll::transport {

Result<void> WaitSet::open() {
    descriptors_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    timer_ = FileDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!descriptors_.valid() || !timer_.valid()) return system_error(errno, "wait descriptors");
    return add(timer_.get());
}

Result<void> WaitSet::add(int descriptor) {
    if (descriptor < 0) return {};
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    if (epoll_ctl(descriptors_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
    return system_error(errno, fmt::format("cannot wait for descriptor {}", descriptor));
}

void WaitSet::set_wakes(int descriptor, bool wakes) const {
    epoll_event event{};
    event.events = wakes ? static_cast<std::uint32_t>(EPOLLIN) : 0;
    event.data.fd = descriptor;
    (void)epoll_ctl(descriptors_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

// Replaces a time of 0, which would disable the timer. A time in the past fires at once.
bool WaitSet::set_alarm(Nanoseconds time) {
    alarm_at_ = time;
    itimerspec alarm{};
    if (time != kNever) {
        const std::int64_t value = std::max<std::int64_t>(time.value, 1);
        alarm.it_value.tv_sec = value / 1'000'000'000;
        alarm.it_value.tv_nsec = value % 1'000'000'000;
    }
    return timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr) == 0;
}

void WaitSet::sleep(int milliseconds) const {
    epoll_event event;
    epoll_wait(descriptors_.get(), &event, 1, milliseconds);
}

}  // namespace mcastcoll::transport
