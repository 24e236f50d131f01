// Several threads of a process in the provider at the same time (FI_THREAD_SAFE), and the provider's own
// progress thread (FI_PROGRESS_AUTO).
#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "exercise.h"
#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;
using std::chrono::milliseconds;

constexpr std::size_t kThreads = 8;
constexpr std::size_t kWindow = 6;  // operations that a thread has under way

// The context of a completion: any thread may read the completion of another's operation.
struct Note {
    fi_context2 space{};
    std::atomic<int> done{0};  // 1: success
};

// A thread's part: operations in its own group, finished in the order of posting, while the threads read a
// common completion queue.
class Worker {
  public:
    Worker(Member& me, const Join& group, std::size_t index, std::atomic<bool>& stop)
        : me_(me), group_(group), index_(index), stop_(stop) {}

    void run(std::uint64_t operations) {
        try {
            for (std::uint64_t i = 0; i < operations; ++i) {
                if (i >= kWindow) finish(open_[i % kWindow]);
                begin(open_[i % kWindow], i);
            }
            for (std::uint64_t i = operations; i < operations + kWindow; ++i)
                if (open_[i % kWindow].exercise) finish(open_[i % kWindow]);
        } catch (...) {
            problem_ = std::current_exception();
            stop_ = true;
            me_.board().abandoned = true;
        }
    }
    void rethrow() const {
        if (problem_) std::rethrow_exception(problem_);
    }

  private:
    struct Open {
        std::unique_ptr<Exercise> exercise;
        Note note;
    };

    void begin(Open& open, std::uint64_t number) {
        const Job job = draw_any_job(me_.size(), mix(me_.options().seed, index_, number), 20'000);
        open.exercise = std::make_unique<Exercise>(me_, job);
        open.note.done = 0;
        for (const Clock::time_point begun = Clock::now();;) {
            const ssize_t result = open.exercise->post(me_.ep(), group_.address(), &open.note);
            if (result == 0) return;
            if (result != -FI_EAGAIN)
                fail("{}, in thread {}, returned {}", open.exercise->describe(), index_, describe(result));
            look_around(begun);
        }
    }

    void finish(Open& open) {
        const Clock::time_point begun = Clock::now();
        while (open.note.done == 0) look_around(begun);
        open.exercise->check();
        open.exercise.reset();
    }

    void look_around(Clock::time_point begun) {
        std::array<fi_cq_tagged_entry, 4> entries{};
        const ssize_t got = fi_cq_read(me_.cq(), entries.data(), entries.size());
        if (got == -FI_EAGAIN) {
            if (stop_) fail("thread {} gave up, because another failed", index_);
            if (me_.board().abandoned) fail("thread {} gave up, because another process failed", index_);
            if (Clock::now() - begun > std::chrono::seconds(me_.options().wait_s))
                fail("thread {} waited for {} s", index_, me_.options().wait_s);
            return std::this_thread::yield();
        }
        if (got < 0) fail("fi_cq_read in thread {} returned {}", index_, describe(got));
        for (ssize_t i = 0; i < got; ++i)
            static_cast<Note*>(entries[static_cast<std::size_t>(i)].op_context)->done = 1;
    }

    Member& me_;
    const Join& group_;
    const std::size_t index_;
    std::atomic<bool>& stop_;
    std::array<Open, kWindow> open_;
    std::exception_ptr problem_;
};

// --operations counts the operations of all threads together.
void many_threads(Member& me) {
    const std::uint64_t given = me.options().operations;
    const std::uint64_t operations = given != 0 ? given : me.options().large ? 100'000 : 320;
    const auto set = me.all_members();
    std::vector<std::unique_ptr<Join>> groups;
    for (std::size_t i = 0; i < kThreads; ++i) groups.push_back(me.join(set.get()));
    me.meet();  // otherwise completions would arrive that no thread expects
    std::atomic<bool> stop = false;
    std::vector<std::unique_ptr<Worker>> workers;
    for (std::size_t i = 0; i < kThreads; ++i)
        workers.push_back(std::make_unique<Worker>(me, *groups[i], i, stop));
    std::vector<std::thread> threads;
    for (const auto& worker : workers)
        threads.emplace_back([&worker, operations] { worker->run(operations / kThreads); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& worker : workers) worker->rethrow();
    me.meet();
}

// One thread sleeps in fi_cq_sread() while another posts and makes no further call: the sleeping thread must
// wake for the completion.
void a_thread_that_reads(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    constexpr std::uint64_t kRounds = 30;
    std::atomic<std::uint64_t> read = 0;
    std::exception_ptr problem;
    std::thread reader([&] {
        try {
            while (read < kRounds) {
                fi_cq_tagged_entry entry{};
                const ssize_t got = fi_cq_sread(me.cq(), &entry, 1, nullptr, 1000 * int(me.options().wait_s));
                if (got != 1) fail("fi_cq_sread returned {}", describe(got));
                static_cast<Note*>(entry.op_context)->done = 1;
                ++read;
            }
        } catch (...) {
            problem = std::current_exception();
            me.board().abandoned = true;
            read = kRounds;
        }
    });
    const auto post_all = [&] {
        Note note;
        for (std::uint64_t i = 0; i < kRounds && !me.board().abandoned; ++i) {
            const Exercise exercise(me, draw_any_job(me.size(), mix(me.options().seed, i), 50'000));
            note.done = 0;
            CHECK_RETURNS(0, exercise.post(me.ep(), group->address(), &note));
            // Makes no call that would make progress.
            while (note.done == 0 && !me.board().abandoned) std::this_thread::sleep_for(milliseconds(1));
            if (note.done != 0) exercise.check();
        }
    };
    try {
        post_all();
    } catch (...) {
        me.board().abandoned = true;
        fi_cq_signal(me.cq());
        reader.join();
        throw;
    }
    reader.join();
    if (problem) std::rethrow_exception(problem);
    me.meet();
}

// One thread sleeps in fi_cq_sread(), and the other, too, before it posts; then it makes progress without
// reading the queue. After the end of its own sleep the provider must still count the first thread as
// sleeping.
void two_threads_that_sleep(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    constexpr std::uint64_t kRounds = 200;
    std::atomic<bool> stop = false;
    std::exception_ptr problem;
    std::thread reader([&] {
        try {
            while (!stop) {
                fi_cq_tagged_entry entry{};
                const ssize_t got = fi_cq_sread(me.cq(), &entry, 1, nullptr, -1);
                if (got == -FI_EAGAIN || got == -FI_EINTR) continue;
                if (got != 1) fail("fi_cq_sread returned {}", describe(got));
                static_cast<Note*>(entry.op_context)->done = 1;
            }
        } catch (...) {
            problem = std::current_exception();
            me.board().abandoned = true;
        }
    });
    const auto work = [&] {
        std::array<Note, 2> notes;
        for (std::uint64_t i = 0; i < kRounds && !me.board().abandoned; ++i) {
            fi_cq_tagged_entry entry{};
            CHECK_RETURNS(-FI_EAGAIN, fi_cq_sread(me.cq(), &entry, 1, nullptr, 1));
            for (Note& note : notes) {
                note.done = 0;
                CHECK_RETURNS(0, fi_barrier(me.ep(), group->address(), &note));
            }
            const Clock::time_point begun = Clock::now();
            while (notes[0].done == 0 || notes[1].done == 0) {
                if (me.board().abandoned) fail("gave up, because another thread or process failed");
                if (Clock::now() - begun > std::chrono::seconds(me.options().wait_s))
                    fail("in round {} the other thread slept on", i);
                (void)me.read_event();
            }
        }
    };
    std::exception_ptr own;
    try {
        work();
    } catch (...) {
        own = std::current_exception();
        me.board().abandoned = true;
    }
    stop = true;
    CHECK_RETURNS(0, fi_cq_signal(me.cq()));
    reader.join();
    if (own) std::rethrow_exception(own);
    if (problem) std::rethrow_exception(problem);
    me.meet();
}

// Threads that each create sets, change a shared set, and join and leave their own groups.
void threads_with_sets(Member& me) {
    constexpr std::size_t kJoiners = 4;
    constexpr std::uint64_t kTurns = 12;
    const auto shared = me.all_members();
    std::exception_ptr problem;
    std::mutex first;
    std::atomic<bool> stop = false;
    const auto joiner = [&](std::size_t index) {
        try {
            for (std::uint64_t turn = 0; turn < kTurns && !stop; ++turn) {
                // The key distinguishes the joins of threads, which come in any order.
                std::array<std::uint8_t, 2> key{static_cast<std::uint8_t>(index),
                                                static_cast<std::uint8_t>(turn)};
                fi_av_set_attr attr{};
                attr.count = me.size();
                attr.start_addr = attr.end_addr = FI_ADDR_NOTAVAIL;
                attr.comm_key = key.data();
                attr.comm_key_size = key.size();
                fid_av_set* raw = nullptr;
                CHECK_RETURNS(0, fi_av_set(me.av(), &attr, &raw, nullptr));
                const Fid<fid_av_set> set(raw);
                for (unsigned i = 0; i < me.size(); ++i)
                    CHECK_RETURNS(0, fi_av_set_insert(raw, me.address_of(i)));
                // The two calls leave the set as it is. Another thread may have made one of them before, so
                // either may fail.
                (void)fi_av_set_remove(shared.get(), me.address_of(0));
                (void)fi_av_set_insert(shared.get(), me.address_of(0));
                CHECK_RETURNS(0, fi_av_set_union(shared.get(), raw));
                CHECK_RETURNS(0, fi_av_set_intersect(raw, raw));
                fid_mc* mc = nullptr;
                fi_context2 context{};
                CHECK_RETURNS(0, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, raw, 0, &mc, &context));
                const Fid<fid_mc> group(mc);
                // Any thread may read the event of another's join, so the test polls the group itself.
                Note note;
                const Clock::time_point begun = Clock::now();
                bool posted = false;
                while (note.done == 0) {
                    if (!posted) posted = fi_barrier(me.ep(), fi_mc_addr(mc), &note) == 0;
                    fi_cq_tagged_entry entry{};
                    if (fi_cq_read(me.cq(), &entry, 1) == 1) static_cast<Note*>(entry.op_context)->done = 1;
                    std::uint32_t event = 0;
                    fi_eq_entry joined{};
                    if (fi_eq_read(me.eq(), &event, &joined, sizeof joined, 0) == -FI_EAVAIL)
                        fail("a join of thread {} failed", index);
                    if (stop || me.board().abandoned) fail("gave up, because another failed");
                    if (Clock::now() - begun > std::chrono::seconds(me.options().wait_s))
                        fail("thread {} waited for its group {}", index, turn);
                    std::this_thread::yield();
                }
            }
        } catch (...) {
            const std::lock_guard lock(first);
            if (!problem) problem = std::current_exception();
            stop = true;
            me.board().abandoned = true;
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kJoiners; ++i) threads.emplace_back(joiner, i);
    for (std::thread& thread : threads) thread.join();
    if (problem) std::rethrow_exception(problem);
    me.meet();
}

// All members except one post, and then compute: the remaining member must complete without further calls on
// the computing members, whose operations complete afterwards.
void by_itself(Member& me) {
    constexpr std::size_t kDone = 0;  // word: operations that the remaining member has completed
    CHECK(me.info().domain_attr->data_progress == FI_PROGRESS_AUTO);
    CHECK(me.info().domain_attr->control_progress == FI_PROGRESS_AUTO);
    const auto set = me.all_members();
    std::uint64_t done = 0;
    // Waits without a call until the remaining member is done, which has a time limit of its own.
    const auto compute = [&] {
        while (me.board().words[kDone] < done && !me.board().abandoned)
            std::this_thread::sleep_for(milliseconds(1));
    };
    const auto group = me.start_join(set.get());
    ++done;
    if (me.rank() != 0) compute();
    me.finish(*group);
    if (me.rank() == 0) me.board().words[kDone] = done;
    me.meet();
    for (const fi_collective_op collective :
         {FI_ALLREDUCE, FI_BROADCAST, FI_ALLGATHER, FI_ALLTOALL, FI_REDUCE_SCATTER}) {
        Job job{.collective = collective, .type = FI_INT32, .count = 250'000};
        job.root = collective == FI_BROADCAST ? me.size() - 1 : 0;
        job.seed = mix(me.options().seed, static_cast<std::uint64_t>(collective));
        const Exercise exercise(me, job);
        ++done;
        Ticket& ticket = exercise.post(me, *group);
        if (me.rank() != 0) compute();
        me.finish(ticket);
        if (me.rank() == 0) me.board().words[kDone] = done;
        exercise.check();
        me.meet();
    }
}

void by_hand(Member& me) {
    CHECK(me.info().domain_attr->data_progress == FI_PROGRESS_MANUAL);
    CHECK(me.info().domain_attr->control_progress == FI_PROGRESS_MANUAL);
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_threads", "Several threads, the application's and the provider's");
    Opening safe{}, waits{}, automatic{};
    safe.threading = waits.threading = FI_THREAD_SAFE;
    waits.queue_wait = FI_WAIT_UNSPEC;
    automatic.progress = FI_PROGRESS_AUTO;
    Opening all = automatic;
    all.threading = FI_THREAD_SAFE;
    const auto add = [&](const char* name, void (*body)(Member&), const Opening& opening) {
        program.add({.name = name, .body = body, .opening = opening, .only_mcastcoll = true});
    };
    add("threads and groups", many_threads, safe);
    add("threads and groups, which move by themselves too", many_threads, all);
    add("a thread that only reads", a_thread_that_reads, waits);
    add("two threads that sleep", two_threads_that_sleep, waits);
    add("threads with sets", threads_with_sets, safe);
    add("progress by itself", by_itself, automatic);
    add("progress is manual unless requested", by_hand, {});
    return program.run(argc, argv);
}
