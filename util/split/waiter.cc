#include "split/waiter.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "split/connecting.h"
#include "split/ledger.h"

namespace mcastcoll::split {
namespace {

// More than these at once, and the rest is left to the programs' first writes.
constexpr std::size_t kMost = 256;
constexpr int kLook_ms = 20;  // how long a new connection waits for the thread to see it

struct Watched {
    int fd = -1;  // a duplicate: the program may close its own at any time
    std::uint64_t cookie = 0;
};

std::array<Watched, kMost> watched;
std::size_t watched_count = 0;
bool running = false;

void forget(std::size_t index) noexcept {
    close(watched[index].fd);
    watched[index] = watched[--watched_count];
}

// Under Locked.
void look_at(std::size_t index, short events) noexcept {
    Connection* known = find(watched[index].cookie);
    const bool failed = (events & (POLLERR | POLLHUP)) != 0;
    if (known == nullptr || known->stage != Stage::to_send) return forget(index);
    if (failed) {
        remove(watched[index].cookie);  // the program finds out why
        return forget(index);
    }
    if (flush(watched[index].fd, *known) != EAGAIN) forget(index);
}

void* watch_all(void*) {
    std::array<pollfd, kMost> polled;
    for (;;) {
        std::size_t count = 0;
        {
            const Locked locked;
            running = watched_count > 0;
            if (!running) return nullptr;
            for (; count < watched_count; count++) polled[count] = {watched[count].fd, POLLOUT, 0};
        }
        poll(polled.data(), count, kLook_ms);
        const Locked locked;
        // Others only append, so that what was polled is still where it was.
        for (std::size_t i = count; i-- > 0;)
            if (polled[i].revents != 0) look_at(i, polled[i].revents);
    }
}

// The child has no such thread: its parent's sends what is to be sent, the connection being the same.
void in_child() noexcept {
    while (watched_count > 0) forget(watched_count - 1);
    running = false;
}

}  // namespace

void watch(int fd, std::uint64_t cookie) noexcept {
    static const int prepared = pthread_atfork(nullptr, nullptr, in_child);
    if (prepared != 0 || watched_count == kMost) return;
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return;
    watched[watched_count++] = {copy, cookie};
    if (running) return;
    pthread_t thread;
    running = pthread_create(&thread, nullptr, watch_all, nullptr) ==
              0;  // with all signals held, as its creator has them
    if (running)
        pthread_detach(thread);
    else
        forget(watched_count - 1);
}

}  // namespace mcastcoll::split
