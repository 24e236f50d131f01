// Tagged messages beside collectives, on the same endpoint: received in another order than sent, as in MPI
// programs with several tags, communicators or threads. A message without a posted receive must not block the
// messages behind it.
#include <rdma/fi_tagged.h>

#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <thread>
#include <vector>

#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;

constexpr std::size_t kThreads = 4;
constexpr std::uint64_t kRounds = 5, kPerRound = 6;

std::uint64_t contents(unsigned sender, std::uint64_t tag) {
    return mix(sender, tag);
}

// Every member sends messages to the successor at once, and receives the predecessor's messages from the last
// to the first; the sends complete when the last message has been received.
void exchange_reversed(Member& me, std::size_t count, std::size_t bytes) {
    const unsigned next = (me.rank() + 1) % me.size(), before = (me.rank() + me.size() - 1) % me.size();
    std::deque<Buffer> out, in;
    std::vector<Ticket*> sends;
    for (std::size_t i = 0; i < count; ++i) {
        out.emplace_back(bytes).fill(contents(me.rank(), i));
        sends.push_back(&me.start("fi_tsend", [&](Ticket* ticket) {
            return fi_tsend(me.ep(), out.back().data(), bytes, nullptr, me.address_of(next), i, ticket);
        }));
    }
    for (std::size_t i = count; i-- > 0;) {
        Buffer& buffer = in.emplace_back(bytes);
        buffer.poison();
        Ticket& ticket = me.start("fi_trecv", [&](Ticket* receive) {
            return fi_trecv(me.ep(), buffer.data(), bytes, nullptr, me.address_of(before), i, 0, receive);
        });
        me.settle(ticket);
        CHECK(ticket.error == 0);
        buffer.check(contents(before, i), "a tagged message");
    }
    for (Ticket* ticket : sends) {
        me.settle(*ticket);
        CHECK(ticket->error == 0);
    }
}

void reversed(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (const auto& [count, bytes] :
         {std::pair<std::size_t, std::size_t>{100, 8}, {100, 128}, {100, 1000}, {2, 20'000}, {4, 300'000}}) {
        exchange_reversed(me, count, bytes);
        me.finish(me.barrier(*group));
    }
    me.meet();
}

// A member waits for a collective after it has sent a message that is not received before the collective's
// end.
void before_a_collective(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const unsigned next = (me.rank() + 1) % me.size(), before = (me.rank() + me.size() - 1) % me.size();
    for (std::uint64_t tag = 0; tag < 10; ++tag) {
        Buffer out(5000), in(5000);
        out.fill(contents(me.rank(), tag));
        Ticket& sent = me.start("fi_tsend", [&](Ticket* ticket) {
            return fi_tsend(me.ep(), out.data(), out.size(), nullptr, me.address_of(next), tag, ticket);
        });
        me.finish(me.barrier(*group));
        Ticket& received = me.start("fi_trecv", [&](Ticket* ticket) {
            return fi_trecv(me.ep(), in.data(), in.size(), nullptr, me.address_of(before), tag, 0, ticket);
        });
        me.settle(received);
        in.check(contents(before, tag), "a tagged message");
        me.settle(sent);
        CHECK(sent.error == 0 && received.error == 0);
    }
    me.meet();
}

struct Note {
    fi_context2 space{};  // used by the provider; must be the first field
    std::atomic<bool> done{false};
};

// A thread with its own tags, beside other threads that read the same completion queue. Its receives are in
// reverse order.
class Talker {
  public:
    Talker(Member& me, std::uint64_t tag, std::atomic<bool>& stop) : me_(me), tag_(tag), stop_(stop) {}

    void run() {
        try {
            for (std::uint64_t round = 0; round < kRounds; ++round) exchange(tag_ + round * kPerRound);
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
    void exchange(std::uint64_t first) {
        const unsigned next = (me_.rank() + 1) % me_.size();
        const unsigned before = (me_.rank() + me_.size() - 1) % me_.size();
        std::deque<Buffer> out, in;
        std::array<Note, kPerRound> sent, received;
        for (std::uint64_t i = 0; i < kPerRound; ++i) {
            Buffer& buffer = out.emplace_back(bytes(first + i));
            buffer.fill(contents(me_.rank(), first + i));
            post([&] {
                return fi_tsend(me_.ep(), buffer.data(), buffer.size(), nullptr, me_.address_of(next),
                                first + i, &sent[i]);
            });
        }
        for (std::uint64_t i = kPerRound; i-- > 0;) {
            Buffer& buffer = in.emplace_back(bytes(first + i));
            buffer.poison();
            post([&] {
                return fi_trecv(me_.ep(), buffer.data(), buffer.size(), nullptr, me_.address_of(before),
                                first + i, 0, &received[i]);
            });
            while (!received[i].done) look_around();
            buffer.check(contents(before, first + i), "a thread's message");
        }
        for (const Note& note : sent)
            while (!note.done) look_around();
    }
    static std::size_t bytes(std::uint64_t tag) { return 1 + mix(tag) % 40'000; }

    template <typename Call>
    void post(Call call) {
        for (;;) {
            const ssize_t result = call();
            if (result == 0) return;
            if (result != -FI_EAGAIN) fail("a tagged message: {}", describe(result));
            look_around();
        }
    }

    void look_around() {
        std::array<fi_cq_tagged_entry, 4> entries{};
        const ssize_t got = fi_cq_read(me_.cq(), entries.data(), entries.size());
        if (got == -FI_EAGAIN) {
            if (stop_ || me_.board().abandoned) fail("gave up, because another thread or process failed");
            if (Clock::now() > deadline_) fail("a thread waited for {} s", me_.options().wait_s);
            return std::this_thread::yield();
        }
        if (got < 0) fail("fi_cq_read returned {}", describe(got));
        deadline_ = Clock::now() + std::chrono::seconds(me_.options().wait_s);
        for (ssize_t i = 0; i < got; ++i)
            static_cast<Note*>(entries[static_cast<std::size_t>(i)].op_context)->done = true;
    }

    Member& me_;
    const std::uint64_t tag_;
    std::atomic<bool>& stop_;
    Clock::time_point deadline_ = Clock::now() + std::chrono::seconds(me_.options().wait_s);
    std::exception_ptr problem_;
};

void threads_with_tags(Member& me) {
    std::atomic<bool> stop = false;
    std::deque<Talker> talkers;
    for (std::size_t i = 0; i < kThreads; ++i) talkers.emplace_back(me, 1000 * (i + 1), stop);
    std::vector<std::thread> threads;
    for (Talker& talker : talkers) threads.emplace_back([&talker] { talker.run(); });
    for (std::thread& thread : threads) thread.join();
    for (const Talker& talker : talkers) talker.rethrow();
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_tagged", "Tagged messages beside collectives, received in any order");
    Opening tagged{};
    tagged.more_caps = FI_TAGGED;
    Opening safe = tagged, by_queue = tagged;
    safe.threading = FI_THREAD_SAFE;
    by_queue.threading = FI_THREAD_COMPLETION;  // different domains in libfabric 2.x's tcp
    // libfabric 2.x's tcp saves 64 unexpected messages of a peer, and then waits for the receive of the next.
    program.add({.name = "in the reverse order",
                 .body = reversed,
                 .opening = tagged,
                 .environment = {{"FI_TCP_MAX_SAVED", "100"}}});
    program.add({.name = "before a collective", .body = before_a_collective, .opening = tagged});
    program.add(
        {.name = "the same, a thread for each queue", .body = before_a_collective, .opening = by_queue});
    program.add({.name = "threads with tags", .body = threads_with_tags, .opening = safe});
    return program.run(argc, argv);
}
