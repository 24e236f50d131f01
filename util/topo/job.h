// Running jobs, from what their processes report (topology/report.h).
#pragma once

#include "topology/report.h"

namespace mcastcoll::topo {

struct LoadedReport {
    std::uint64_t pid = 0;
    std::string host, program, path;
    topology::Report report;
    double written = 0;  // seconds since 1970
};

struct LoadedReports {
    std::vector<LoadedReport> reports;
    std::vector<std::string> complaints;  // files that are not to be understood
};

struct ReportFile {
    std::string path, text;
    double written = 0;  // seconds since 1970
};
struct ReadReports {
    std::vector<ReportFile> files;
    std::vector<std::string> complaints;
};
// Out of all folders that are given; removes what dead processes have left.
ReadReports read_reports(const std::vector<std::string>& folders);
LoadedReports parse_reports(const ReadReports& read);
LoadedReports load_reports(const std::vector<std::string>& folders);
// A report's text; whatever it holds, this returns.
Result<LoadedReport> parse_report(const std::string& text);

// A group, and those of its processes that report.
struct JobGroup {
    topology::ReportedGroup group;  // the word of the lowest rank that knows where all are
    std::string program;            // that it runs
    std::vector<Rank> reporting;
};
// Of which somebody here knows where all are.
std::vector<JobGroup> groups_of(const LoadedReports& loaded);
// Leaves this process's report and groups only.
void keep_only(std::uint64_t pid, LoadedReports& loaded, std::vector<JobGroup>& groups);

}  // namespace mcastcoll::topo
