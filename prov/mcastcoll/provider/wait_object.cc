#include "provider/wait_object.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "provider/log.h"

namespace mcastcoll::provider {

bool WaitObject::open(int inner_descriptor) {
    poll_set_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    signal_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    inner_ = inner_descriptor;
    if (poll_set_.valid() && signal_.valid() && add(signal_.get()) && add(inner_)) return true;
    poll_set_.reset();
    return false;
}

int WaitObject::get_wait(void* descriptor) const {
    if (!is_open()) return -FI_ENOSYS;
    if (descriptor == nullptr) return -FI_EINVAL;
    *static_cast<int*>(descriptor) = poll_set_.get();
    return 0;
}

bool WaitObject::inner_readable() const {
    pollfd one{inner_, POLLIN, 0};
    return poll(&one, 1, 0) > 0;
}

bool WaitObject::add(int descriptor) {
    if (!is_open() || descriptor < 0) return true;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    if (epoll_ctl(poll_set_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 || errno == EEXIST) return true;
    log_line(Level::warn,
             "cannot add descriptor {} to a wait object: {}; the open or join that needs it fails",
             descriptor, std::strerror(errno));
    return false;
}

void WaitObject::remove(int descriptor) {
    if (is_open() && descriptor >= 0) epoll_ctl(poll_set_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

int WaitObject::wake_now() {
    const std::uint64_t one = 1;
    return write(signal_.get(), &one, sizeof one) == sizeof one || errno == EAGAIN ? 0 : -errno;
}

int WaitObject::signal() {
    signalled_.store(true, std::memory_order_release);
    return is_open() ? wake_now() : 0;
}

void WaitObject::reset() {
    std::uint64_t count;
    while (read(signal_.get(), &count, sizeof count) < 0 && errno == EINTR) {
    }
    woken_.store(false);
}

int WaitObject::sleep(int timeout_ms) {
    epoll_event event;
    return epoll_wait(poll_set_.get(), &event, 1, timeout_ms) < 0 ? -errno : 0;
}

}  // namespace mcastcoll::provider
