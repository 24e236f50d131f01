// The applications' calls on the fid_mc of a group: fi_close(), and the public extension,
// mcastcoll/mcastcoll.h.
#include <sched.h>

#include "base/clock.h"
#include "ofi/collective_endpoint.h"
#include "ofi/graft.h"
#include "provider/guard.h"
#include "reduce/kernels.h"

namespace mcastcoll::ofi {
namespace {

int close_mc(fid* object) noexcept {
    Group& group = Group::of(*reinterpret_cast<fid_mc*>(object));
    if (!group.is_here()) return 0;  // the parent's group goes on
    return provider::guard([&] { return CollectiveEndpoint::of(group).close_group(group); });
}

// Answers a query about a joined group.
template <typename Answer>
int query(fid_mc* mc, const void* result, Answer answer) noexcept {
    if (mc == nullptr || result == nullptr) return -FI_EINVAL;
    Group& group = Group::of(*mc);
    if (!group.is_here()) return -FI_EBADF;
    const auto lock = CollectiveEndpoint::of(group).endpoint.lock();
    return group.core().joined() ? provider::guard([&] { return answer(group), 0; }) : -FI_EOPBADSTATE;
}

int get_shape(fid_mc* mc, fi_mcastcoll_group_shape* shape) noexcept {
    return query(mc, shape, [&](const Group& group) {
        const levels::Placement& placement = group.core().levels().placement();
        shape->members = placement.members();
        shape->hosts = static_cast<unsigned>(placement.hosts());
        shape->sites = static_cast<unsigned>(placement.segments().size());
    });
}

int get_naks_received(fid_mc* mc, std::uint64_t* times) noexcept {
    return query(mc, times, [&](const Group& group) {
        const engine::Engine* const engine = group.core().levels().engine();
        const engine::Counters counters = engine != nullptr ? engine->counters() : engine::Counters{};
        *times = counters.naks_received + counters.root_naks_received;
    });
}

ssize_t get_failure(fid_mc* mc, char* text, std::size_t bytes) noexcept {
    ssize_t needed = 0;
    if (text == nullptr || bytes == 0) return -FI_EINVAL;
    const int rc = query(mc, text, [&](const Group& group) {
        const std::string& why = group.core().failure_text();
        const std::size_t taken = std::min(why.size(), bytes - 1);
        std::copy_n(why.data(), taken, text);
        text[taken] = '\0';
        needed = static_cast<ssize_t>(why.size());
    });
    return rc != 0 ? rc : needed;
}

int get_counter(fid_mc* mc, const char* name, std::uint64_t* value) noexcept {
    int rc = name != nullptr ? 0 : -FI_EINVAL;
    const int queried = query(mc, value, [&](Group& group) {
        if (rc != 0) return;
        const auto found = CollectiveEndpoint::of(group).counter(name);
        if (found)
            *value = *found;
        else
            rc = -FI_ENOENT;
    });
    return queried != 0 ? queried : rc;
}

// Turns of progress between two calls of meanwhile().
constexpr unsigned kTurnsBetween = 4;
// Time for which the thread polls before it naps.
constexpr Nanoseconds kAwake = Nanoseconds::from_ms(2);
// After this time a nap may include a pause of a millisecond in which only messages wake the thread: little
// beside the wait so far.
constexpr Nanoseconds kPauseAfter = Nanoseconds::from_ms(10);
constexpr int kNapMs = 1;
constexpr int kNotOver = -1;

// Fills the operation for barriers, broadcasts of bytes, small allreduces and allgathers, for which the
// checks of make_request() would take as long as the operation itself. Returns false for other operations and
// for wrong arguments, which make_request() reports.
bool fill_plainly(const fi_mcastcoll_request& request, Rank self, std::size_t members,
                  host::Operation& operation) {
    if (request.size < sizeof request) return false;
    if (request.collective == FI_BARRIER) return true;
    if (request.buffer == nullptr) return false;
    operation.buffer = static_cast<std::byte*>(request.buffer);
    if (request.collective == FI_BROADCAST) {
        if (request.datatype != FI_UINT8 || request.root >= members) return false;
        operation.kind = host::Kind::broadcast;
        operation.root = request.root;
        operation.bytes = operation.ready = request.count;
        return true;
    }
    if (request.input == nullptr || request.count > host::kInlineBytes) return false;
    operation.input = static_cast<const std::byte*>(request.input);
    if (request.collective == FI_ALLGATHER) {
        if (request.datatype != FI_UINT8) return false;
        operation.kind = host::Kind::allgather;
        operation.bytes = request.count;
        return operation.input == operation.buffer + index_of(self) * operation.bytes ||
               !overlap(operation.input, operation.bytes, operation.buffer, members * operation.bytes);
    }
    if (request.collective != FI_ALLREDUCE) return false;
    const auto kernel = reduce::combiner(request.datatype, request.op);
    if (!kernel) return false;
    operation.kind = host::Kind::allreduce;
    operation.bytes = request.count * kernel->element_bytes;
    operation.combiner = *kernel;
    return operation.input == operation.buffer ||
           !overlap(operation.input, operation.bytes, operation.buffer, operation.bytes);
}

// Blocking collectives (fi_mcastcoll_group_ops.run) post an operation and wait for its end in one call,
// without a completion queue. On a single host the call uses the shared memory directly, without the
// CollectiveEndpoint and the fabric's lock, because there a whole broadcast takes less time than one poll of
// the sockets.

ssize_t run_in_team(Group& group, host::Operation& operation, int (*meanwhile)(void*), void* argument) {
    if (meanwhile == nullptr) {
        meanwhile = [](void* collective_endpoint) {
            const provider::Uncancelled until_it_is_over;
            const auto held = static_cast<CollectiveEndpoint*>(collective_endpoint)->endpoint.lock();
            static_cast<CollectiveEndpoint*>(collective_endpoint)->progress();
            return 0;
        };
        argument = &CollectiveEndpoint::of(group);
    }
    const int error = group.team().run(operation, meanwhile, argument);
    group.leave_team();
    // A refused operation was not started and has no effect on the group.
    if (error != 0 && operation.done) [[unlikely]] {
        const auto held = CollectiveEndpoint::of(group).endpoint.lock();
        group.wake();
        group.core().fail({group.core().levels().lost_here(), error}, monotonic_now());
    }
    return -error;
}

// Sleeps briefly. A member that does not lead its host waits in shared memory for data from its leader,
// unless the operation exchanges blocks among all members. Other members wait for the network. Events of
// either kind do not wake a thread waiting for the other kind, so naps are short.
bool nap(Group& group, const int& over, bool may_pause) {
    CollectiveEndpoint& collective_endpoint = CollectiveEndpoint::of(group);
    bool follows = false;
    host::Nap prepared;
    {
        const auto held = collective_endpoint.endpoint.lock();
        const group::LevelSet& levels = group.core().levels();
        follows = levels.host() != nullptr && !levels.placement().leads_host() && !levels.exchanges();
        if (follows) prepared = group.team().prepare_nap();
        const bool may_sleep = collective_endpoint.prepare_wait(may_pause) && over == kNotOver &&
                               (!follows || group.team().awaited() == prepared.awaited);
        if (!may_sleep && follows) host::Team::end_nap(prepared);
        if (!may_sleep) return false;
    }
    if (follows) {
        host::Team::nap(prepared, Nanoseconds::from_ms(kNapMs));
        host::Team::end_nap(prepared);
    } else {
        collective_endpoint.wait_set.sleep(kNapMs);
    }
    return true;
}

ssize_t run_over_levels(Group& group, const Request& request, int (*meanwhile)(void*), void* argument) {
    CollectiveEndpoint& collective_endpoint = CollectiveEndpoint::of(group);
    const provider::Uncancelled until_it_is_over;
    int over = kNotOver;
    {
        const auto held = collective_endpoint.endpoint.lock();
        if (const ssize_t refused = group.submit(request, &over, monotonic_now()); refused != 0)
            return refused;
        if (over != kNotOver) return -over;
    }
    Nanoseconds idle_since = monotonic_now();
    for (unsigned turn = 1;; ++turn) {
        Nanoseconds waited{};
        {
            const auto held = collective_endpoint.endpoint.lock();
            collective_endpoint.progress();
            if (over != kNotOver) return -over;
            waited = monotonic_now() - idle_since;
        }
        bool idle = waited > kAwake;
        // The caller's other work must not wait for several naps.
        if (meanwhile != nullptr && (idle || turn % kTurnsBetween == 0) && meanwhile(argument) != 0) {
            idle_since = monotonic_now();
            idle = false;
        }
        if (!idle || !nap(group, over, waited > kPauseAfter)) ::sched_yield();
    }
}

ssize_t run(Group& group, const fi_mcastcoll_request& request, int (*meanwhile)(void*), void* argument) {
    host::Operation operation;
    if (fill_plainly(request, group.self(), group.size(), operation) && group.enter_team())
        return run_in_team(group, operation, meanwhile, argument);
    auto made = make_request(request, group.fi_addr);
    if (!made) return -made.error().code;
    if (const auto fits = fit_to_group(made.value(), group.self(), group.size()); !fits)
        return -fits.error().code;
    if (group.enter_team()) {
        operation = host::operation_of(made.value());
        return run_in_team(group, operation, meanwhile, argument);
    }
    return run_over_levels(group, made.value(), meanwhile, argument);
}

ssize_t run_blocking(fid_mc* mc, const fi_mcastcoll_request* request, int (*meanwhile)(void*),
                     void* argument) noexcept {
    if (mc == nullptr || request == nullptr) return -FI_EINVAL;
    if (!Group::of(*mc).is_here()) return -FI_EBADF;
    // contain() instead of guard(): changing the cancellation state takes a noticeable time in a
    // shared-memory operation.
    return provider::contain([&] { return run(Group::of(*mc), *request, meanwhile, argument); });
}

int open_operations(fid*, const char* name, std::uint64_t flags, void** operations, void*) noexcept {
    static fi_mcastcoll_group_ops group_operations = {sizeof(fi_mcastcoll_group_ops),
                                                      &run_blocking,
                                                      &get_shape,
                                                      &get_naks_received,
                                                      &get_counter,
                                                      &get_failure};
    return hand_out(&group_operations, FI_MCASTCOLL_GROUP_OPS, name, flags, operations);
}

}  // namespace

fi_ops& CollectiveEndpoint::group_calls() {
    static fi_ops operations = own_operations(&close_mc, &open_operations);
    return operations;
}

}  // namespace mcastcoll::ofi
