// Blocking collectives (fi_mcastcoll_group_ops.run): posted and waited for in one call, without a completion
// queue between. On a single host they go straight to the shared memory, past the station and its lock,
// because there a whole broadcast takes less time than a look at the sockets.
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/epoll.h>

#include "ofi/group.h"
#include "ofi/guard.h"
#include "ofi/live_station.h"

namespace mcastcoll::ofi {
namespace {

// Turns between two calls of the caller's own, and how long before the thread naps.
constexpr unsigned kTurnsBetween = 4;
constexpr Nanoseconds kAwake = Nanoseconds::from_ms(2);
constexpr int kNapMs = 1;
constexpr int kNotOver = -1;

// Barriers and broadcasts of bytes, for which the checks of make_request() would take as long as a small
// operation itself. False: not one of them, or something is wrong with it, which make_request() tells.
bool is_plain(const fi_mcastcoll_request& request, std::size_t members, host::Plain& plain) {
    if (request.size < sizeof request) return false;
    if (request.collective == FI_BARRIER) return true;
    if (request.collective != FI_BROADCAST || request.datatype != FI_UINT8 || request.root >= members ||
        request.buffer == nullptr)
        return false;
    plain = {host::Kind::broadcast, request.root, static_cast<std::byte*>(request.buffer), request.count};
    return true;
}

void fill(const Request& request, host::Operation& operation) {
    operation.kind = team_kind(request.kind);
    operation.root = static_cast<std::uint32_t>(request.root);
    operation.buffer = static_cast<std::byte*>(request.buffer);
    operation.input = static_cast<const std::byte*>(request.input);
    operation.bytes = request.bytes;
    operation.combiner = request.combiner;
    operation.ready = request.bytes;
}

}  // namespace

template <typename Run>
ssize_t Group::run_in_team(const Run& run, int (*meanwhile)(void*), void* argument) {
    if (meanwhile == nullptr) {
        meanwhile = [](void* station) { return static_cast<LiveStation*>(station)->progress_with_lock(); };
        argument = &station_;
    }
    const int error = run(host_level_->team(), meanwhile, argument);
    in_team_.store(false, std::memory_order_release);
    // What was refused was not begun, and harms nobody.
    if (error != 0 && host_level_->team().failure() != 0) [[unlikely]] {
        const auto lock = station_.lock();
        fail_group(error, lost_here(), station_.time());
    }
    return -error;
}

ssize_t Group::run(fid_mc* mc, const fi_mcastcoll_request* request, int (*meanwhile)(void*),
                   void* argument) noexcept {
    if (mc == nullptr || request == nullptr) return -FI_EINVAL;
    return guard([&]() -> ssize_t {
        Group& group = *reinterpret_cast<McFid*>(mc)->group;
        if (host::Plain plain; is_plain(*request, group.size(), plain) && group.enter_team())
            return group.run_in_team(
                [&plain](host::Team& team, auto... waiting) { return team.run_plain(plain, waiting...); },
                meanwhile, argument);
        const auto made = make_request(*request, group.token());
        if (!made) return -made.error().code;
        if (const auto fits = check_in_group(made.value(), group.self(), group.size()); !fits)
            return -fits.error().code;
        if (group.enter_team()) {
            host::Operation operation;
            fill(made.value(), operation);
            return group.run_in_team(
                [&operation](host::Team& team, auto... waiting) { return team.run(operation, waiting...); },
                meanwhile, argument);
        }
        {
            const auto lock = group.station_.lock();
            if (!group.joined_) return group.ended_ ? -FI_EOTHER : -FI_EOPBADSTATE;
            if (group.closed_) return -FI_ESHUTDOWN;
            if (group.error_ != 0) return -group.error_;
        }
        return group.run_over_levels(made.value(), meanwhile, argument);
    });
}

ssize_t Group::run_over_levels(const Request& request, int (*meanwhile)(void*), void* argument) {
    int over = kNotOver;
    {
        const auto lock = station_.lock();
        if (const ssize_t refused = submit(request, &over, station_.time()); refused != 0) return refused;
        if (over != kNotOver) return -over;
    }
    Nanoseconds idle_since = station_.time();
    for (unsigned turn = 1;; ++turn) {
        bool idle = false;
        {
            const auto lock = station_.lock();
            station_.progress();
            if (over != kNotOver) return -over;
            idle = station_.time() - idle_since > kAwake;
        }
        // Who naps must not keep the caller's other work waiting for several naps.
        if (meanwhile != nullptr && (idle || turn % kTurnsBetween == 0) && meanwhile(argument) != 0) {
            idle_since = station_.time();
            idle = false;
        }
        if (!idle || !nap()) ::sched_yield();
    }
}

// Shared memory wakes nobody, so naps are short.
bool Group::nap() {
    {
        const auto lock = station_.lock();
        if (!station_.prepare_wait()) return false;
    }
    epoll_event event;
    epoll_wait(station_.wait_descriptor(), &event, 1, kNapMs);
    return true;
}

}  // namespace mcastcoll::ofi
