#include "job_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "activity.h"
#include "base/new_file.h"
#include "hostset/launcher.h"
#include "look.h"
#include "topo.h"

namespace mcastcoll::topo {
namespace {

constexpr std::size_t kMaxSamples = 3600;  // in a page's charts
constexpr const char* kProgram = "mcastcoll-topo " MCC_VERSION;

std::vector<std::string> folders_of(const JobCommand& command) {
    return command.folder.empty() ? topology::report_folders() : std::vector<std::string>{command.folder};
}

// Prints each message once, although the same reports are parsed again and again.
class Complaints {
  public:
    void print_new(const std::vector<std::string>& complaints) {
        for (const std::string& one : complaints)
            if (std::ranges::find(printed_, one) == printed_.end()) complain(printed_.emplace_back(one));
    }

  private:
    std::vector<std::string> printed_;
};

class Watch {
  public:
    Watch(const JobCommand& command, Look& look) : command_(command), look_(look) {}

    int run() {
        for (unsigned sample = 0; command_.times == 0 || sample <= command_.times; ++sample) {
            if (const auto sent = look_.request_reports(); !sent) return complain(sent.error().message, 1);
            if (sample > 0) std::this_thread::sleep_for(std::chrono::duration<double>(command_.every));
            auto now = look_.take();
            if (!now) return complain(now.error().message, 1);
            complaints_.print_new(now.value().complaints);
            std::vector<JobGroup> groups = groups_of(now.value());
            if (command_.pid != 0) keep_only(command_.pid, now.value(), groups);
            if (sample > 0 && !show(now.value(), groups))
                return complain(fmt::format("cannot write {}", command_.page), 1);
            before_ = std::move(now).value();
        }
        return 0;
    }

  private:
    bool show(const LoadedReports& now, const std::vector<JobGroup>& groups) {
        const double at = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        history_.push_back({at, compare(before_, now)});
        if (history_.size() > kMaxSamples) history_.erase(history_.begin());
        if (command_.json) {
            fmt::print("{}", as_json_line(history_.back()));
        } else {
            if (::isatty(STDOUT_FILENO) == 1) fmt::print("\x1b[H\x1b[2J");
            fmt::print("{:.0f} s, {} processes report\n{}", at, now.reports.size(),
                       as_table(history_.back().activities));
        }
        std::fflush(stdout);
        if (command_.page.empty()) return true;
        const std::string page = as_page(groups, history_, rank_of(command_.root));
        return write_new_file(AT_FDCWD, command_.page, page, 0644).ok();
    }

    const JobCommand& command_;
    Look& look_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    Complaints complaints_;
    LoadedReports before_;
    std::vector<Sample> history_;
};

int show_groups(const JobCommand& command, const std::vector<JobGroup>& groups) {
    for (const JobGroup& job : groups) {
        const topology::Map map(job.group.places, job.group.policy);
        if (command.root >= map.members())
            return complain(fmt::format("--root {}: group {:016x} has ranks 0 to {}", command.root,
                                        job.group.key, map.members() - 1));
        const topology::Tree tree(map, rank_of(command.root));
        if (&job == &groups.front() && !write_svg(command.svg, map, tree))
            return complain(fmt::format("cannot write {}", command.svg), 1);
        if (command.json) continue;
        fmt::print("group {:016x} of {}: {} members, {}; ranks {} report\n\n{}\n{}\n", job.group.key,
                   job.program, map.members(), job.group.state, ranges(job.reporting),
                   levels_as_text(map, job.group.levels), tree_as_text(map, tree));
    }
    return 0;
}

int show_job(const JobCommand& command, Look& look) {
    auto taken = look.take();
    if (!taken) return complain(taken.error().message, 1);
    LoadedReports loaded = std::move(taken).value();
    Complaints().print_new(loaded.complaints);
    std::vector<JobGroup> groups = groups_of(loaded);
    if (command.pid != 0) keep_only(command.pid, loaded, groups);
    if (command.metrics) return fmt::print("{}", as_metrics(loaded)), 0;
    if (!command.json && loaded.reports.empty())
        fmt::print("no process of this user reports a group ({})\n", fmt::join(folders_of(command), ", "));
    if (const int wrong = show_groups(command, groups); wrong != 0) return wrong;
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

}  // namespace

int run_job(const JobCommand& command) {
    std::unique_ptr<hostset::HostSet> host_set;
    if (!command.host_set.hosts.empty() || hostset::is_launched()) {
        auto formed = hostset::HostSet::form(kProgram, command.host_set);
        if (!formed) return complain(formed.error().message);
        host_set = std::move(formed).value();
    }
    Look look(folders_of(command), std::move(host_set));
    if (look.is_head()) return command.watch ? Watch(command, look).run() : show_job(command, look);
    const auto served = look.serve();
    return served ? 0 : complain(served.error().message, 1);
}

int serve_job(const JobCommand& command) {
    auto formed = hostset::HostSet::form(kProgram, command.host_set);
    if (!formed) return complain(formed.error().message);
    const auto served = Look(topology::report_folders(), std::move(formed).value()).serve();
    return served ? 0 : complain(served.error().message, 1);
}

}  // namespace mcastcoll::topo
