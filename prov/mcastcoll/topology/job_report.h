// The report of a running process to mcastcoll-topo about its groups: a small JSON file in a directory that
// only its user may enter, replaced as a whole at each change, and removed when the process ends.
//
//     $XDG_RUNTIME_DIR/mcastcoll, or /dev/shm/mcastcoll-UID where there is no such folder
//     PID.START.NAMESPACE.PART.json
//
// The name contains the process id, start time and pid namespace (containers may share the directory), and a
// part, since a process may have several writers. Files of dead processes are removed by readers and host
// leaders, unless they are from another pid namespace, whose processes are not visible here. A reader that
// wants current counters keeps the modification time of a file "watched" recent; only then do processes
// rewrite their reports periodically.
#pragma once

#include "base/file_descriptor.h"
#include "base/result.h"
#include "topology/map.h"

namespace mcastcoll::topology {

struct Report {
    std::vector<ReportedGroup> groups;
    Counts counters;  // of all groups, including closed ones
};

// The possible directories of this user's reports, the preferred first.
std::vector<std::string> report_folders();

class JobReport {
  public:
    // Uses the first usable directory. The parts of a process have different numbers.
    static Result<JobReport> open(unsigned part, const std::vector<std::string>& folders = report_folders());
    JobReport(JobReport&&) = default;
    JobReport& operator=(JobReport&&) = delete;
    ~JobReport();

    // Removes the files of dead processes, after checking each report of this host.
    void remove_dead() const;
    // Whether a reader has requested current counters during the last seconds.
    bool is_watched() const;
    // Replaces the previous report.
    Result<void> write(const Report& report);
    std::string path() const { return folder_name_ + '/' + file_name_; }

  private:
    JobReport(std::string folder_name, FileDescriptor folder, unsigned part);
    std::string folder_name_;
    std::string file_name_;
    FileDescriptor folder_;
    int owner_;  // pid of the writer: a child of fork() must not remove its parent's file
};

// Opens a directory that belongs to this user and is closed to other users. make: creates the directory if it
// does not exist.
Result<FileDescriptor> open_report_folder(const std::string& folder, bool make);
// Requests current reports from the writers in this directory for the next seconds.
void request_report(const FileDescriptor& folder);
// Returns the names of complete reports, after removing reports of dead processes.
std::vector<std::string> list_reports(const FileDescriptor& folder);

// The fields of a report's file name; parse_report_name() rejects other files.
struct ReportName {
    std::uint64_t pid = 0, start_time = 0, pid_namespace = 0, part = 0;
    bool complete = false;  // false while the file is still being written
};
std::optional<ReportName> parse_report_name(std::string_view name);
std::string to_string(const ReportName& name);

}  // namespace mcastcoll::topology
