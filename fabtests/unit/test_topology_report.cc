// Reports of running processes, and how a reader handles damaged ones.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "topo/job.h"
#include "topology/job_report.h"
#include "topology_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::topology;

namespace {

// A folder removed with this object.
struct Folder {
    char path[40] = "/tmp/mcastcoll-report-XXXXXX";
    Folder() { cr_assert(::mkdtemp(path) != nullptr); }
    ~Folder() { ::rmdir(path); }
};

Report example() {
    ReportedGroup group;
    group.key = 0xfedcba9876543210;
    group.rank = rank_of(1);
    group.state = "failed: \"why\" \xff";
    group.places = test::grid({.sites = 2, .hosts = 2, .packages = 1, .cores = 2});
    group.members = static_cast<std::uint32_t>(group.places.size());
    group.policy.off.add(Level::numa);
    group.levels = describe_levels(Map(group.places, group.policy));
    group.counters = {{"received", 2}};
    group.awaited = rank_of(5);
    return {{group}, {{"sent", 3}}};
}

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Test(topology_report, is_read_as_it_was_written) {
    const Folder folder;
    const Report report = example();
    std::string path;
    {
        auto job = JobReport::open(0, {folder.path});
        cr_assert(job.ok());
        path = job.value().path();
        cr_assert_neq(::access(path.c_str(), F_OK), 0, "nothing is there before the first report");
        cr_assert(job.value().write(Report{}).ok());
        cr_assert(job.value().write(report).ok());
        auto other_part = JobReport::open(1, {folder.path});
        cr_assert(other_part.ok() && other_part.value().write(report).ok());

        const topo::LoadedReports loaded = topo::load_reports({folder.path, "/no/such/folder"});
        cr_assert(loaded.complaints.empty());
        cr_assert_eq(loaded.reports.size(), 2);
        const ReportedGroup& read = loaded.reports[0].report.groups.at(0);
        const ReportedGroup& wrote = report.groups[0];
        cr_assert_eq(loaded.reports[0].pid, static_cast<std::uint64_t>(::getpid()));
        cr_assert(read.key == wrote.key && read.rank == wrote.rank && read.policy == wrote.policy);
        cr_assert(read.places == wrote.places && read.counters == wrote.counters);
        cr_assert(read.awaited == wrote.awaited);
        cr_assert_eq(read.levels.size(), kLevels);
        for (std::size_t i = 0; i < kLevels; ++i) {
            cr_assert_eq(read.levels[i].why, wrote.levels[i].why);
            cr_assert_eq(read.levels[i].transport, wrote.levels[i].transport);
        }
        cr_assert(loaded.reports[0].report.counters == report.counters);
        const auto groups = topo::groups_of(loaded);
        cr_assert_eq(groups.size(), 1);
    }
    cr_assert_neq(::access(path.c_str(), F_OK), 0, "it goes with its writer");
}

Test(topology_report, writers_detect_a_watcher) {
    const Folder folder;
    auto job = JobReport::open(0, {folder.path});
    const auto opened = open_report_folder(folder.path, false);
    cr_assert(job.ok() && opened.ok() && !job.value().is_watched());
    request_report(opened.value());
    cr_assert(job.value().is_watched());
    const std::string flag = std::string(folder.path) + "/watched";
    const timespec long_ago[2] = {{1'000'000, 0}, {1'000'000, 0}};
    cr_assert(::utimensat(AT_FDCWD, flag.c_str(), long_ago, 0) == 0 && !job.value().is_watched());
    ::unlink(flag.c_str());
}

// Only leaders of hosts report the places of every member; reports of the rest show only who is present.
Test(topology_report, a_group_is_shown_by_a_member_that_knows_all_places) {
    Report member = example(), leader = example();
    member.groups[0].rank = rank_of(0);
    member.groups[0].places.clear();
    leader.groups[0].rank = rank_of(2);
    Report unknown = member;
    unknown.groups[0].key = 7;
    topo::LoadedReports loaded;
    for (const Report& report : {member, leader, unknown})
        loaded.reports.push_back({loaded.reports.size() + 1, "host", "program", "", report});
    auto groups = topo::groups_of(loaded);
    cr_assert_eq(groups.size(), 1, "the places of the other group's members are unknown");
    cr_assert(groups[0].group.rank == rank_of(2) && groups[0].group.places == leader.groups[0].places);
    cr_assert(groups[0].reporting == std::vector<Rank>({rank_of(0), rank_of(2)}));
    topo::keep_only(1, loaded, groups);
    cr_assert(loaded.reports.size() == 1 && groups.size() == 1 && !groups[0].group.places.empty());
    cr_assert(groups[0].reporting == std::vector<Rank>({rank_of(0)}));
    topo::keep_only(3, loaded, groups);
    cr_assert(loaded.reports.empty() && groups.empty());
}

Test(topology_report, spoilt_ones_are_refused) {
    const Folder folder;
    auto job = JobReport::open(0, {folder.path});
    cr_assert(job.ok() && job.value().write(example()).ok());
    const std::string good = text_of(job.value().path());
    cr_assert(topo::parse_report(good).ok());
    std::mt19937 random(3);
    unsigned refused = 0;
    for (int turn = 0; turn < 3000; ++turn) {
        std::string bad = good;
        for (auto hits = random() % 4 + 1; hits > 0; --hits)
            bad[random() % bad.size()] = static_cast<char>(random());
        if (turn % 3 == 0) bad.resize(random() % bad.size());
        refused += topo::parse_report(bad).ok() ? 0 : 1;
    }
    cr_assert_gt(refused, 1000);
    for (const char* text : {"", "{}", "[]", "3", "{\"version\":1}", "{\"version\":3,\"pid\":-1}"})
        cr_assert_not(topo::parse_report(text).ok(), "%s", text);
    // Numbers that are valid JSON but invalid in a report.
    for (const char* number : {"1", "1e300", "-1e300", "2.5", "-1", "18446744073709551616", "\"1\""}) {
        const bool fits = std::string(number) == "1";
        const std::string
            pid = R"({"version":3,"host":"h","program":"p","groups":[],"counters":{},"pid":)",
            counter = R"({"version":3,"host":"h","program":"p","groups":[],"pid":1,"counters":{"sent":)";
        cr_assert_eq(topo::parse_report(pid + number + "}").ok(), fits, "%s", number);
        cr_assert_eq(topo::parse_report(counter + number + "}}").ok(), fits, "%s", number);
    }
}

Test(topology_report, dead_processes_leave_nothing_behind) {
    const Folder folder;
    const pid_t child = ::fork();
    if (child == 0) {
        auto job = JobReport::open(0, {folder.path});
        if (job && job.value().write(example())) ::kill(::getpid(), SIGKILL);
        ::_exit(1);
    }
    int status = 0;
    cr_assert_eq(::waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status));
    // Reports with this process's number, but another start time; with another pid namespace; and of no
    // process.
    struct stat own = {};
    cr_assert_eq(::stat("/proc/self/ns/pid", &own), 0);
    const auto self = static_cast<std::uint64_t>(::getpid());
    const std::string reused = to_string(ReportName{self, 1, own.st_ino, 0, false});
    const std::string elsewhere = to_string(ReportName{4000000, 1, own.st_ino + 1, 0, true});
    for (const std::string& name : {reused, elsewhere, std::string("notes.json")})
        std::ofstream(std::string(folder.path) + '/' + name) << "{}";
    auto opened = open_report_folder(folder.path, false);
    cr_assert(opened.ok());
    cr_assert(list_reports(opened.value()) == std::vector{elsewhere});
    for (const std::string& name : {elsewhere, std::string("notes.json")})
        cr_assert_eq(::unlinkat(opened.value().get(), name.c_str(), 0), 0, "%s is left alone", name.c_str());
    cr_assert(std::filesystem::is_empty(folder.path), "those of the dead are gone");
}

Test(topology_report, folders_of_others_are_left_alone) {
    const Folder folder;
    cr_assert_eq(::chmod(folder.path, 0755), 0);
    const auto open = JobReport::open(0, {folder.path});
    cr_assert(!open.ok() && open.error().code == EPERM);
    const std::string link = std::string(folder.path) + ".link";
    cr_assert_eq(::chmod(folder.path, 0700), 0);
    cr_assert_eq(::symlink(folder.path, link.c_str()), 0);
    cr_assert_not(JobReport::open(0, {link}).ok(), "a link may lead anywhere");
    ::unlink(link.c_str());
}

// A link at the path of a report is never written to.
Test(topology_report, links_are_not_followed) {
    const Folder folder;
    const Folder elsewhere;
    const std::string precious = std::string(elsewhere.path) + "/precious";
    std::ofstream(precious) << "precious";
    {
        auto job = JobReport::open(0, {folder.path});
        cr_assert(job.ok());
        const std::string path = job.value().path();
        for (const std::string& name : {path, path + ".new"})
            cr_assert_eq(::link(precious.c_str(), name.c_str()), 0);
        cr_assert(job.value().write(example()).ok());
        cr_assert_eq(text_of(precious), "precious");
        cr_assert_neq(text_of(path), "precious");
        for (const std::string& name : {path, path + ".new"}) {
            ::unlink(name.c_str());
            cr_assert_eq(::symlink(precious.c_str(), name.c_str()), 0);
        }
        cr_assert(job.value().write(example()).ok());
        cr_assert_eq(text_of(precious), "precious");
        cr_assert_neq(text_of(path), "precious");
    }
    ::unlink(precious.c_str());
}

Test(topology_report, names_are_read_back) {
    const ReportName name{17, 99, 4026531836, 3, true};
    cr_assert_eq(to_string(name), "17.99.4026531836.3.json");
    const auto back = parse_report_name(to_string(name));
    cr_assert(back && back->pid == 17 && back->start_time == 99 && back->part == 3 && back->complete);
    cr_assert_not(parse_report_name("17.99.4.3.json.new")->complete);
    for (const char* text :
         {"", ".json", "17.json", "17.1.2.json", "17.1.2.3.4.json", "0.1.2.3.json", "-1.1.2.3.json",
          "17.1.2.3.jsonx", "a.1.2.3.json", "4294967296.1.2.3.json", "17..2.3.json"})
        cr_assert_not(parse_report_name(text), "%s", text);
}
