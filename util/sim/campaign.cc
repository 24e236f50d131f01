// Each job is a process, so that a seed that trips an assert or never ends takes only its job with it: the
// parent reports the seed and lets a new job go on behind it. All jobs write lines into one pipe: "B job
// seed" before a seed, "F job seed what" when it failed. Such a line is written at once, or not at all.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "scenario.h"

namespace mcastcoll::sim {
namespace {

// Of real time for one seed. A hundred times what any needs: only an engine that loops for ever needs more.
constexpr unsigned kMostSeconds = 300;

class Parent {
  public:
    explicit Parent(const Campaign& campaign) : campaign_(campaign), show_(isatty(STDERR_FILENO) != 0) {}
    int run();

  private:
    struct Job {
        pid_t process = 0;
        std::uint64_t seed = 0;  // the one it is at
        bool ended = false;      // without a crash
    };
    std::uint64_t end() const { return campaign_.first + campaign_.seeds; }
    [[noreturn]] void work(int pipe_end, std::size_t job);
    void listen();
    void take_line(const std::string& line);
    void reap(Job& job);
    void report(std::uint64_t seed, const std::string& wrong);

    const Campaign campaign_;
    const bool show_;
    std::vector<Job> jobs_;
    std::uint64_t begun_ = 0, failed_ = 0;
};

void Parent::work(int pipe_end, std::size_t job) {
    const auto tell = [&](const std::string& line) {
        if (write(pipe_end, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF)) < 0) _exit(3);
    };
    for (std::uint64_t seed = jobs_[job].seed; seed < end(); seed += campaign_.jobs) {
        alarm(kMostSeconds);
        tell(fmt::format("B {} {}\n", job, seed));
        if (const std::string wrong = run_seed(seed); !wrong.empty())
            tell(fmt::format("F {} {} {:.2000}\n", job, seed, wrong));
    }
    _exit(0);
}

void Parent::report(std::uint64_t seed, const std::string& wrong) {
    ++failed_;
    if (show_) fmt::print(stderr, "\r\033[K");
    fmt::print("seed {}: {}\n  {}\n  replay with: mcastcoll-sim --campaign 1 --first {}\n", seed, wrong,
               summary_of_seed(seed), seed);
    std::fflush(stdout);
}

void Parent::take_line(const std::string& line) {
    char* rest = nullptr;
    Job& job = jobs_[std::strtoull(line.c_str() + 2, &rest, 10)];
    job.seed = std::strtoull(rest, &rest, 10);
    if (line[0] == 'F') return report(job.seed, rest + 1);
    if (show_ && ++begun_ % 16 == 0)
        fmt::print(stderr, "\r{} of {} seeds, {} failed ", begun_, campaign_.seeds, failed_);
}

// Starts every job that has seeds left, and hears them until they have all ended.
void Parent::listen() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe for the jobs");
    std::fflush(nullptr);
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
        if (jobs_[job].ended) continue;
        jobs_[job].process = fork();
        if (jobs_[job].process < 0) throw std::runtime_error("no process for a job");
        if (jobs_[job].process > 0) continue;
        close(ends[0]);
        work(ends[1], job);
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR);) {
        text.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        for (std::size_t at; (at = text.find('\n')) != std::string::npos; text.erase(0, at + 1))
            take_line(text.substr(0, at));
    }
    close(ends[0]);
}

// A job that has crashed is to go on behind the seed it was at.
void Parent::reap(Job& job) {
    int status = 0;
    while (waitpid(job.process, &status, 0) < 0 && errno == EINTR) {
    }
    job.ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (job.ended) return;
    report(job.seed, WIFSIGNALED(status) ? fmt::format("ended by signal {} ({})", WTERMSIG(status),
                                                       strsignal(WTERMSIG(status)))
                                         : fmt::format("ended with code {}", WEXITSTATUS(status)));
    job.seed += campaign_.jobs;
    job.ended = job.seed >= end();
}

int Parent::run() {
    jobs_.resize(std::min<std::uint64_t>(campaign_.jobs, campaign_.seeds));
    for (std::size_t job = 0; job < jobs_.size(); ++job) jobs_[job].seed = campaign_.first + job;
    const auto ended = [](const Job& job) { return job.ended; };
    while (!std::all_of(jobs_.begin(), jobs_.end(), ended)) {
        std::vector<Job*> started;
        for (Job& job : jobs_)
            if (!job.ended) started.push_back(&job);
        listen();
        for (Job* job : started) reap(*job);
    }
    if (show_) fmt::print(stderr, "\r\033[K");
    fmt::print("seeds {} failed {}\n", campaign_.seeds, failed_);
    return failed_ == 0 ? 0 : 1;
}

}  // namespace

int run_campaign(const Campaign& campaign) {
    if (campaign.seeds > 1) return Parent(campaign).run();
    // A single seed stays in this process: for a debugger.
    const std::string wrong = run_seed(campaign.first);
    fmt::print("seed {}: {}\n  {}\n", campaign.first, wrong.empty() ? "ok" : wrong,
               summary_of_seed(campaign.first));
    fmt::print("seeds 1 failed {}\n", wrong.empty() ? 0 : 1);
    return wrong.empty() ? 0 : 1;
}

}  // namespace mcastcoll::sim
