// Runs each seed in a separate process, so that an assertion or an endless loop affects only one seed. The
// process prints its own error; the parent reports abnormal ends.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>

#include "scenario.h"

namespace mcastcoll::sim {
namespace {

// The limit of real time for one seed, a hundred times the time needed: only an endless loop reaches it.
constexpr unsigned kMaxSeconds = 300;
constexpr int kReported = 3;  // exit status after a reported failure

// Prints a failure in one write, since several processes report.
void report(std::uint64_t seed, const std::string& wrong) {
    fmt::print("seed {}: {:.1500}\n  {:.2000}\n  replay with: mcastcoll-sim --campaign 1 --first {}\n", seed,
               wrong, summary_of_seed(seed), seed);
    std::fflush(stdout);
}

pid_t start(std::uint64_t seed) {
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process < 0) throw std::runtime_error("cannot start a process for a seed");
    if (process > 0) return process;
    alarm(kMaxSeconds);
    const std::string wrong = run_seed(seed).wrong;
    if (!wrong.empty()) report(seed, wrong);
    _exit(wrong.empty() ? 0 : kReported);
}

}  // namespace

int run_campaign(const Campaign& campaign) {
    if (campaign.seeds == 1) {  // stays in this process: for a debugger
        const auto [wrong, packets] = run_seed(campaign.first);
        fmt::print("seed {}: {}\n  {}\n  packets {:016x}\n", campaign.first, wrong.empty() ? "ok" : wrong,
                   summary_of_seed(campaign.first), packets);
        fmt::print("seeds 1 failed {}\n", wrong.empty() ? 0 : 1);
        return wrong.empty() ? 0 : 1;
    }
    const bool show = isatty(STDERR_FILENO) != 0;
    std::map<pid_t, std::uint64_t> seed_of;  // of running processes
    std::uint64_t begun = 0, failed = 0;
    while (begun < campaign.seeds || !seed_of.empty()) {
        if (begun < campaign.seeds && seed_of.size() < campaign.jobs) {
            const std::uint64_t seed = campaign.first + begun++;
            seed_of[start(seed)] = seed;
            if (show && begun % 16 == 0)
                fmt::print(stderr, "\r{} of {} seeds, {} failed ", begun, campaign.seeds, failed);
            continue;
        }
        int status = 0;
        const pid_t ended = waitpid(-1, &status, 0);
        if (ended < 0 && errno == EINTR) continue;
        const std::uint64_t seed = seed_of.extract(ended).mapped();
        failed += status != 0;
        if (WIFSIGNALED(status))
            report(seed,
                   fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))));
        else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != kReported)
            report(seed, fmt::format("ended with code {}", WEXITSTATUS(status)));
    }
    if (show) fmt::print(stderr, "\r\033[K");
    fmt::print("seeds {} failed {}\n", campaign.seeds, failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace mcastcoll::sim
