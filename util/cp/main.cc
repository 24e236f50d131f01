// mcastcoll-cp: copies files and trees from one host to the disks of many; each byte is read once and sent
// once.
#include <fmt/format.h>
#include <signal.h>

#include "arguments/arguments.h"
#include "cp/copy.h"

namespace {

using namespace mcastcoll;

int complain(const std::string& what) {
    // The reader of standard error may have ended with the head.
    (void)attempt([&] { fmt::print(stderr, "{}: {}\n", cp::kProgram, what); });
    return 2;
}

constexpr const char* kDescription =
    "Copies files and trees to the same place on many hosts: each byte is read once and multicast once.\n\n"
    "  mpirun -N 1 mcastcoll-cp model.bin /scratch/          from rank 0's host to the hosts of a job\n"
    "  mcastcoll-cp --hosts n1,n2,n3 data model.bin /scratch/   over ssh\n"
    "  mcastcoll-cp --hosts @hosts.txt --json tree /nfs/%h/\n\n"
    "An interrupted copy is resumed, and hosts that fail are left out. "
    "Status: 0 all hosts have all files,\n"
    "1 some hosts do not (they are named), 2 no host has them, or the command line is wrong.";

int run(int argc, char** argv) {
    Arguments arguments(cp::kProgram, kDescription, MCC_VERSION);
    cp::Settings settings;
    hostset::Options options;
    std::vector<std::string> paths;
    arguments.option("paths", paths, "SOURCE... TARGET; in TARGET %h is the host's name");
    options.add_to(arguments);
    arguments.flag("-q,--quiet", settings.quiet, "Print errors only");
    arguments.flag("--json", settings.json, "Print a summary as a JSON object, and no progress");
    arguments.daily({"--hosts", "--rsh", "--here", "--quiet", "--json"});
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    if (options.join.empty()) {
        if (paths.size() < 2) return complain("give at least one source and a target; see --help");
        settings.target = paths.back();
        settings.sources.assign(paths.begin(), paths.end() - 1);
    }
    ::signal(SIGPIPE, SIG_IGN);
    auto host_set = hostset::HostSet::form(fmt::format("{} {}", cp::kProgram, MCC_VERSION), options);
    if (!host_set) return complain(host_set.error().message);
    return cp::Copy(*host_set.value(), settings).run();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        return complain(error.what());
    }
}
