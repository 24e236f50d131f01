// mcastcoll-topo: where processes are, and which trees that makes; of this host, of groups that are
// described, and of running jobs.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "arguments/arguments.h"
#include "base/new_file.h"
#include "provider/selection_file.h"
#include "topo.h"
#include "transport/socket_address.h"
#include "watch.h"

namespace {

using namespace mcastcoll;
using namespace mcastcoll::topo;
using topology::Level;

constexpr std::size_t kMostSamples = 3600;  // of a page's charts

struct Command {
    std::string topology, address, members, svg, folder;
    MadeUp made_up;
    unsigned root = 0;
    std::uint64_t pid = 0;
    bool json = false, job = false, selection = false;
    bool watch = false, metrics = false;
    double every = 1;
    unsigned times = 0;
    std::string page;
};

int complain(const std::string& what, int code = 2) {
    fmt::print(stderr, "mcastcoll-topo: {}\n", what);
    return code;
}

bool write_svg(const Command& command, const topology::Map& map, const topology::Tree& tree) {
    if (command.svg.empty()) return true;
    std::ofstream file(command.svg);
    file << as_svg(map, tree);
    file.close();
    return !file.fail();
}

int show_group(const Command& command, const std::vector<topology::Place>& places,
               const topology::Policy& policy) {
    if (command.root >= places.size())
        return complain(fmt::format("--root {}: allowed are 0 to {}", command.root, places.size() - 1));
    const topology::Map map(places, policy);
    const topology::Tree tree(map, rank_of(command.root));
    const auto levels = topology::describe_levels(map);
    if (!write_svg(command, map, tree)) return complain(fmt::format("cannot write {}", command.svg), 1);
    if (command.json) {
        fmt::print("{}", group_as_json(map, tree, levels));
    } else {
        fmt::print("{} members, root {}\n\n{}\n{}", map.members(), command.root, levels_as_text(map, levels),
                   tree_as_text(map, tree));
    }
    return 0;
}

int show_host(const Command& command, const topology::Override& override) {
    SocketAddress address;
    if (!command.address.empty()) {
        auto parsed = SocketAddress::parse(command.address);
        if (!parsed) return complain(fmt::format("--address {}", parsed.error().message));
        address = parsed.value();
    }
    const topology::Discovery found = topology::discover(override, address.address_bytes());
    auto machine = topology::Machine::of_this_system();
    if (command.json) {
        fmt::print("{}", host_as_json(found, machine));
        return 0;
    }
    fmt::print("this process   {}\n", found.place.to_string());
    if (machine) {
        fmt::print("the machine   ");
        for (std::size_t i = topology::index_of(Level::package); i < topology::kLevels; ++i)
            fmt::print(" {},", topology::counted(topology::level_of(i),
                                                 machine.value().objects(topology::level_of(i)).size()));
        fmt::print(" {} processors to use, bound to {} of them\n", machine.value().allowed().size(),
                   machine.value().own().size());
    }
    for (const std::string& note : found.notes) fmt::print("not known      {}\n", note);
    return 0;
}

int show_selection(const Command& command) {
    const char* variable = std::getenv("FI_MCASTCOLL_SELECTION");
    const std::string file = variable != nullptr ? variable : "";
    const auto rows = ofi::read_selection(file);
    if (!rows) return complain(fmt::format("FI_MCASTCOLL_SELECTION: {}", rows.error().message));
    if (command.json)
        fmt::print("{}", selection_as_json(rows.value(), file));
    else
        fmt::print("{}", selection_as_text(rows.value(), file));
    return 0;
}

std::vector<std::string> folders_of(const Command& command) {
    return command.folder.empty() ? topology::report_folders() : std::vector<std::string>{command.folder};
}

// Looks again and again at what the user's processes do, until it has been told so often or is interrupted.
int watch_job(const Command& command) {
    const auto folders = folders_of(command);
    const bool in_place = !command.json && ::isatty(STDOUT_FILENO) == 1;
    const auto start = std::chrono::steady_clock::now();
    std::vector<Sample> history;
    LoadedReports before;
    for (unsigned turn = 0; command.times == 0 || turn <= command.times; ++turn) {
        for (const std::string& folder : folders)
            if (const auto opened = topology::open_report_folder(folder, false))
                topology::ask_for_news(opened.value());
        if (turn > 0) std::this_thread::sleep_for(std::chrono::duration<double>(command.every));
        LoadedReports now = load_reports(folders);
        const double at = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        std::vector<JobGroup> groups = groups_of(now);
        if (command.pid != 0) keep_only(command.pid, now, groups);
        if (turn > 0) {
            history.push_back({at, compare(before, now)});
            if (history.size() > kMostSamples) history.erase(history.begin());
            if (in_place) fmt::print("\x1b[H\x1b[2J");
            if (command.json)
                fmt::print("{}", as_json_line(history.back()));
            else
                fmt::print("{:.0f} s, {} processes report here\n{}", at, now.reports.size(),
                           as_table(history.back().activities));
            std::fflush(stdout);
            if (!command.page.empty() &&
                !write_new_file(AT_FDCWD, command.page, as_page(groups, history, rank_of(command.root)),
                                0644))
                return complain(fmt::format("cannot write {}", command.page), 1);
        }
        before = std::move(now);
    }
    return 0;
}

int show_job(const Command& command) {
    const auto folders = folders_of(command);
    LoadedReports loaded = load_reports(folders);
    for (const std::string& what : loaded.complaints) complain(what);
    std::vector<JobGroup> groups = groups_of(loaded);
    if (command.pid != 0) keep_only(command.pid, loaded, groups);
    if (command.metrics) return fmt::print("{}", as_metrics(loaded)), 0;
    if (!command.json && loaded.reports.empty())
        fmt::print("no process of this user reports a group on this host ({})\n", fmt::join(folders, ", "));
    for (const JobGroup& job : groups) {
        const topology::Map map(job.group.places, job.group.policy);
        if (command.root >= map.members())
            return complain(fmt::format("--root {}: group {:016x} has ranks 0 to {}", command.root,
                                        job.group.key, map.members() - 1));
        const topology::Tree tree(map, rank_of(command.root));
        if (&job == &groups.front() && !write_svg(command, map, tree))
            return complain(fmt::format("cannot write {}", command.svg), 1);
        if (command.json) continue;
        fmt::print("group {:016x} of {}: {} members, {}; ranks {} report here\n\n{}\n{}\n", job.group.key,
                   job.program, map.members(), job.group.state, ranges(job.reporting),
                   levels_as_text(map, job.group.levels), tree_as_text(map, tree));
    }
    if (command.json) {
        fmt::print("{}", job_as_json(loaded, groups, rank_of(command.root)));
        return 0;
    }
    for (const LoadedReport& one : loaded.reports) {
        fmt::print("process {} {} on {}:", one.pid, one.program, one.host);
        for (const auto& [name, value] : one.report.counters)
            if (value != 0) fmt::print(" {}={}", name, value);
        fmt::print("\n");
    }
    return 0;
}

void add_options(Arguments& arguments, Command& command) {
    arguments.option("--topology", command.topology,
                     "what the user says, instead of FI_MCASTCOLL_TOPOLOGY: words or a file");
    arguments.option("--address", command.address, "of this host: look at it as the process's own");
    arguments.option("--members", command.members, "show the group that this file describes")
        .an_existing_file();
    arguments.option("--synthetic", command.made_up.machine,
                     "show a group on machines like \"package:2 l3:2 core:8 pu:2\" (hwloc)");
    arguments.option("--hosts", command.made_up.hosts, "how many of them, or SITE:HOSTS,SITE:HOSTS,...");
    arguments.option("--ranks", command.made_up.ranks, "on each host; 0: one for each place to bind to")
        .range(0, 1 << 20);
    arguments.option("--bind", command.made_up.bind, "what a rank is bound to")
        .one_of({"none", "package", "numa", "l3", "l2", "core"});
    arguments.option("--order", command.made_up.order, "of the ranks: a host after the other, or in turn")
        .one_of({"block", "cyclic"});
    arguments.option("--root", command.root, "of the tree");
    arguments.flag("--job", command.job, "show the groups of this user's running processes on this host");
    arguments.option("--pid", command.pid, "with --job: of this process only");
    arguments.option("--folder", command.folder, "with --job: where they report");
    arguments.flag("--watch", command.watch, "with --job: again and again, what they do meanwhile");
    arguments.option("--every", command.every, "seconds between two looks of --watch").range(0.5, 3600.0);
    arguments.option("--times", command.times, "looks of --watch, 0: until it is interrupted")
        .range(0, 1 << 30);
    arguments.option("--html", command.page, "with --watch: draw trees and charts into this page");
    arguments.flag("--prometheus", command.metrics, "with --job: print all counters for Prometheus");
    arguments.flag("--selection", command.selection,
                   "print the table of algorithms (FI_MCASTCOLL_SELECTION, then what is built in)");
    arguments.flag("--json", command.json, "print one JSON object");
    arguments.option("--svg", command.svg, "draw the tree into this file");
}

int run(int argc, char** argv) {
    Arguments arguments(
        "mcastcoll-topo",
        "Shows where processes are, which trees of collectives that makes, and what jobs do.\n\n"
        "  mcastcoll-topo                        this host\n"
        "  mcastcoll-topo --job                  your jobs here: levels, trees, counters\n"
        "  mcastcoll-topo --job --watch          the same again and again: rates, loss, repairs\n"
        "  mcastcoll-topo --hosts 8 --ranks 4    a group on hosts that are made up\n",
        MCC_VERSION);
    Command command;
    add_options(arguments, command);
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    const bool made_up =
        arguments.given("--synthetic") || arguments.given("--hosts") || arguments.given("--ranks");
    const bool described = arguments.given("--members");
    if (int{made_up} + int{described} + int{command.job} + int{command.selection} > 1)
        return complain(
            "--members, --job, --selection and --synthetic (with --hosts, --ranks) exclude each other");
    if (!command.job && (command.pid != 0 || !command.folder.empty()))
        return complain("--pid and --folder belong to --job");
    if (!command.job && (command.watch || command.metrics))
        return complain("--watch and --prometheus belong to --job");
    if (!command.watch && (arguments.given("--every") || arguments.given("--times") || !command.page.empty()))
        return complain("--every, --times and --html belong to --watch");
    if (command.watch && (command.metrics || !command.svg.empty()))
        return complain("--prometheus and --svg show one moment: give them without --watch");
    if (command.job) return command.watch ? watch_job(command) : show_job(command);
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
        if (!command.svg.empty()) return complain("--svg needs a group: --members, --synthetic or --job");
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
