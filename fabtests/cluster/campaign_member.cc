// A member in a round of faults: joins groups, works in them, checks every byte, and limits every wait. After
// the fault the survivors join once more, and then no operation may fail.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "campaign.h"
#include "support/failure.h"
#include "support/host.h"
#include "support/launcher.h"
#include "support/member.h"

namespace mcastcoll::fabtest {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kJoinEnds{kJoinTimeoutMs + kBusyMs}, kOperationEnds{kHostTimeoutMs + kBusyMs};
constexpr unsigned kLastOperations = 8;

// Gives this process the clock of its host. The hosts' clocks differ by hours, like those of machines started
// at different times; members on one host share a clock.
void enter_clock(unsigned host) {
    const auto must = [](const char* what, bool done) {
        if (!done) fail("no clock of its own: {}", what);
    };
    must("unshare", unshare(CLONE_NEWTIME) == 0);
    std::ofstream("/proc/self/timens_offsets")
        << "monotonic " << host * 10'007 << " 0\nboottime " << host * 10'007 << " 0\n";
    const int space = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    must("time_for_children", space >= 0);
    must("setns", setns(space, CLONE_NEWTIME) == 0);
    close(space);
}

void set_environment(const Round& round, const Options& options) {
    const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
    set("FI_PROVIDER", "mcastcoll");
    set("FI_MCASTCOLL_TOPOLOGY", "auto");
    set("FI_MCASTCOLL_IFACE", "eth0");
    set("FI_MCASTCOLL_HOST_TIMEOUT", std::to_string(kHostTimeoutMs));
    set("FI_MCASTCOLL_JOIN_TIMEOUT", std::to_string(kJoinTimeoutMs));
    set("FI_MCASTCOLL_EXPERIMENT", "linger=500,repair=" + round.repair);
    if (!options.inner.empty()) set("FI_MCASTCOLL_INNER", options.inner);
    if (!round.datagrams.empty()) set("FI_MCASTCOLL_FAULT", round.datagrams);
}

// Limits the process to this many more descriptors than it has open.
void limit_descriptors(unsigned spare) {
    const int next = dup(STDERR_FILENO);
    CHECK(next >= 0);
    close(next);
    rlimit limit{};
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = static_cast<rlim_t>(next) + spare;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

void raise(std::atomic<std::uint64_t>& word, std::uint64_t value) {
    for (std::uint64_t seen = word; seen < value && !word.compare_exchange_weak(seen, value);) {
    }
}

class Worker {
  public:
    Worker(const Round& round, Member& me) : round_(round), me_(me), board_(me.board()) {}

    void work();
    void work_again();

  private:
    // Returns false if the operation ended with an error that the round allows.
    bool join(const fid_av_set* set, bool may_fail);
    bool operate(unsigned group, unsigned number, const std::vector<unsigned>& ranks, bool may_fail);
    bool ends(const char* what, const std::function<ssize_t(Ticket*)>& call, bool may_fail);
    bool refused(const char* what, int error, bool may_fail);
    bool broadcast(std::uint64_t seed, const std::vector<unsigned>& ranks, bool may_fail);
    bool allreduce(std::uint64_t seed, const std::vector<unsigned>& ranks, bool may_fail);
    bool allgather(std::uint64_t seed, const std::vector<unsigned>& ranks, bool may_fail);

    const Round& round_;
    Member& me_;
    Board& board_;
    // Closed groups are kept, because their events may still arrive.
    std::vector<std::unique_ptr<Join>> groups_;
};

bool Worker::refused(const char* what, int error, bool may_fail) {
    if (!may_fail) fail("{} ended with {}", what, describe(-error));
    board_.words[kErrors].fetch_add(1);
    if (const std::uint64_t died = board_.words[kDiedAtUs]; died != 0)
        raise(board_.words[kErrorUs], now_us() - died);
    return false;
}

bool Worker::join(const fid_av_set* set, bool may_fail) {
    me_.stage("in a join");
    std::unique_ptr<Join> joining;
    try {
        joining = me_.start_join(set);
    } catch (const Failure&) {
        if (!may_fail) throw;
        return refused("a join", FI_EMFILE, may_fail);
    }
    board_.words[kJoins + me_.rank()].fetch_add(1);
    if (!me_.wait_until(kJoinEnds, [&] { return joining->done; }))
        fail("a join did not end within {} ms", kJoinEnds.count());
    const int error = joining->error;
    groups_.push_back(std::move(joining));
    return error == 0 || refused("a join", error, may_fail);
}

bool Worker::ends(const char* what, const std::function<ssize_t(Ticket*)>& call, bool may_fail) {
    Ticket& ticket = me_.new_ticket();
    ssize_t result = -FI_EAGAIN;
    const bool taken = me_.wait_until(kOperationEnds, [&] {
        result = call(&ticket);
        return result != -FI_EAGAIN;
    });
    if (!taken) fail("{} was refused with -FI_EAGAIN for {} ms", what, kOperationEnds.count());
    if (result != 0) {
        me_.drop(ticket);
        return refused(what, static_cast<int>(-result), may_fail);
    }
    if (!me_.settle(ticket, kOperationEnds))
        fail("{} did not end within {} ms", what, kOperationEnds.count());
    return ticket.error == 0 || refused(what, ticket.error, may_fail);
}

bool Worker::broadcast(std::uint64_t seed, const std::vector<unsigned>& ranks, bool may_fail) {
    const std::size_t root = mix(seed, 5) % ranks.size();             // index in the group
    const unsigned width = static_cast<unsigned>(mix(seed, 1) % 19);  // up to 512 KiB
    Buffer buffer(1 + mix(seed, 2) % (1ULL << width));
    buffer.poison();
    if (me_.rank() == ranks[root]) buffer.fill(seed);
    const auto call = [&](Ticket* ticket) {
        return fi_broadcast(me_.ep(), buffer.data(), buffer.size(), nullptr, groups_.back()->address(), root,
                            FI_UINT8, 0, ticket);
    };
    if (!ends("a broadcast", call, may_fail)) return false;
    buffer.check(seed, "a broadcast");
    return true;
}

bool Worker::allreduce(std::uint64_t seed, const std::vector<unsigned>& ranks, bool may_fail) {
    std::vector<std::uint64_t> mine(1 + mix(seed, 3) % 3000), sums(mine.size(), 0);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = mix(seed, me_.rank(), i);
    const auto call = [&](Ticket* ticket) {
        return fi_allreduce(me_.ep(), mine.data(), mine.size(), nullptr, sums.data(), nullptr,
                            groups_.back()->address(), FI_UINT64, FI_SUM, 0, ticket);
    };
    if (!ends("an allreduce", call, may_fail)) return false;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        std::uint64_t sum = 0;
        for (const unsigned rank : ranks) sum += mix(seed, rank, i);
        if (sums[i] != sum) fail("an allreduce: sum {} of {} is wrong", i, sums.size());
    }
    return true;
}

bool Worker::allgather(std::uint64_t seed, const std::vector<unsigned>& ranks, bool may_fail) {
    std::vector<std::uint64_t> mine(1 + mix(seed, 4) % 1000), all(mine.size() * ranks.size(), 0);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = mix(seed, me_.rank(), i);
    const auto call = [&](Ticket* ticket) {
        return fi_allgather(me_.ep(), mine.data(), mine.size(), nullptr, all.data(), nullptr,
                            groups_.back()->address(), FI_UINT64, 0, ticket);
    };
    if (!ends("an allgather", call, may_fail)) return false;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] != mix(seed, ranks[i / mine.size()], i % mine.size()))
            fail("an allgather: element {} of {} is wrong", i, all.size());
    return true;
}

bool Worker::operate(unsigned group, unsigned number, const std::vector<unsigned>& ranks, bool may_fail) {
    me_.stage("in an operation");
    const std::uint64_t seed = mix(round_.seed, group, number);
    switch (seed % 6) {
        case 0:
            return allreduce(seed, ranks, may_fail);
        case 1:
            return allgather(seed, ranks, may_fail);
        case 2: {
            const auto barrier = [&](Ticket* ticket) {
                return fi_barrier(me_.ep(), groups_.back()->address(), ticket);
            };
            return ends("a barrier", barrier, may_fail);
        }
        default:
            return broadcast(seed, ranks, may_fail);
    }
}

std::vector<unsigned> up_to(unsigned count, unsigned without) {
    std::vector<unsigned> ranks;
    for (unsigned rank = 0; rank < count; ++rank)
        if (rank != without) ranks.push_back(rank);
    return ranks;
}

// Runs the operations of a round. After an error a member stops using its groups, as programs do; the
// remaining members detect this only through the provider, or by a join that does not complete.
void Worker::work() {
    const auto ranks = up_to(round_.members, round_.members);
    const bool may_fail = round_.may_fail();
    const bool few = round_.fault == Fault::descriptors && me_.rank() == round_.victim;
    for (unsigned group = 1; group <= round_.groups; ++group) {
        const auto set = me_.all_members();
        if (few && group == round_.group && round_.done % 2 == 0) limit_descriptors(round_.amount);
        if (!join(set.get(), may_fail)) return;
        if (few && group == round_.group && round_.done % 2 == 1) limit_descriptors(round_.amount);
        for (unsigned number = 0; number < round_.operations; ++number) {
            if (!operate(group, number, ranks, may_fail)) return;
            board_.words[kDone + me_.rank()].fetch_add(1);
        }
        if (group % 2 == 1) groups_.back()->mc.reset();  // the other groups stay open until the end
    }
}

void Worker::work_again() {
    me_.stage("waiting for the end of the fault");
    CHECK(me_.wait_until(milliseconds((round_.groups + 1) * kJoinTimeoutMs + 2 * kBusyMs),
                         [&] { return board_.words[kLifted] != 0; }));
    for (const auto& group : groups_) group->mc.reset();
    me_.stage("waiting for the living");
    me_.meet(round_.living());
    const auto ranks = up_to(round_.members, round_.loses_victim() ? round_.victim : round_.members);
    const auto set = me_.set_of(ranks);
    if (!join(set.get(), false)) return;
    for (unsigned number = 0; number < kLastOperations; ++number) operate(0, number, ranks, false);
    me_.stage("leaving");
    me_.meet(round_.living());
}

}  // namespace

int be_member(const Round& round, const Options& options, Board& board, unsigned rank) {
    set_environment(round, options);
    try {
        enter_host(options.cluster, round.host_of(rank));
        if (round.fault == Fault::clocks) enter_clock(round.host_of(rank));
        Member me(options, board, rank, round.members, {});
        Worker worker(round, me);
        worker.work();
        if (round.kills() && rank == round.victim)
            for (;;) me.idle(milliseconds(10));  // the member will be killed here
        if (!round.loses_victim() || rank != round.victim) worker.work_again();
        return kExitFine;
    } catch (const std::exception& problem) {
        const char* stage = board.places[rank].stage.load();
        fmt::print(stderr, "     process {}, {}: {}\n", rank, stage != nullptr ? stage : "", problem.what());
        board.abandoned = true;
        return kExitFailed;
    }
}

}  // namespace mcastcoll::fabtest
