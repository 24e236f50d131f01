// Tries every limit of descriptors, from a limit under which no endpoint can be opened to a plentiful one,
// with opening, a join and some operations of a few processes. An impossible step ends in bounded time with
// an error; hangs and crashes are failures.
//
// A process with an error ends, as programs do, and the remaining processes must detect this through the
// provider alone.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "arguments/arguments.h"
#include "config.h"
#include "support/launcher.h"
#include "support/member.h"

namespace {

using namespace mcastcoll::fabtest;

constexpr unsigned kMembers = 3;
// Time limits of a step and of all sweeps, which only a hang reaches, not a busy machine.
constexpr unsigned kHangsAfterS = 60;
constexpr unsigned kAllS = 700;
// This many successful limits in a row count as plenty: just above the minimum a process opens optional
// descriptors, and may lack necessary ones later.
const unsigned kPlenty = quick() ? 4 : 8;
// Below this limit hardly any step works; a single sweep tests this range.
constexpr unsigned kOpens = 16;
constexpr unsigned kMaxDescriptors = 400;
// Step between limits in quick runs.
constexpr unsigned kQuickStep = 3;
// Words of the board.
constexpr std::size_t kWorked = 0, kOpened = 1;

struct Sweep {
    const char* name;
    // The member under the limit; kMembers: every member.
    unsigned who;
    // The last member exits abruptly when the group exists; the others must detect this.
    bool one_dies = false;
    // The limit is relative to the descriptors open when the group exists, and applies from then on.
    bool late = false;
};

void limit_descriptors(rlim_t limit) {
    const rlimit few{limit, limit};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
}

// Number of the next descriptor to be opened.
rlim_t next_descriptor() {
    const int next = dup(STDERR_FILENO);
    CHECK(next >= 0);
    close(next);
    return static_cast<rlim_t>(next);
}

void work(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (unsigned root = 0; root < me.size(); ++root) {
        Buffer buffer(root == 0 ? 100'000 : 1000);
        buffer.poison();
        if (me.rank() == root) buffer.fill(root);
        me.finish(me.broadcast(*group, buffer.data(), buffer.size(), root));
        buffer.check(root, "a broadcast in a process with few descriptors");
    }
    std::uint64_t mine = me.rank() + 1, sum = 0;
    me.finish(me.allreduce(*group, &mine, &sum, 1, FI_UINT64, FI_SUM));
    CHECK(sum == kMembers * (kMembers + 1) / 2);
    me.finish(me.barrier(*group));
}

void outlive(Member& me, const Sweep& sweep, rlim_t spare) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    me.finish(me.barrier(*group));
    if (sweep.late) limit_descriptors(next_descriptor() + spare);
    if (me.rank() == kMembers - 1) {
        me.board().words[kWorked].fetch_add(1);
        std::_Exit(kExitFine);
    }
    Ticket& ticket = me.new_ticket();
    if (fi_barrier(me.ep(), group->address(), &ticket) != 0) return me.drop(ticket);
    me.settle(ticket);
    CHECK(ticket.error != 0);
}

int be_member(const Options& options, const Sweep& sweep, Board& board, unsigned rank, rlim_t limit) {
    if (!sweep.late && (sweep.who == kMembers || sweep.who == rank)) limit_descriptors(limit);
    const Clock::time_point begin = Clock::now();
    bool opened = false;
    try {
        Member me(options, board, rank, kMembers, {});
        opened = true;
        board.words[kOpened].fetch_add(1);
        sweep.one_dies ? outlive(me, sweep, limit) : work(me);
        board.words[kWorked].fetch_add(1);
        return kExitFine;
    } catch (const std::exception& problem) {
        const bool hung = Clock::now() - begin >= std::chrono::seconds(kHangsAfterS);
        if (hung || options.verbose)
            fmt::print("     {} descriptors, process {}: {}\n", limit, rank, problem.what());
        // Without an endpoint this process has no address, so the other processes cannot join with it: the
        // attempt ends.
        if (!opened) board.abandoned = true;
        return hung ? kExitFailed : kExitFine;
    }
}

// Returns true if everything worked under this limit.
bool try_limit(const Options& options, const Sweep& sweep, unsigned limit, std::string& outcome) {
    SharedBoard board;
    const Team team{.processes = kMembers, .timeout_s = 2 * kHangsAfterS, .victims = {}};
    const auto result =
        run_team(team, *board, [&](unsigned rank) { return be_member(options, sweep, *board, rank, limit); });
    if (result.kind != Outcome::Kind::fine) fail("{} descriptors, {}: {}", limit, sweep.name, result.reason);
    const std::uint64_t worked = board->words[kWorked], opened = board->words[kOpened];
    outcome = opened < kMembers   ? "not opened"
              : worked < kMembers ? fmt::format("{} of {} worked", worked, kMembers)
                                  : "worked";
    return worked == kMembers;
}

// Tries each limit from the first, or the smallest, to a plentiful one.
void sweep_limits(const Options& options, const Sweep& sweep, unsigned first, unsigned last) {
    const unsigned step = quick() ? kQuickStep : 1;
    unsigned tried = 0, failed = 0, in_a_row = 0;
    std::string outcome, before;
    for (unsigned limit = first; limit <= last && in_a_row < kPlenty; limit += step, ++tried) {
        const Clock::time_point begin = Clock::now();
        const bool worked = try_limit(options, sweep, limit, outcome);
        in_a_row = worked ? in_a_row + 1 : 0;
        failed += !worked;
        const auto took = std::chrono::duration<double>(Clock::now() - begin).count();
        if (options.verbose || outcome != before)
            fmt::print("     {}: {} descriptors: {} ({:.1f} s)\n", sweep.name, limit, outcome, took);
        std::fflush(stdout);
        before = outcome;
    }
    if (in_a_row == 0) fail("{}: {} descriptors are not enough", sweep.name, last);
    fmt::print("ok   {}: {} limits, an error under {} of them\n", sweep.name, tried, failed);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    options.wait_s = kHangsAfterS;
    unsigned first = 4, last = kMaxDescriptors;
    std::vector<std::string> only;
    mcastcoll::Arguments arguments("fi_mcc_shortage", "Every limit of descriptors, from too few to plenty",
                                   PACKAGE_VERSION);
    arguments.option("--first", first, "descriptors to begin with");
    arguments.option("--last", last, "descriptors to end with");
    arguments.option("--case", only, "run only the sweeps whose names contain this");
    arguments.option("--inner", options.inner, "provider under mcastcoll (FI_MCASTCOLL_INNER)");
    arguments.flag("-v,--verbose", options.verbose, "show every limit and what was refused");
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    setenv("FI_PROVIDER", "mcastcoll", 0);
    setenv("FI_MCASTCOLL_TOPOLOGY", "flat", 0);
    setenv("FI_MCASTCOLL_HOST_TIMEOUT", "1000", 0);
    setenv("FI_MCASTCOLL_JOIN_TIMEOUT", "2000", 0);
    setenv("FI_MCASTCOLL_EXPERIMENT", "linger=100", 0);
    if (!options.inner.empty()) setenv("FI_MCASTCOLL_INNER", options.inner.c_str(), 1);
    std::vector<Sweep> sweeps{{"few for all members", kMembers},
                              {"few for rank 0", 0},
                              {"few for the last", kMembers - 1},
                              {"few for all members, and one dies", kMembers, true},
                              {"few more when one dies", kMembers, true, true}};
    std::erase_if(sweeps, [&](const Sweep& sweep) {
        return !only.empty() && std::string(sweep.name).find(only.front()) == std::string::npos;
    });
    if (sweeps.empty()) {
        fmt::print("FAIL no sweep's name contains '{}'\n", only.front());
        return kExitFailed;
    }
    // The processes wait more than they compute.
    const Team team{.processes = static_cast<unsigned>(sweeps.size()), .timeout_s = kAllS, .victims = {}};
    SharedBoard board;
    const Outcome all = run_team(team, *board, [&](unsigned number) {
        const Sweep& sweep = sweeps[number];
        const unsigned from = sweep.who == kMembers && !sweep.one_dies ? first : std::max(first, kOpens);
        try {
            sweep_limits(options, sweep, sweep.late ? 0 : from, last);
        } catch (const std::exception& problem) {
            fmt::print("FAIL {}\n", problem.what());
            return kExitFailed;
        }
        return kExitFine;
    });
    if (all.kind == Outcome::Kind::fine) return kExitFine;
    fmt::print("FAIL {}\n", all.reason);
    return kExitFailed;
}
