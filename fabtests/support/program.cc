#include "support/program.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "config.h"
#include "support/host.h"

namespace mcastcoll::fabtest {
namespace {

constexpr unsigned kLargeTimeoutFactor = 5;

struct Places {
    unsigned sites = 0, hosts = 0;  // hosts per site
};

bool read_places(const std::string& text, Places& places) {
    char rest = 0;
    return std::sscanf(text.c_str(), "%3ux%3u%c", &places.sites, &places.hosts, &rest) == 2 &&
           places.sites > 0 && places.hosts > 0;
}

std::string wrong_with_places(const std::string& text) {
    Places places;
    const bool fine = text == "flat" || text == "auto" || read_places(text, places);
    return fine ? std::string() : "'" + text + "' is neither flat nor auto nor like 2x3";
}

std::string topology_of(const std::string& text, unsigned member, unsigned members) {
    Places places;
    if (!read_places(text, places)) return text;
    const unsigned host = member * places.sites * places.hosts / members;
    return fmt::format("site=s{},host=h{}", host / places.hosts, host);
}

// The user's environment takes precedence over the case's; lists of experiments are joined.
void set_unless_given(const std::string& name, const std::string& value) {
    const char* const given = std::getenv(name.c_str());
    if (given != nullptr && name == "FI_MCASTCOLL_EXPERIMENT")
        setenv(name.c_str(), (value + ',' + given).c_str(), 1);
    else
        setenv(name.c_str(), value.c_str(), 0);
}

}  // namespace

Program::Program(std::string name, std::string description)
    : arguments_(std::move(name), std::move(description), PACKAGE_VERSION) {
    arguments_.option("-p,--provider", options_.provider, "libfabric provider to test");
    arguments_.option("--inner", options_.inner, "provider under mcastcoll (FI_MCASTCOLL_INNER)");
    arguments_.option("--fault", options_.fault,
                      "what happens to multicast datagrams (FI_MCASTCOLL_FAULT), like loss=5");
    arguments_
        .option("--places", options_.places,
                "where members are (FI_MCASTCOLL_TOPOLOGY): flat, each on a host of its own; auto, as they "
                "really are; or SxH, dealt to S sites of H hosts each")

        .check(wrong_with_places, "flat, auto or SxH");
    arguments_.option("--address", options_.address,
                      "the members' own address, several with commas to deal to them in turns, or empty");
    arguments_.option("--cluster", options_.cluster,
                      "members are on the hosts of this virtual cluster (VC), as many on each, places and "
                      "addresses as they find them there");
    arguments_
        .option("-n,--members", options_.members, "processes in the group")

        .range(2U, static_cast<unsigned>(kMaxProcesses) - 1);
    arguments_.option("--seed", options_.seed, "of contents and choices");
    arguments_.option("--timeout", options_.timeout_s, "seconds for one case");
    arguments_.option("--wait", options_.wait_s, "seconds for one operation");
    arguments_.option("--case", options_.only, "run only the cases whose names contain this");
    arguments_.flag("--large", options_.large, "also what takes gigabytes or minutes");
    arguments_.option("--operations", options_.operations,
                      "operations of the cases that repeat them at random; 0: as each likes");
    arguments_.flag("--list", options_.list, "name the cases");
    arguments_.flag("-v,--verbose", options_.verbose, "show libfabric's warnings");
}

bool Program::wanted(const Case& one) const {
    if (options_.only.empty()) return !one.only_large || options_.large;
    return std::any_of(options_.only.begin(), options_.only.end(),
                       [&](const std::string& text) { return one.name.find(text) != std::string::npos; });
}

void Program::take_places() {
    if (options_.cluster.empty()) return;
    hosts_ = hosts_of(options_.cluster);
    options_.places = "auto";
    options_.address.clear();
}

void Program::set_environment(const Case& one, unsigned index, unsigned members) const {
    if (hosts_ > 0) setenv("FI_MCASTCOLL_IFACE", "eth0", 0);
    for (const auto& [name, value] : one.environment) set_unless_given(name, value);
    if (options_.is_mcastcoll()) setenv("FI_PROVIDER", "mcastcoll", 0);
    if (!options_.inner.empty()) setenv("FI_MCASTCOLL_INNER", options_.inner.c_str(), 1);
    if (!options_.fault.empty()) setenv("FI_MCASTCOLL_FAULT", options_.fault.c_str(), 1);
    const std::string& places = one.places.empty() ? options_.places : one.places;
    setenv("FI_MCASTCOLL_TOPOLOGY", topology_of(places, index, members).c_str(), 0);
    if (options_.verbose) setenv("FI_LOG_LEVEL", "warn", 0);
}

int Program::be_process(const Case& one, Board& board, unsigned index, unsigned members) const {
    set_environment(one, index, members);
    try {
        if (hosts_ > 0) enter_host(options_.cluster, std::min(index * hosts_ / members, hosts_ - 1));
        if (index >= members) {
            one.outsider(board, options_);
        } else {
            Member me(options_, board, index, members, one.opening);
            one.body(me);
            me.stage("leaving");
        }
        return kExitFine;
    } catch (const Skipped& reason) {
        if (options_.is_mcastcoll()) {
            fmt::print(stderr, "     {}: process {}: mcastcoll may not skip this: {}\n", one.name, index,
                       reason.what());
            return kExitFailed;
        }
        if (index == 0) fmt::print(stderr, "     {}: {}\n", one.name, reason.what());
        return kExitSkipped;
    } catch (const std::exception& problem) {
        const char* stage = board.places[index].stage.load();
        fmt::print(stderr, "     {}: process {}{}{}: {}\n", one.name, index, stage ? ", " : "",
                   stage ? stage : "", problem.what());
        board.abandoned = true;
        return kExitFailed;
    }
}

Outcome Program::run_case(const Case& one) {
    if (one.only_mcastcoll && !options_.is_mcastcoll())
        return {Outcome::Kind::skipped, "only mcastcoll does this"};
    const unsigned members = one.members ? one.members : options_.members;
    Team team;
    team.processes = members + (one.outsider ? 1 : 0);
    team.timeout_s = one.timeout_s ? one.timeout_s : options_.timeout_s;
    if (options_.large) team.timeout_s *= kLargeTimeoutFactor;
    team.victims = one.victims;
    try {
        SharedBoard board;
        Outcome outcome =
            run_team(team, *board, [&](unsigned index) { return be_process(one, *board, index, members); });
        if (outcome.kind == Outcome::Kind::fine && one.after) one.after();
        return outcome;
    } catch (const std::exception& problem) {
        return {Outcome::Kind::failed, problem.what()};
    }
}

int Program::run(int argc, char** argv) {
    if (const auto ended = arguments_.parse(argc, argv)) return *ended;
    hide_kernel_symbols();
    try {
        take_places();
    } catch (const Failure& problem) {
        fmt::print(stderr, "{}\n", problem.what());
        return kExitFailed;
    }
    unsigned fine = 0, failed = 0, skipped = 0;
    for (const Case& one : cases_) {
        if (!wanted(one)) continue;
        if (options_.list) {
            fmt::print("{}\n", one.name);
            continue;
        }
        const Clock::time_point start = Clock::now();
        const Outcome outcome = run_case(one);
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        switch (outcome.kind) {
            case Outcome::Kind::fine:
                ++fine, fmt::print("ok   {} ({:.2f} s)\n", one.name, seconds);
                break;
            case Outcome::Kind::skipped:
                ++skipped, fmt::print("skip {} {}\n", one.name, outcome.reason);
                break;
            case Outcome::Kind::failed:
                ++failed, fmt::print("FAIL {} ({:.2f} s): {}\n", one.name, seconds, outcome.reason);
                break;
        }
        std::fflush(stdout);
    }
    if (options_.list) return kExitFine;
    if (fine + failed + skipped == 0) {
        fmt::print(stderr, "{}: no case has such a name\n", arguments_.program());
        return 2;
    }
    fmt::print("{}: {} passed, {} failed, {} skipped; --provider '{}' --members {} --seed {}\n",
               arguments_.program(), fine, failed, skipped, options_.provider, options_.members,
               options_.seed);
    if (failed > 0) return kExitFailed;
    return fine > 0 ? kExitFine : kExitSkipped;
}

}  // namespace mcastcoll::fabtest
