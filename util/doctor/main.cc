// mcastcoll-doctor: checks whether and how well mcastcoll will work on these hosts.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "arguments/arguments.h"
#include "examination.h"
#include "group_child.h"
#include "hostset/host_set.h"
#include "hostset/options.h"
#include "report.h"

namespace {

using namespace mcastcoll;
using namespace mcastcoll::doctor;

constexpr int kBadUsage = 3;
// Switches drop members after a bit more than two query intervals: --listen must allow that long.
constexpr unsigned kMaxListen_s = 3600, kMaxQueryInterval_s = 1775;

int complain(const std::string& what) {
    fmt::print(stderr, "mcastcoll-doctor: {}\n", what);
    return kBadUsage;
}

void add_options(Arguments& arguments, hostset::Options& host_set, Wanted& wanted, bool& no_group,
                 bool& json) {
    host_set.add_to(arguments);
    arguments
        .option("--listen", wanted.listen_s,
                "Seconds to wait for a querier; 300 shows whether a switch stops forwarding to groups")
        .range(0U, kMaxListen_s);
    arguments
        .option("--query-interval", wanted.query_interval_s,
                "Query interval in seconds that is set on the switch")
        .range(1U, kMaxQueryInterval_s);
    arguments.option("--share", wanted.share, "Percentage of the slowest link that the fastest test uses")
        .range(0.1, 100.0);
    arguments.flag("--no-group", no_group, "Form no group through libfabric");
    arguments.flag("--json", json, "Print one JSON object");
    arguments.daily({"--hosts", "--rsh", "--here", "--listen", "--no-group", "--json"});
}

int run(int argc, char** argv) {
    Arguments arguments("mcastcoll-doctor",
                        "Checks whether and how well mcastcoll will work on these hosts.\n\n"
                        "  mcastcoll-doctor --here                       this host alone\n"
                        "  mcastcoll-doctor --hosts node1,node2,node3    over ssh\n"
                        "  mpirun -N 1 mcastcoll-doctor                  on the hosts of a job\n"
                        "  srun -N 8 --mpi=pmix mcastcoll-doctor\n\n"
                        "Exit code: 0 no problem, 1 it works, but slower or with limits, 2 it will not work, "
                        "3 the check failed\n",
                        MCC_VERSION);
    hostset::Options options;
    Wanted wanted;
    bool no_group = false, json = false;
    add_options(arguments, options, wanted, no_group, json);
    if (const auto ended = arguments.parse(argc, argv)) return *ended == 0 ? 0 : kBadUsage;
    wanted.group = !no_group;
    const auto formed = hostset::HostSet::form("mcastcoll-doctor " MCC_VERSION, options);
    if (!formed) return complain(formed.error().message);
    auto seen = examine(wanted, *formed.value());
    if (!seen) return complain(seen.error().message);
    if (!formed.value()->is_head()) return 0;
    const Diagnosis diagnosis = judge(seen.value());
    const bool colour = ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
    fmt::print("{}", json ? as_json(diagnosis, seen.value()) : as_text(diagnosis, seen.value(), colour));
    return static_cast<int>(diagnosis.worst);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 2 && argv[1] == std::string_view("--group-process"))
            return run_group_process(STDIN_FILENO, STDOUT_FILENO);
        return run(argc, argv);
    } catch (const std::exception& error) {
        return complain(error.what());
    }
}
