// Each job is a process, so that a seed that trips an assert or never ends takes only its job with it: the
// parent reports the seed and lets a new job go on behind it. A job tells its parent in lines: "B seed"
// before a seed, "F seed what" when it failed.
#include "campaign.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "group_world.h"
#include "scenario.h"

namespace mcastcoll::sim {
namespace {

// Of real time for one seed. A hundred times what any needs: only an engine that loops for ever needs more.
constexpr unsigned kMostSeconds = 300;

std::string summary_of_seed(std::uint64_t seed) {
    return fmt::format("{}; {}", summary_of_groups(seed), summary_of(draw_scenario(seed)));
}

std::string run_seed(std::uint64_t seed) {
    if (std::string wrong = run_groups(seed); !wrong.empty()) return "groups: " + wrong;
    World world(draw_scenario(seed));
    return world.run();
}

void tell(int pipe_end, const std::string& line) {
    for (std::size_t sent = 0; sent < line.size();) {
        const ssize_t written = write(pipe_end, line.data() + sent, line.size() - sent);
        if (written < 0 && errno != EINTR) _exit(3);
        if (written > 0) sent += static_cast<std::size_t>(written);
    }
}

[[noreturn]] void work(int pipe_end, std::uint64_t seed, std::uint64_t end, std::uint32_t stride) {
    for (; seed < end; seed += stride) {
        alarm(kMostSeconds);
        tell(pipe_end, fmt::format("B {}\n", seed));
        if (const std::string wrong = run_seed(seed); !wrong.empty())
            tell(pipe_end, fmt::format("F {} {}\n", seed, wrong));
    }
    _exit(0);
}

struct Job {
    pid_t process = 0;
    int pipe_end = -1;
    std::uint64_t seed = 0;  // the one it is at
    std::string rest;        // of a line that is not complete
};

class Parent {
  public:
    explicit Parent(const Campaign& campaign) : campaign_(campaign), show_(isatty(STDERR_FILENO) != 0) {}
    int run();

  private:
    void start(Job& job, std::uint64_t seed);
    bool hear(Job& job);
    void end(Job& job);
    void take_line(Job& job, const std::string& line);
    void report(std::uint64_t seed, const std::string& wrong);
    void show_progress() const;

    const Campaign campaign_;
    const bool show_;
    std::vector<Job> jobs_;
    std::uint64_t begun_ = 0, failed_ = 0;
};

void Parent::start(Job& job, std::uint64_t seed) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe for a job");
    std::fflush(nullptr);
    job.process = fork();
    if (job.process < 0) throw std::runtime_error("no process for a job");
    if (job.process == 0) {
        close(ends[0]);
        for (const Job& other : jobs_)
            if (other.pipe_end >= 0) close(other.pipe_end);
        work(ends[1], seed, campaign_.first + campaign_.seeds, campaign_.jobs);
    }
    close(ends[1]);
    job.pipe_end = ends[0];
    job.seed = seed;
    job.rest.clear();
}

void Parent::report(std::uint64_t seed, const std::string& wrong) {
    ++failed_;
    if (show_) fmt::print(stderr, "\r\033[K");
    fmt::print("seed {}: {}\n  {}\n  replay with: mcastcoll-sim --campaign 1 --first {}\n", seed, wrong,
               summary_of_seed(seed), seed);
    std::fflush(stdout);
}

void Parent::show_progress() const {
    if (show_ && begun_ % 16 == 0)
        fmt::print(stderr, "\r{} of {} seeds, {} failed ", begun_, campaign_.seeds, failed_);
}

void Parent::take_line(Job& job, const std::string& line) {
    char* end = nullptr;
    const std::uint64_t seed = std::strtoull(line.c_str() + 2, &end, 10);
    if (line[0] == 'F') return report(seed, end + 1);
    job.seed = seed;
    ++begun_;
    show_progress();
}

// False when the job has closed its end.
bool Parent::hear(Job& job) {
    char buffer[4096];
    const ssize_t got = read(job.pipe_end, buffer, sizeof buffer);
    if (got < 0) return errno == EINTR;
    job.rest.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t at; (at = job.rest.find('\n')) != std::string::npos; job.rest.erase(0, at + 1))
        take_line(job, job.rest.substr(0, at));
    return got > 0;
}

void Parent::end(Job& job) {
    close(job.pipe_end);
    job.pipe_end = -1;
    int status = 0;
    while (waitpid(job.process, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    report(job.seed, WIFSIGNALED(status) ? fmt::format("ended by signal {} ({})", WTERMSIG(status),
                                                       strsignal(WTERMSIG(status)))
                                         : fmt::format("ended with code {}", WEXITSTATUS(status)));
    if (job.seed + campaign_.jobs < campaign_.first + campaign_.seeds) start(job, job.seed + campaign_.jobs);
}

int Parent::run() {
    jobs_.resize(campaign_.jobs);
    for (std::uint32_t number = 0; number < campaign_.jobs && number < campaign_.seeds; ++number)
        start(jobs_[number], campaign_.first + number);
    for (;;) {
        std::vector<pollfd> ends;
        std::vector<Job*> of;
        for (Job& job : jobs_) {
            if (job.pipe_end < 0) continue;
            ends.push_back({job.pipe_end, POLLIN, 0});
            of.push_back(&job);
        }
        if (ends.empty()) break;
        if (poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) throw std::runtime_error("poll failed");
        for (std::size_t i = 0; i < ends.size(); ++i)
            if (ends[i].revents != 0 && !hear(*of[i])) end(*of[i]);
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
