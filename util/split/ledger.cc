#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/time.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "split/call.h"
#include "split/connections.h"
#include "split/keep_errno.h"
#include "split/locked.h"

namespace mcastcoll::split {
namespace {

using Map = std::unordered_map<std::uint64_t, Connection>;
constexpr std::size_t kSweepFrom = 1024;
constexpr unsigned kLooksPerSweep = 4096;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
std::size_t sweep_at = kSweepFrom;

// The entries by cookie. The map is never destroyed, because threads may still write while the process exits.
Map& map() {
    alignas(Map) static std::byte place[sizeof(Map)];
    static Map* const made = new (place) Map;
    return *made;
}

// Drops the entries of sockets that this process has closed.
void sweep() {
    DIR* const folder = opendir("/proc/self/fd");
    if (folder == nullptr) return;
    std::unordered_set<std::uint64_t> alive;
    for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
        const std::uint64_t cookie = cookie_of(std::atoi(entry->d_name));
        if (cookie != 0) alive.insert(cookie);
    }
    closedir(folder);
    for (auto at = map().begin(); at != map().end();)
        if (const auto here = at++; !alive.contains(here->first)) remove(here->first);
}

// Sweeps now and then: an unsettled entry of a closed socket would make all calls look up their sockets
// forever.
void tidy_now_and_then() noexcept try {
    static unsigned looks = 0;
    if (++looks % kLooksPerSweep == 0) sweep();
} catch (const std::bad_alloc&) {
    return;  // retried later
}

bool is_nonblocking(int fd) noexcept {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// The timeout of a blocking call (SO_RCVTIMEO or SO_SNDTIMEO) in milliseconds; -1: none.
int timeout_of(int fd, int option) noexcept {
    timeval limit{};
    socklen_t length = sizeof limit;
    if (getsockopt(fd, SOL_SOCKET, option, &limit, &length) != 0 || (limit.tv_sec == 0 && limit.tv_usec == 0))
        return -1;
    return static_cast<int>(limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000);
}

// Registered before the fork handler of the waiting thread, which changes data under the lock.
__attribute__((constructor(200))) void prepare_for_fork() {
    const auto leave = [] { pthread_mutex_unlock(&lock); };
    pthread_atfork([] { pthread_mutex_lock(&lock); }, leave, leave);
}

}  // namespace

std::atomic<std::uint32_t> unsettled{0};

Locked::Locked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    pthread_mutex_lock(&lock);
}

Locked::~Locked() {
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::uint64_t cookie_of(int fd) noexcept {
    const KeepErrno keep;
    std::uint64_t cookie = 0;
    socklen_t length = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

Connection* find(std::uint64_t cookie) noexcept {
    const auto at = map().find(cookie);
    return at == map().end() ? nullptr : &at->second;
}

bool add(const Connection& connection) noexcept try {
    remove(connection.cookie);
    if (map().size() >= sweep_at) {
        sweep();
        sweep_at = std::max(kSweepFrom, 2 * map().size());
    }
    map().insert_or_assign(connection.cookie, connection);
    if (connection.stage != Stage::settled) unsettled.fetch_add(1, std::memory_order_relaxed);
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void remove(std::uint64_t cookie) noexcept {
    if (Connection* const known = find(cookie)) settle(*known);
    map().erase(cookie);
}

void settle(Connection& connection) noexcept {
    if (connection.stage == Stage::settled) return;
    connection.stage = Stage::settled;
    unsettled.fetch_sub(1, std::memory_order_relaxed);
}

bool may_go_on(int fd, int flags, Stage stage, FunctionRef<int(Connection&)> attempt) noexcept {
    const KeepErrno keep;
    const std::uint64_t cookie = cookie_of(fd);
    if (cookie == 0) return true;
    const bool reads = stage == Stage::to_take;
    const bool block = (flags & MSG_DONTWAIT) == 0 && !is_nonblocking(fd);
    const int limit = block ? timeout_of(fd, reads ? SO_RCVTIMEO : SO_SNDTIMEO) : 0;
    for (bool waited = false;; waited = true) {
        int error = 0;
        {
            const Locked locked;
            tidy_now_and_then();
            Connection* const known = find(cookie);
            if (known == nullptr || known->stage != stage) return true;
            error = attempt(*known);
        }
        if (error == 0) return true;
        if (error != EAGAIN || !block || (waited && limit >= 0)) return keep.instead(error);
        if (wait_for(fd, reads ? POLLIN : POLLOUT, limit) && reads) pause_a_little();
    }
}

}  // namespace mcastcoll::split
