// Sleeping until a collective is done: a completion queue's descriptor with poll and fi_trywait, fi_cq_sread,
// fi_eq_sread and the event queue's descriptor. A waiter must wake up, must sleep meanwhile, and must not
// depend on a call of any other process.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/program.h"

// Wait sets and poll sets: still present in libfabric 2.x, but deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

using namespace mcastcoll::fabtest;
using std::chrono::milliseconds;

constexpr milliseconds kLate{400};
// The limit of a waiter's processor time: if it polls all the time it uses about kLate, if it sleeps almost
// none.
constexpr milliseconds kBusyLimit{150};
// Longer than any step here, even on a loaded machine: a waiter that sleeps this long was not woken.
constexpr int kLongSleepMs = 60'000;

milliseconds processor_time() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto ms = [](const timeval& time) {
        return milliseconds(time.tv_sec * 1000 + time.tv_usec / 1000);
    };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
}

int descriptor_of(fid& queue) {
    int descriptor = -1;
    CHECK_RETURNS(0, fi_control(&queue, FI_GETWAIT, &descriptor));
    CHECK(descriptor >= 0);
    return descriptor;
}

// Word of the board (the memory that all processes of the test share) that the late member sets when it
// begins.
constexpr std::size_t kCame = 0;

void come_late(Member& me) {
    usleep(static_cast<useconds_t>(kLate.count()) * 1000);
    me.board().words[kCame] = 1;
}

// Sleeps in poll until the ticket is done, as an application with a descriptor does. Returns the number of
// sleeps.
unsigned sleep_until_done(Member& me, Ticket& ticket) {
    const int descriptor = descriptor_of(me.cq()->fid);
    const auto deadline = Clock::now() + std::chrono::seconds(me.options().wait_s);
    unsigned naps = 0;
    while (!ticket.done) {
        if (me.progress()) continue;
        if (Clock::now() > deadline)
            fail("no completion within {} s of polling the descriptor", me.options().wait_s);
        fid* queue = &me.cq()->fid;
        const int may_sleep = fi_trywait(me.fabric(), &queue, 1);
        if (may_sleep == -FI_EAGAIN) continue;
        CHECK_RETURNS(0, may_sleep);
        pollfd waiting{descriptor, POLLIN, 0};
        ++naps;
        const int woken = poll(&waiting, 1, kLongSleepMs);
        CHECK(woken >= 0);
        // Without the test's own call this member would sleep for ever.
        if (woken == 0 && !me.progress()) fail("the descriptor did not wake up");
    }
    return naps;
}

// Waits in fi_cq_sread until the ticket is done.
unsigned sread_until_done(Member& me, Ticket& ticket) {
    const auto deadline = Clock::now() + std::chrono::seconds(me.options().wait_s);
    unsigned naps = 0;
    while (!ticket.done) {
        if (Clock::now() > deadline) fail("no completion within {} s of fi_cq_sread", me.options().wait_s);
        fi_cq_tagged_entry entry{};
        ++naps;
        const ssize_t got = fi_cq_sread(me.cq(), &entry, 1, nullptr, kLongSleepMs);
        if (got == 1)
            me.take(entry);
        else if (got == -FI_EAVAIL)
            me.take_error();
        else if (got != -FI_EAGAIN && got != -FI_EINTR)
            fail("fi_cq_sread returned {}", describe(got));
        else if (got == -FI_EAGAIN)
            fail("fi_cq_sread slept for {} ms", kLongSleepMs);
    }
    return naps;
}

template <typename Wait>
void wait_for_collectives(Member& me, Wait wait) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const std::size_t large = me.options().is_mcastcoll() ? 3'000'000 : 1024 * me.size();
    for (unsigned late = 0; late < me.size(); ++late) {
        Buffer buffer(late % 2 == 0 ? 64 * me.size() : large);
        const std::uint64_t seed = mix(me.options().seed, late);
        buffer.poison();
        if (me.rank() == late) buffer.fill(seed);
        me.board().words[kCame] = 0;
        me.meet();
        const auto busy_before = processor_time();
        if (me.rank() == late) come_late(me);
        Ticket& got = me.broadcast(*group, buffer.data(), buffer.size(), late);
        const unsigned naps = wait(me, got);
        const auto busy = processor_time() - busy_before;
        me.finish(got);
        buffer.check(seed, "a broadcast that was slept for");
        if (me.rank() != late) {
            CHECK(me.board().words[kCame] == 1);
            if (busy > kBusyLimit && buffer.size() < 100'000)
                fail("used {} ms of processor while waiting {} ms, asleep {} times", busy.count(),
                     kLate.count(), naps);
        }
        me.meet();
        if (me.rank() == late) usleep(static_cast<useconds_t>(kLate.count()) * 1000 / 4);
        Ticket& entered = me.barrier(*group);
        wait(me, entered);
        me.finish(entered);
        me.meet();
    }
}

void by_descriptor(Member& me) {
    wait_for_collectives(me, sleep_until_done);
}
void by_sread(Member& me) {
    wait_for_collectives(me, sread_until_done);
}

// A queue without pending completions: fi_cq_sread keeps its timeout, and fi_trywait allows sleeping.
void nothing_to_come(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    me.finish(me.barrier(*group));
    me.idle(milliseconds(100));
    me.meet();
    const auto begin = Clock::now();
    fi_cq_tagged_entry entry{};
    CHECK_RETURNS(-FI_EAGAIN, fi_cq_sread(me.cq(), &entry, 1, nullptr, 300));
    const auto slept = Clock::now() - begin;
    CHECK(slept >= milliseconds(290));
    me.meet();
}

template <typename T, typename Open>
void expect_open(long wanted, const char* what, int wait_obj, Open open) {
    T* made = nullptr;
    const int rc = open(&made);
    if (rc != wanted) fail("{} with wait object {} returned {}", what, wait_obj, describe(rc));
    if (rc == 0) CHECK_RETURNS(0, fi_close(&made->fid));
}

// The supported wait objects wake up for collectives; unsupported wait objects are refused at opening, so
// that no thread sleeps on such an object.
void what_there_is(Member& me) {
    fi_wait_attr set_attr{};
    set_attr.wait_obj = FI_WAIT_FD;
    fid_wait* set = nullptr;
    const bool has_set = fi_wait_open(me.fabric(), &set_attr, &set) == 0;
    for (const fi_wait_obj wait_obj : {FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_SET, FI_WAIT_FD,
                                       FI_WAIT_MUTEX_COND, FI_WAIT_YIELD, FI_WAIT_POLLFD}) {
        if (wait_obj == FI_WAIT_SET && !has_set) continue;
        const bool both = wait_obj == FI_WAIT_NONE || wait_obj == FI_WAIT_UNSPEC || wait_obj == FI_WAIT_FD;
        fi_cq_attr cq{};
        cq.wait_obj = wait_obj;
        cq.wait_set = wait_obj == FI_WAIT_SET ? set : nullptr;
        expect_open<fid_cq>(both || wait_obj == FI_WAIT_YIELD ? 0 : -FI_ENOSYS, "fi_cq_open", wait_obj,
                            [&](auto** made) { return fi_cq_open(me.domain(), &cq, made, nullptr); });
        fi_eq_attr eq{};
        eq.wait_obj = wait_obj;
        eq.wait_set = cq.wait_set;
        expect_open<fid_eq>(both ? 0 : -FI_ENOSYS, "fi_eq_open", wait_obj,
                            [&](auto** made) { return fi_eq_open(me.fabric(), &eq, made, nullptr); });
    }
    if (has_set) CHECK_RETURNS(0, fi_close(&set->fid));
    fi_poll_attr poll_attr{};
    fid_poll* poll_set = nullptr;
    CHECK_RETURNS(-FI_ENOSYS, fi_poll_open(me.domain(), &poll_attr, &poll_set));
    // Without a wait object the sleeping calls return an error at once.
    fi_cq_tagged_entry entry{};
    CHECK_RETURNS(-FI_ENOSYS, fi_cq_sread(me.cq(), &entry, 1, nullptr, kLongSleepMs));
    std::uint32_t event = 0;
    fi_eq_entry eq_entry{};
    CHECK_RETURNS(-FI_ENOSYS, fi_eq_sread(me.eq(), &event, &eq_entry, sizeof eq_entry, kLongSleepMs, 0));
    int descriptor = -1;
    CHECK(fi_control(&me.cq()->fid, FI_GETWAIT, &descriptor) < 0);
    CHECK(fi_control(&me.eq()->fid, FI_GETWAIT, &descriptor) < 0);
    // Counters belong to the inner provider: they count only messages, and waits on counters have a timeout.
    fi_cntr_attr counting{};
    counting.wait_obj = FI_WAIT_UNSPEC;
    fid_cntr* counter = nullptr;
    CHECK_RETURNS(0, fi_cntr_open(me.domain(), &counting, &counter, nullptr));
    CHECK_RETURNS(-FI_ETIMEDOUT, fi_cntr_wait(counter, 1, 50));
    CHECK_RETURNS(0, fi_close(&counter->fid));
    me.meet();
}

void join_by_sread(Member& me) {
    const auto set = me.all_members();
    me.meet();
    const auto begin = Clock::now();
    const auto busy_before = processor_time();
    if (me.rank() == 0) come_late(me);
    const auto group = me.start_join(set.get());
    const auto deadline = begin + std::chrono::seconds(me.options().wait_s);
    while (!group->done) {
        if (Clock::now() > deadline) fail("no FI_JOIN_COMPLETE from fi_eq_sread");
        std::uint32_t event = 0;
        fi_eq_entry entry{};
        const ssize_t got = fi_eq_sread(me.eq(), &event, &entry, sizeof entry, kLongSleepMs, FI_PEEK);
        if (got == -FI_EAGAIN) fail("fi_eq_sread slept for {} ms", kLongSleepMs);
        if (got < 0 && got != -FI_EINTR) fail("fi_eq_sread returned {}", describe(got));
        me.progress();
    }
    me.finish(*group);
    const auto busy = processor_time() - busy_before;
    if (me.rank() != 0) {
        CHECK(me.board().words[kCame] == 1);
        if (busy > kBusyLimit)
            fail("used {} ms of processor while waiting {} ms for a join", busy.count(), kLate.count());
    }
    me.finish(me.barrier(*group));
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_wait",
                    "Waiting for collectives asleep: descriptors, fi_trywait, fi_cq_sread, fi_eq_sread");
    const Opening asleep{.queue_wait = FI_WAIT_FD, .event_wait = FI_WAIT_FD};
    program.add({.name = "descriptor, poll and fi_trywait", .body = by_descriptor, .opening = asleep});
    program.add({.name = "fi_cq_sread", .body = by_sread, .opening = asleep});
    const Opening any{.queue_wait = FI_WAIT_UNSPEC, .event_wait = FI_WAIT_UNSPEC};
    program.add({.name = "fi_cq_sread of any wait object", .body = by_sread, .opening = any});
    program.add({.name = "fi_cq_sread with nothing to come", .body = nothing_to_come, .opening = asleep});
    program.add(
        {.name = "fi_eq_sread of a join", .body = join_by_sread, .opening = asleep, .only_mcastcoll = true});
    program.add({.name = "what there is", .body = what_there_is, .members = 2, .only_mcastcoll = true});
    return program.run(argc, argv);
}
