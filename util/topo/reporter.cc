// Writes a report (topology/job_report.h) of a group of four on two hosts, like one rank of a job, until
// standard input ends. Each input line makes a new report, a hundred operations later.
//     reporter FOLDER RANK [fork]     with fork: a child exits first, and must not remove the report
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "topology/job_report.h"

using namespace mcastcoll;
using namespace mcastcoll::topology;

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    auto job = JobReport::open(0, {argv[1]});
    if (!job) {
        std::fprintf(stderr, "%s\n", job.error().message.c_str());
        return 1;
    }
    ReportedGroup group;
    group.key = 0x1234abcd;
    group.rank = rank_of(std::strtoul(argv[2], nullptr, 10));
    group.state = "ready";
    for (int i = 0; i < 4; ++i) {
        Place place;
        place.set_named(Level::host, i < 2 ? "left" : "right");
        place.set(Level::core, static_cast<std::uint64_t>(i % 2));
        group.places.push_back(place);
    }
    group.members = static_cast<std::uint32_t>(group.places.size());
    const Map map(group.places, group.policy);
    group.levels = describe_levels(map);
    group.levels[index_of(Level::segment)].transport = "messages";
    group.levels[index_of(Level::segment)].why = "no member receives the multicast";
    group.counters = {{"group_operations", 17}};
    Report report{{group}, {{"operations", 17}, {"lost", 0}}};
    for (int turn = 0; turn < 2; ++turn) {
        if (auto written = job.value().write(report); !written) {
            std::fprintf(stderr, "%s\n", written.error().message.c_str());
            return 1;
        }
    }
    if (argc > 3 && std::strcmp(argv[3], "fork") == 0) {
        const pid_t child = ::fork();
        if (child == 0) std::exit((job.value().~JobReport(), 0));
        ::waitpid(child, nullptr, 0);
    }
    std::printf("%s\n", job.value().path().c_str());
    std::fflush(stdout);
    for (int c = 0; (c = std::getchar()) != EOF;) {
        if (c != '\n') continue;
        report.groups[0].counters[0].second += 100;
        if (!job.value().write(report)) return 1;
    }
    return 0;
}
