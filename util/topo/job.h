// Running jobs, from what their processes report (topology/report.h).
#pragma once

#include "topology/report.h"

namespace mcastcoll::topo {

struct LoadedReport {
    std::uint64_t pid = 0;
    std::string host, program, path;
    topology::Report report;
};

struct LoadedReports {
    std::vector<LoadedReport> reports;
    std::vector<std::string> complaints;  // files that are not to be understood
};

// Out of all folders that are given; removes what dead processes have left.
LoadedReports load_reports(const std::vector<std::string>& folders);
// A report's text; whatever it holds, this returns.
Result<LoadedReport> parse_report(const std::string& text);

// A group, and those of its processes that report.
struct JobGroup {
    const topology::ReportedGroup* group = nullptr;  // the lowest rank's word
    const LoadedReport* speaker = nullptr;
    std::vector<Rank> reporting;
};
std::vector<JobGroup> groups_of(const LoadedReports& loaded);

}  // namespace mcastcoll::topo
