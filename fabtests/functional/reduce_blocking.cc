// The blocking call of the provider's extension (fi_mcastcoll_group_ops.run): all collectives, with and
// without a callback meanwhile, among operations with completions, in several threads, and every error that
// the header documents except -FI_ESHUTDOWN, because a closed group cannot be passed.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <thread>

#include "reduce_cases.h"

namespace mcastcoll::fabtest {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMustEndWithin{60'000};
constexpr std::array kCollectives = {FI_BARRIER, FI_BROADCAST, FI_REDUCE, FI_ALLREDUCE, FI_ALLGATHER};

// The callback of a blocked call: drives the progress of the endpoint. No exception may pass through the
// provider.
struct Meanwhile {
    Member& me;
    std::uint64_t calls = 0;
    std::exception_ptr problem;

    static int call(void* argument) noexcept {
        auto& self = *static_cast<Meanwhile*>(argument);
        ++self.calls;
        try {
            return self.me.progress() ? 1 : 0;
        } catch (...) {
            self.problem = std::current_exception();
            return 0;
        }
    }
    void rethrow() const {
        if (problem) std::rethrow_exception(problem);
    }
};

// Repeats the call as long as it returns -FI_EAGAIN.
ssize_t run(Member& me, const Extension& extension, const fi_mcastcoll_request& request,
            Meanwhile* meanwhile = nullptr) {
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(me.options().wait_s);
    for (;;) {
        const ssize_t result =
            meanwhile ? extension.run(request, &Meanwhile::call, meanwhile) : extension.run(request);
        if (meanwhile) meanwhile->rethrow();
        if (result != -FI_EAGAIN || Clock::now() > deadline) return result;
        me.progress();
    }
}

void perform(Member& me, const Extension& extension, const Job& job, Meanwhile* meanwhile) {
    Exercise exercise(me, job);
    if (const ssize_t result = run(me, extension, exercise.request(), meanwhile); result != 0)
        fail("{}, blocking, returned {}", exercise.describe(), describe(result));
    exercise.check();
}

fi_mcastcoll_request barrier_request() {
    fi_mcastcoll_request request{};
    request.size = sizeof request;
    request.collective = FI_BARRIER;
    return request;
}

// A blocked caller's callback runs, however long it takes, and cannot close the group meanwhile.
void closing_meanwhile(Member& me, const Join& group, const Extension& extension) {
    auto& called = me.board().words[0];
    struct Closer {
        fid_mc* mc;
        std::atomic<std::uint64_t>& called;
        int calls = 0, result = 0;
    } closer{group.mc.get(), called};
    const auto try_close = [](void* argument) {
        auto& self = *static_cast<Closer*>(argument);
        if (self.calls++ > 0) return 0;
        self.result = fi_close(&self.mc->fid);
        ++self.called;
        return 0;
    };
    if (me.rank() == 0) me.wait_until("the others' calls meanwhile", [&] { return called + 1 >= me.size(); });
    CHECK_RETURNS(0, extension.run(barrier_request(), try_close, &closer));
    if (me.rank() != 0) CHECK(closer.result == -FI_EBUSY);
}

}  // namespace

void blocking(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const Extension extension(*group);
    Meanwhile meanwhile{me, 0, {}};
    for (const bool busy : {false, true}) {
        for (const fi_collective_op collective : kCollectives) {
            for (const std::size_t count : {0, 1, 3, 1000, 20'000, 100'000, 1 << 20}) {
                Job job{.collective = collective, .type = FI_INT32, .count = count};
                job.in_place = count % 2 == 1;
                for (job.root = 0; job.root < me.size(); ++job.root) {
                    job.seed = mix(me.options().seed, count, job.root);
                    perform(me, extension, job, busy ? &meanwhile : nullptr);
                    if (collective != FI_BROADCAST && collective != FI_REDUCE) break;
                    if (count > 100'000) break;
                }
            }
        }
    }
    closing_meanwhile(me, *group, extension);
    me.meet();
}

// Blocking calls among operations still under way, which finish in any order.
void blocking_mixed(Member& me) {
    struct Open {
        std::unique_ptr<Exercise> exercise;
        Ticket* ticket;
    };
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const Extension extension(*group);
    Meanwhile meanwhile{me, 0, {}};
    std::vector<Open> open;
    std::uint64_t own = mix(me.options().seed, me.rank(), 77);
    const auto finish_one = [&] {
        own = mix(own);
        const std::size_t index = own % open.size();
        me.finish(*open[index].ticket);
        open[index].exercise->check();
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
    };
    for (std::size_t i = 0; i < (me.options().large ? 5'000 : 300); ++i) {
        const Job job = draw_job(me, mix(me.options().seed, i, 4711), 100'000);
        if (mix(job.seed, 9) % 2 == 0) {
            perform(me, extension, job, mix(job.seed, 10) % 2 ? &meanwhile : nullptr);
        } else {
            auto exercise = std::make_unique<Exercise>(me, job);
            Ticket& ticket = exercise->post(me, *group);
            open.push_back({std::move(exercise), &ticket});
        }
        if (open.size() >= 6) finish_one();
        // Now and then completes all open operations, so that this member is idle while others may be busy.
        if (i % 20 == 19)
            while (!open.empty()) finish_one();
    }
    while (!open.empty()) finish_one();
    me.meet();
}

// Runs blocking calls in one thread for each group, while the main thread uses the endpoint's queues.
void blocking_in_threads(Member& me) {
    constexpr std::size_t kThreads = 3;
    constexpr std::uint64_t kRounds = 150;
    const auto set = me.all_members();
    std::vector<std::unique_ptr<Join>> groups;
    for (std::size_t i = 0; i <= kThreads; ++i) groups.push_back(me.join(set.get()));
    std::atomic<std::size_t> ended = 0;
    std::array<std::exception_ptr, kThreads> problems;
    const auto work = [&](std::size_t index) {
        try {
            const Extension extension(*groups[index]);
            for (std::uint64_t i = 0; i < kRounds; ++i) {
                const Job job = draw_job(me, mix(me.options().seed, index, i), 50'000);
                Exercise exercise(me, job);
                if (const ssize_t result = extension.run(exercise.request()); result != 0)
                    fail("{}, in thread {}, returned {}", exercise.describe(), index, describe(result));
                exercise.check();
            }
        } catch (...) {
            problems[index] = std::current_exception();
            me.board().abandoned = true;
        }
        ++ended;
    };
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
    for (std::uint64_t i = 0; i < 100; ++i) {
        Exercise exercise(me, draw_job(me, mix(me.options().seed, i, 99), 50'000));
        me.finish(exercise.post(me, *groups[kThreads]));
        exercise.check();
    }
    me.wait_until("the threads", [&] { return ended == kThreads; });
    for (const auto& problem : problems)
        if (problem) std::rethrow_exception(problem);
    me.meet();
}

void blocking_alone(Member& me) {
    const auto set = me.set_of({me.rank()});
    const auto group = me.join(set.get());
    const Extension extension(*group);
    for (const fi_collective_op collective : kCollectives) {
        for (const std::size_t count : {0, 5, 50'000}) {
            for (const bool in_place : {false, true}) {
                const Job job{.collective = collective,
                              .type = FI_DOUBLE,
                              .count = count,
                              .in_place = in_place,
                              .seed = count};
                Exercise waits(job, 0, 1), completes(job, 0, 1);
                CHECK_RETURNS(0, extension.run(waits.request()));
                waits.check();
                me.finish(completes.post(me, *group));
                completes.check();
            }
        }
    }
    me.meet();
}

// A refused call has no effect: every member continues with the next operation, however many of its calls
// were refused.
void blocking_refusals(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const Extension extension(*group);
    std::vector<std::uint32_t> input(64), result(64 * me.size());
    fi_mcastcoll_request good = barrier_request();
    good.collective = FI_ALLREDUCE;
    good.input = input.data();
    good.buffer = result.data();
    good.count = 64;
    good.datatype = FI_UINT32;
    good.op = FI_SUM;
    const auto refused = [&](long error, const char* what, auto change) {
        fi_mcastcoll_request request = good;
        change(request);
        if (const ssize_t got = extension.run(request); got != error)
            fail("{}: returned {} instead of {}", what, describe(got), describe(error));
    };
    using Request = fi_mcastcoll_request;
    CHECK_RETURNS(-FI_EINVAL, extension.ops().run(nullptr, &good, nullptr, nullptr));
    CHECK_RETURNS(-FI_EINVAL, extension.ops().run(group->mc.get(), nullptr, nullptr, nullptr));
    refused(-FI_EINVAL, "size 0", [](Request& r) { r.size = 0; });
    refused(-FI_EINVAL, "size too small", [](Request& r) { r.size = sizeof r - 1; });
    refused(-FI_EINVAL, "no such collective",
            [](Request& r) { r.collective = static_cast<fi_collective_op>(15); });
    refused(-FI_EINVAL, "no such datatype", [](Request& r) { r.datatype = static_cast<fi_datatype>(200); });
    refused(-FI_EINVAL, "no such operator", [](Request& r) { r.op = static_cast<fi_op>(200); });
    refused(-FI_EINVAL, "no input", [](Request& r) { r.input = nullptr; });
    refused(-FI_EINVAL, "no result", [](Request& r) { r.buffer = nullptr; });
    refused(-FI_EINVAL, "a count that overflows", [](Request& r) { r.count = SIZE_MAX / 2; });
    refused(-FI_EINVAL, "an overlap", [&](Request& r) { r.buffer = input.data() + 1; });
    const auto to_self = [&](Request& r) { r.collective = FI_REDUCE, r.root = me.rank(); };
    refused(-FI_EINVAL, "no result at the root", [&](Request& r) { to_self(r), r.buffer = nullptr; });
    refused(-FI_EINVAL, "an overlap at the root", [&](Request& r) { to_self(r), r.buffer = &input[1]; });
    refused(-FI_EINVAL, "no such root", [&](Request& r) { to_self(r), r.root = me.size(); });
    const auto broadcast = [](Request& r) { r.collective = FI_BROADCAST; };
    refused(-FI_EINVAL, "no buffer", [&](Request& r) { broadcast(r), r.buffer = nullptr; });
    refused(-FI_EINVAL, "no such root", [&](Request& r) { broadcast(r), r.root = me.size(); });
    refused(-FI_EOPNOTSUPP, "bits of doubles", [](Request& r) { r.datatype = FI_DOUBLE, r.op = FI_BAND; });
    refused(-FI_EOPNOTSUPP, "sums of void", [](Request& r) { r.datatype = FI_VOID; });
    refused(-FI_EOPNOTSUPP, "no operator", [](Request& r) { r.op = FI_NOOP; });
    for (const fi_collective_op all : {FI_ALLTOALL, FI_REDUCE_SCATTER, FI_ALLGATHER, FI_GATHER})
        refused(-FI_EINVAL, "no input", [&](Request& r) { r.collective = all, r.input = nullptr; });
    const auto gather = [](Request& r) { r.collective = FI_ALLGATHER; };
    refused(-FI_EINVAL, "an overlapping part",
            [&](Request& r) { gather(r), r.input = result.data() + 64 * me.rank() + 1; });
    // Only some members make refused calls.
    if (me.rank() % 2 == 0) refused(-FI_EINVAL, "no input", [](Request& r) { r.input = nullptr; });
    for (const fi_collective_op collective : {FI_ALLREDUCE, FI_BARRIER, FI_BROADCAST})
        perform(me, extension, {.collective = collective, .type = FI_INT8, .count = 99}, nullptr);
    me.meet();
}

void blocking_too_early(Member& me) {
    const auto set = me.all_members();
    me.meet();
    if (me.rank() == 0) me.meet();  // the others cannot have joined yet
    const auto group = me.start_join(set.get());
    if (me.rank() != 0) {
        const Extension extension(*group);
        fi_mcastcoll_group_shape shape{};
        CHECK_RETURNS(-FI_EOPBADSTATE, extension.run(barrier_request()));
        CHECK_RETURNS(-FI_EOPBADSTATE, extension.ops().get_shape(group->mc.get(), &shape));
        me.meet();
    }
    me.finish(*group);
    perform(me, Extension(*group), {.type = FI_INT64, .count = 10}, nullptr);
    me.meet();
}

void blocking_too_many(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const Extension extension(*group);
    auto& posted = me.board().words[0];
    const auto barrier = [&](Ticket& ticket) { return fi_barrier(me.ep(), group->address(), &ticket); };
    std::vector<Ticket*> tickets;
    if (me.rank() == 0) {
        constexpr std::size_t kEnough = 100'000;
        for (ssize_t result = 0; result == 0 && tickets.size() < kEnough;) {
            tickets.push_back(&me.new_ticket());
            result = barrier(*tickets.back());
            CHECK(result == 0 || result == -FI_EAGAIN);
        }
        me.drop(*tickets.back());
        tickets.pop_back();
        CHECK(!tickets.empty() && tickets.size() < kEnough);
        CHECK_RETURNS(-FI_EAGAIN, extension.run(barrier_request()));
        posted = tickets.size();
        me.meet();
    } else {
        me.meet();
        for (std::uint64_t i = 0; i < posted; ++i) tickets.push_back(&me.barrier(*group));
    }
    Meanwhile meanwhile{me, 0, {}};
    CHECK_RETURNS(0, run(me, extension, barrier_request(), &meanwhile));
    for (Ticket* ticket : tickets) me.finish(*ticket);
    me.meet();
}

// One member passes another length: all blocked calls end with an error, also on members with the correct
// length.
void blocking_lengths_disagree(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const Extension extension(*group);
    perform(me, extension, {.type = FI_INT64, .count = 10}, nullptr);
    me.meet();  // otherwise a fast member would end the call for a slow one
    Exercise exercise(me, {.type = FI_INT64, .count = me.rank() == 0 ? 1000U : 1001U});
    Meanwhile meanwhile{me, 0, {}};
    const auto since = Clock::now();
    const ssize_t result = run(me, extension, exercise.request(), &meanwhile);
    if (result != -FI_EMSGSIZE)
        fail("{} returned {} where lengths disagree", exercise.describe(), describe(result));
    CHECK(Clock::now() - since < kMustEndWithin);
    CHECK(run(me, extension, barrier_request(), &meanwhile) < 0);
    me.meet();
}

void blocking_member_dies(Member& me) {
    constexpr unsigned kVictim = 1;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const Extension extension(*group);
    Meanwhile meanwhile{me, 0, {}};
    const Job job{.type = FI_INT64, .count = 100'000};
    for (int i = 0; i < 5; ++i) perform(me, extension, job, &meanwhile);
    me.meet();
    if (me.rank() == kVictim) {
        usleep(50'000);
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    const auto since = Clock::now();
    Exercise exercise(me, job);
    CHECK_RETURNS(-FI_ECONNRESET, run(me, extension, exercise.request(), &meanwhile));
    CHECK(Clock::now() - since < kMustEndWithin);
    const ssize_t again = extension.run(barrier_request());
    CHECK(again < 0 && again != -FI_EAGAIN);
    me.wait_until("the event about the group", [&] { return me.read_event(); });
    CHECK(me.group_errors().size() == 1 && me.group_errors().front().join == group.get());
    me.meet(me.size() - 1);
}

void blocking_stalled(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const Extension extension(*group);
    perform(me, extension, {.type = FI_INT64, .count = 10}, nullptr);
    auto& ended = me.board().words[0];
    if (me.rank() == 0) {
        me.wait_until("the others", [&] { return ended + 1 >= me.size(); });
    } else {
        const auto since = Clock::now();
        Exercise exercise(me, {.type = FI_INT64, .count = 10});
        const ssize_t result = extension.run(exercise.request());
        ++ended;
        CHECK(result == -FI_ETIMEDOUT);
        CHECK(Clock::now() - since < kMustEndWithin);
    }
    me.meet();
}

}  // namespace mcastcoll::fabtest
