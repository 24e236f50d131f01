// What a running process tells mcastcoll-topo about its groups: a small JSON file in a folder that only its
// user may enter, replaced as a whole whenever something changes, and removed when its writer goes.
//
//     $XDG_RUNTIME_DIR/mcastcoll, or /dev/shm/mcastcoll-UID where there is no such folder
//     PID.START.NAMESPACE.PART.json
//
// The name tells which process it is of: its number, start time and pid namespace (containers may share the
// folder), and a part, since a process may have several writers. Files of processes that have died are
// removed by readers and by leaders of hosts, unless they are of another pid namespace, where nobody here can
// tell. Whoever wants to see counters grow keeps a file "watched" there young; processes then write their
// reports anew now and then, and not otherwise.
#pragma once

#include <utility>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "topology/map.h"

namespace mcastcoll::topology {

struct Report {
    std::vector<ReportedGroup> groups;
    Counts counters;  // of all groups, closed ones included
};

// Where reports of this user may be, the best first.
std::vector<std::string> report_folders();

class JobReport {
  public:
    // In the first of the folders that can be used. Parts of a process have different numbers.
    static Result<JobReport> open(unsigned part, const std::vector<std::string>& folders = report_folders());
    JobReport(JobReport&&) = default;
    JobReport& operator=(JobReport&&) = delete;
    ~JobReport();

    // What dead processes have left: a look at each report of this host.
    void remove_dead() const;
    // Somebody has asked for news a short while ago.
    bool is_watched() const;
    // Replaces what was written before.
    Result<void> write(const Report& report);
    std::string path() const { return folder_name_ + '/' + file_name_; }

  private:
    JobReport(std::string folder_name, FileDescriptor folder, unsigned part);
    std::string folder_name_;
    std::string file_name_;
    FileDescriptor folder_;
    int owner_;  // a child of fork() leaves its parent's file alone
};

// Opens a folder that belongs to this user and is closed to others, and makes it if asked to.
Result<FileDescriptor> open_report_folder(const std::string& folder, bool make);
// Asks the writers in this folder for news during the next seconds.
void ask_for_news(const FileDescriptor& folder);
// The names of all reports that are complete. Removes those of dead processes before.
std::vector<std::string> list_reports(const FileDescriptor& folder);

// Out of a file's name, nothing when it is not one of ours.
struct ReportName {
    std::uint64_t pid = 0, start_time = 0, pid_namespace = 0, part = 0;
    bool complete = false;  // not one that is still being written
};
std::optional<ReportName> parse_report_name(std::string_view name);
std::string to_string(const ReportName& name);

}  // namespace mcastcoll::topology
