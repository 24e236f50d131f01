#include "split/ledger.h"

#include <dirent.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <unordered_map>
#include <unordered_set>

namespace mcastcoll::split {
namespace {

using Map = std::unordered_map<std::uint64_t, Connection>;
constexpr std::size_t kSweepFrom = 1024;
constexpr unsigned kLooksPerSweep = 4096;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
std::size_t sweep_at = kSweepFrom;

// Never destroyed: threads may still write while the process exits.
Map& map() {
    alignas(Map) static std::byte place[sizeof(Map)];
    static Map* const made = new (place) Map;
    return *made;
}

void count() noexcept {
    entries.store(static_cast<std::uint32_t>(map().size()), std::memory_order_relaxed);
}

void erase(Map::iterator at) noexcept {
    if (at->second.stage != Stage::settled) unsettled.fetch_sub(1, std::memory_order_relaxed);
    map().erase(at);
    count();
}

// Drops what no descriptor of this process leads to any more.
void sweep() {
    DIR* const folder = opendir("/proc/self/fd");
    if (folder == nullptr) return;
    std::unordered_set<std::uint64_t> alive;
    for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
        const std::uint64_t cookie = cookie_of(std::atoi(entry->d_name));
        if (cookie != 0) alive.insert(cookie);
    }
    closedir(folder);
    for (auto at = map().begin(); at != map().end();) {
        const auto here = at++;
        if (!alive.contains(here->first)) erase(here);
    }
}

void take_lock() {
    pthread_mutex_lock(&lock);
}
void leave_lock() {
    pthread_mutex_unlock(&lock);
}
// Before the waiter's own handler for the child, which changes what is under the lock.
__attribute__((constructor(200))) void prepare_for_fork() {
    pthread_atfork(take_lock, leave_lock, leave_lock);
}

}  // namespace

std::atomic<std::uint32_t> entries{0}, unsettled{0};

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
    const int before = errno;
    std::uint64_t cookie = 0;
    socklen_t length = sizeof cookie;
    if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0) cookie = 0;
    errno = before;
    return cookie;
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
    count();
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void remove(std::uint64_t cookie) noexcept {
    const auto at = map().find(cookie);
    if (at != map().end()) erase(at);
}

void tidy_now_and_then() noexcept try {
    static unsigned looks = 0;
    if (++looks % kLooksPerSweep == 0) sweep();
} catch (const std::bad_alloc&) {
    return;  // then another time
}

void settle(Connection& connection) noexcept {
    if (connection.stage == Stage::settled) return;
    connection.stage = Stage::settled;
    unsettled.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace mcastcoll::split
