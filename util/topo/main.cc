// mcastcoll-topo: places of processes, and the trees that result; of this host, of described groups, and of
// running jobs.
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdlib>

#include "arguments/arguments.h"
#include "job_command.h"
#include "provider/selection_file.h"
#include "topo.h"
#include "transport/socket_address.h"

namespace {

using namespace mcastcoll;
using namespace mcastcoll::topo;
using topology::Level;

struct Command {
    std::string topology, address, members;
    MadeUp made_up;
    bool job = false, selection = false;
    JobCommand of_job;  // also holds root, svg, json of the other modes
};

int show_group(const Command& command, const std::vector<topology::Place>& places,
               const topology::Policy& policy) {
    if (command.of_job.root >= places.size())
        return complain(
            fmt::format("--root {}: allowed are 0 to {}", command.of_job.root, places.size() - 1));
    const topology::Map map(places, policy);
    const topology::Tree tree(map, rank_of(command.of_job.root));
    const auto levels = topology::describe_levels(map);
    if (!write_svg(command.of_job.svg, map, tree))
        return complain(fmt::format("cannot write {}", command.of_job.svg), 1);
    if (command.of_job.json) {
        fmt::print("{}", group_as_json(map, tree, levels));
    } else {
        fmt::print("{} members, root {}\n\n{}\n{}", map.members(), command.of_job.root,
                   levels_as_text(map, levels), tree_as_text(map, tree));
    }
    return 0;
}

int show_host(const Command& command, const topology::Override& override) {
    transport::SocketAddress address;
    if (!command.address.empty()) {
        auto parsed = transport::SocketAddress::parse(command.address);
        if (!parsed) return complain(fmt::format("--address {}", parsed.error().message));
        address = parsed.value();
    }
    const topology::Discovery found = topology::discover(override, address.address_bytes());
    auto machine = topology::Machine::of_this_system();
    if (command.of_job.json) {
        fmt::print("{}", host_as_json(found, machine));
        return 0;
    }
    fmt::print("this process   {}\n", found.place.to_string());
    if (machine) {
        fmt::print("the machine   ");
        for (std::size_t i = topology::index_of(Level::package); i < topology::kLevels; ++i)
            fmt::print(" {},", topology::counted(topology::level_of(i),
                                                 machine.value().objects(topology::level_of(i)).size()));
        fmt::print(" {} usable processors, bound to {} of them\n", machine.value().allowed().size(),
                   machine.value().own().size());
    }
    for (const std::string& note : found.notes) fmt::print("unknown        {}\n", note);
    return 0;
}

int show_selection(const Command& command) {
    const char* variable = std::getenv("FI_MCASTCOLL_SELECTION");
    const std::string file = variable != nullptr ? variable : "";
    const auto rows = provider::read_selection(file);
    if (!rows) return complain(fmt::format("FI_MCASTCOLL_SELECTION: {}", rows.error().message));
    if (command.of_job.json)
        fmt::print("{}", selection_as_json(rows.value(), file));
    else
        fmt::print("{}", selection_as_text(rows.value(), file));
    return 0;
}

void add_options(Arguments& arguments, Command& command) {
    arguments.option("--topology", command.topology, "value or file to use instead of FI_MCASTCOLL_TOPOLOGY");
    arguments.option("--address", command.address, "address of this host that counts as the process's own");
    arguments.option("--members", command.members, "show the group that this file describes")
        .an_existing_file();
    arguments.option("--synthetic", command.made_up.machine,
                     "show a group on synthetic machines like \"package:2 l3:2 core:8 pu:2\" (hwloc)");
    arguments.option("--hosts", command.made_up.hosts,
                     "number of hosts, or SITE:HOSTS,...; with --job: names of hosts, or @FILE");
    arguments.option("--rsh", command.of_job.host_set.rsh,
                     "with --job and --hosts: command that starts a command line on a host");
    arguments.option("--wait", command.of_job.host_set.wait_s, "seconds to wait for hosts to start")
        .range(1, 3600);
    arguments.option("--join", command.of_job.host_set.join, "for processes that --hosts starts");
    arguments.option("--ranks", command.made_up.ranks, "ranks on each host; 0: one for each place to bind to")
        .range(0, 1 << 20);
    arguments.option("--bind", command.made_up.bind, "part of the machine that a rank is bound to")
        .one_of({"none", "package", "numa", "l3", "l2", "core"});
    arguments.option("--order", command.made_up.order, "order of the ranks: host by host, or in turn")
        .one_of({"block", "cyclic"});
    arguments.option("--root", command.of_job.root, "root of the tree");
    arguments.flag("--job", command.job,
                   "show the groups of this user's running processes, here or on --hosts");
    arguments.option("--pid", command.of_job.pid, "with --job: only groups of this process");
    arguments.option("--folder", command.of_job.folder, "with --job: folder of the processes' reports");
    arguments.flag("--watch", command.of_job.watch, "with --job: show the activity repeatedly");
    arguments.option("--every", command.of_job.every, "seconds between two samples of --watch")
        .range(0.5, 3600.0);
    arguments.option("--times", command.of_job.times, "number of samples of --watch, 0: until interrupted")
        .range(0, 1 << 30);
    arguments.option("--html", command.of_job.page, "with --watch: write trees and charts to this page");
    arguments.flag("--prometheus", command.of_job.metrics, "with --job: print all counters for Prometheus");
    arguments.flag("--selection", command.selection,
                   "print the table of algorithms (FI_MCASTCOLL_SELECTION, then the built-in rows)");
    arguments.flag("--json", command.of_job.json, "print one JSON object");
    arguments.option("--svg", command.of_job.svg, "write a drawing of the tree to this file");
    arguments.daily({"--job", "--watch", "--hosts", "--ranks", "--topology", "--members", "--synthetic",
                     "--bind", "--root", "--pid", "--html", "--prometheus", "--selection", "--json",
                     "--svg"});
}

int run(int argc, char** argv) {
    Arguments arguments(
        "mcastcoll-topo",
        "Shows where processes are, the resulting trees of collectives, and the activity of jobs.\n\n"
        "  mcastcoll-topo                        this host\n"
        "  mcastcoll-topo --job                  your jobs here: levels, trees, counters\n"
        "  mcastcoll-topo --job --watch          your jobs, repeatedly: rates, loss, repairs\n"
        "  mcastcoll-topo --hosts 8 --ranks 4    a group on synthetic hosts\n",
        MCC_VERSION);
    Command command;
    add_options(arguments, command);
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    if (!command.of_job.host_set.join.empty()) return serve_job(command.of_job);
    if (command.job && arguments.given("--hosts")) command.of_job.host_set.hosts = command.made_up.hosts;
    const bool made_up = arguments.given("--synthetic") || (arguments.given("--hosts") && !command.job) ||
                         arguments.given("--ranks");
    const bool described = arguments.given("--members");
    if (int{made_up} + int{described} + int{command.job} + int{command.selection} > 1)
        return complain(
            "--members, --job, --selection and --synthetic (with --hosts, --ranks) exclude each other");
    if (!command.job && (command.of_job.pid != 0 || !command.of_job.folder.empty()))
        return complain("--pid and --folder belong to --job");
    if (!command.job && (command.of_job.watch || command.of_job.metrics))
        return complain("--watch and --prometheus belong to --job");
    if (!command.of_job.watch &&
        (arguments.given("--every") || arguments.given("--times") || !command.of_job.page.empty()))
        return complain("--every, --times and --html belong to --watch");
    if (command.of_job.watch && (command.of_job.metrics || !command.of_job.svg.empty()))
        return complain("--prometheus and --svg show a single sample: give them without --watch");
    if (command.job) return run_job(command.of_job);
    if (command.selection) return show_selection(command);

    const char* variable = std::getenv("FI_MCASTCOLL_TOPOLOGY");
    const std::string words = arguments.given("--topology") ? command.topology
                              : variable != nullptr         ? variable
                                                            : "";
    auto override = topology::read_override(words);
    if (!override)
        return complain(fmt::format("{}: {}",
                                    arguments.given("--topology") ? "--topology" : "FI_MCASTCOLL_TOPOLOGY",
                                    override.error().message));
    if (!made_up && !described) {
        if (!command.of_job.svg.empty())
            return complain("--svg needs a group: --members, --synthetic or --job");
        return show_host(command, override.value());
    }
    std::string text;
    if (described) {
        const FileDescriptor file(::open(command.members.c_str(), O_RDONLY | O_CLOEXEC));
        auto read = topology::read_text(file, command.members, SIZE_MAX);
        if (!read) return complain(fmt::format("cannot read {}", command.members), 1);
        text = std::move(read).value();
    }
    auto places = described ? parse_members(text, command.members) : make_members(command.made_up);
    if (!places) return complain(places.error().message);
    return show_group(command, places.value(), override.value().policy());
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        return complain(error.what(), 1);
    }
}
