// Rounds of faults: groups of processes on the hosts of a virtual cluster (util/cluster) work and check each
// received byte, and each round injects another fault, drawn from the round's seed. In every round no wait is
// unbounded, no error comes late, and afterwards the survivors join and work as before.
//
// Round i of --seed S has the seed S + i: "--seed S+i --rounds 1" repeats the fault on the same ranks and at
// the same operations; the microseconds depend on the machine.
#include "campaign.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "arguments/arguments.h"
#include "config.h"
#include "support/buffer.h"
#include "support/failure.h"
#include "support/host.h"
#include "support/launcher.h"

namespace mcastcoll::fabtest {
namespace {

constexpr std::array kNames{"kill",      "kill in a join", "stop", "stop in a join", "cable",  "receives not",
                            "sends not", "lossy",          "mtu",  "datagrams",      "memory", "descriptors",
                            "clocks"};

// A sequence of numbers drawn from one seed.
class Draw {
  public:
    explicit Draw(std::uint64_t seed) : seed_(seed) {}
    unsigned operator()(unsigned min, unsigned max) {
        return min + static_cast<unsigned>(mix(seed_, 0xfa17, ++count_) % (max - min + 1));
    }

  private:
    std::uint64_t seed_, count_ = 0;
};

void draw_amount(Round& round, Draw& next) {
    switch (round.fault) {
        case Fault::cable:
        case Fault::receives_not:
        case Fault::sends_not:
            // Well below the time after which a silent peer counts as dead.
            round.hold_ms = next(5, 1000);
            break;
        case Fault::lossy:
            round.amount = next(1, 10);
            break;
        case Fault::mtu:
            round.amount = next(1280, 1480);
            break;
        case Fault::memory:
            round.amount = next(0, 3) == 0 ? 0 : next(4, 4096) * 1024;
            break;
        case Fault::descriptors:
            round.amount = next(0, 40);
            break;
        default:
            break;
    }
}

}  // namespace

Round draw(std::uint64_t seed, unsigned hosts) {
    Draw next(seed);
    Round round;
    round.seed = seed;
    round.hosts = hosts;
    round.members = next(hosts, 2 * hosts);
    round.groups = next(1, 3);
    round.operations = next(20, 100);
    round.fault = static_cast<Fault>(next(0, static_cast<unsigned>(kNames.size()) - 1));
    round.victim = next(0, round.members - 1);
    round.group = next(1, round.groups);
    round.done = round.is_in_join() ? 0 : next(0, round.operations);
    // A join takes some milliseconds, and its first steps are short.
    round.after_us = round.is_in_join() ? next(0, 150) * next(0, 150) : next(0, 2000);
    round.hold_ms = next(5, 1500);
    draw_amount(round, next);
    constexpr std::array kPolicies{"auto", "pull", "push", "sync"};
    round.repair = kPolicies[next(0, kPolicies.size() - 1)];
    if (round.fault == Fault::datagrams)
        round.datagrams = fmt::format("loss={},duplicate={},corrupt={},delay={},seed={}", next(0, 20),
                                      next(0, 30), next(0, 10), next(1, 8), next(1, 1'000'000));
    else if (next(0, 2) == 0)
        round.datagrams = fmt::format("loss={},seed={}", next(1, 10), next(1, 1'000'000));
    return round;
}

std::string describe(const Round& round) {
    std::string text = fmt::format("{}, rank {} of {}, {} groups of {} operations, {}",
                                   kNames[static_cast<std::size_t>(round.fault)], round.victim, round.members,
                                   round.groups, round.operations, round.repair);
    if (round.is_in_join())
        text += fmt::format(", {} us into join {}", round.after_us, round.group);
    else if (round.comes_from_outside())
        text +=
            fmt::format(", in group {} {} us after operation {}", round.group, round.after_us, round.done);
    if (round.comes_from_outside() && !round.kills()) text += fmt::format(", for {} ms", round.hold_ms);
    if (round.amount != 0) text += fmt::format(", amount {}", round.amount);
    return round.datagrams.empty() ? text : text + ", " + round.datagrams;
}

std::uint64_t now_us() {
    using namespace std::chrono;
    return static_cast<std::uint64_t>(
        duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count());
}

namespace {

Outcome play(const Round& round, const Options& options, std::string& figures) {
    // The bounded parts of a round, in this order: joins, a failing operation, and the work after the
    // failure.
    const unsigned max_s = ((round.groups + 1) * kJoinTimeoutMs + kHostTimeoutMs + 5 * kBusyMs) / 1000;
    const Preparation preparation(round, options.cluster);
    SharedBoard board;
    Team team{.processes = round.members + 1, .timeout_s = max_s, .victims = {}};
    if (round.kills()) team.victims.push_back(round.victim);
    const Outcome outcome = run_team(team, *board, [&](unsigned index) {
        return index == round.members ? inject_fault(round, options.cluster, *board)
                                      : be_member(round, options, *board, index);
    });
    if (board->words[kErrors] != 0)
        figures = fmt::format("; {} errors{}", board->words[kErrors].load(),
                              round.kills() ? fmt::format(", the last {} ms after the death",
                                                          board->words[kErrorUs].load() / 1000)
                                            : std::string());
    return outcome;
}

bool is_one_of(const Round& round, const std::vector<std::string>& only) {
    const std::string name = kNames[static_cast<std::size_t>(round.fault)];
    return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& text) {
               return name.find(text) != std::string::npos;
           });
}

}  // namespace
}  // namespace mcastcoll::fabtest

int main(int argc, char** argv) {
    using namespace mcastcoll::fabtest;
    Options options;
    options.address.clear();
    unsigned rounds = 20, seconds = 0;
    std::vector<std::string> only;
    mcastcoll::Arguments arguments("fi_mcc_campaign", "Rounds of faults on the hosts of a virtual cluster",
                                   PACKAGE_VERSION);
    arguments.option("--cluster", options.cluster, "the virtual cluster (VC), which is up");
    arguments.option("--seed", options.seed, "of the first round; each further one has the next number");
    arguments.option("--rounds", rounds, "so many");
    arguments.option("--seconds", seconds, "begin no further round after so many; 0: all rounds");
    arguments.option("--fault", only, "only rounds of faults whose names contain this");
    arguments.option("--inner", options.inner, "provider under mcastcoll (FI_MCASTCOLL_INNER)");
    arguments.flag("-v,--verbose", options.verbose, "say what each round is before it begins");
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    hide_kernel_symbols();
    unsigned fine = 0, failed = 0, skipped = 0;
    const auto begin = now_us();
    for (unsigned i = 0; i < rounds && (seconds == 0 || now_us() - begin < seconds * 1'000'000ULL); ++i) {
        std::string figures, text;
        Outcome outcome;
        const auto start = now_us();
        try {
            const Round round = draw(options.seed + i, hosts_of(options.cluster));
            if (!is_one_of(round, only)) continue;
            text = fmt::format("seed {}: {}", round.seed, describe(round));
            if (options.verbose) fmt::print("     {}\n", text), std::fflush(stdout);
            outcome = play(round, options, figures);
        } catch (const std::exception& problem) {
            outcome = {Outcome::Kind::failed, problem.what()};
        }
        const double took = static_cast<double>(now_us() - start) / 1e6;
        if (outcome.kind == Outcome::Kind::fine)
            ++fine, fmt::print("ok   {}{} ({:.1f} s)\n", text, figures, took);
        else if (outcome.kind == Outcome::Kind::skipped)
            ++skipped, fmt::print("skip {}\n", text);
        else
            ++failed, fmt::print("FAIL {}{} ({:.1f} s): {}\n", text, figures, took, outcome.reason);
        std::fflush(stdout);
    }
    fmt::print("{} passed, {} failed, {} skipped\n", fine, failed, skipped);
    return failed > 0 ? kExitFailed : fine > 0 ? kExitFine : kExitSkipped;
}
