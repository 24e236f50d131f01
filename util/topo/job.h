// Running jobs, from the reports of their processes (topology/job_report.h).
#pragma once

#include "topology/job_report.h"

namespace mcastcoll::topo {

struct LoadedReport {
    std::uint64_t pid = 0;
    std::string host, program, path;
    topology::Report report;
    double written = 0;  // seconds since 1970
};

struct LoadedReports {
    std::vector<LoadedReport> reports;
    std::vector<std::string> complaints;  // files that could not be parsed
};

struct ReportFile {
    std::string path, text;
    double written = 0;  // seconds since 1970
};
struct ReadReports {
    std::vector<ReportFile> files;
    std::vector<std::string> complaints;
};
// Reads the reports in all these folders; removes the reports of dead processes.
ReadReports read_reports(const std::vector<std::string>& folders);
LoadedReports parse_reports(const ReadReports& read);
LoadedReports load_reports(const std::vector<std::string>& folders);
// Parses a report's text; returns on any input.
Result<LoadedReport> parse_report(const std::string& text);

// A group, and its processes that report.
struct JobGroup {
    topology::ReportedGroup group;  // from the lowest rank that has the places of all members
    std::string program;            // run by the group
    std::vector<Rank> reporting;
};
// Groups for which at least one reporting process has the places of all members.
std::vector<JobGroup> groups_of(const LoadedReports& loaded);
// Keeps only the report and the groups of one process.
void keep_only(std::uint64_t pid, LoadedReports& loaded, std::vector<JobGroup>& groups);

}  // namespace mcastcoll::topo
