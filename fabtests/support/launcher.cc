#include "support/launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "support/failure.h"
#include "support/member.h"

namespace mcastcoll::fabtest {
namespace {

// After a process has failed, the other processes have this long to notice and to report.
constexpr std::chrono::seconds kGrace{2};
constexpr std::chrono::milliseconds kPollInterval{2};

struct Process {
    pid_t pid = -1;
    std::optional<int> status;  // as waitpid() returns it
    bool killed = false;        // by the launcher
};

// Owns the processes: the destructor kills and reaps the running ones.
class Processes {
  public:
    explicit Processes(std::size_t count) : all_(count) {}
    ~Processes() { kill_rest(); }
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;

    Process& operator[](std::size_t index) { return all_[index]; }
    std::size_t size() const { return all_.size(); }

    bool collect() {
        bool all_ended = true;
        for (Process& process : all_) {
            if (process.pid < 0 || process.status) continue;
            int status = 0;
            if (waitpid(process.pid, &status, WNOHANG) == process.pid)
                process.status = status;
            else
                all_ended = false;
        }
        return all_ended;
    }

    void kill_rest() {
        for (Process& process : all_) {
            if (process.pid < 0 || process.status) continue;
            kill(process.pid, SIGKILL);
            int status = 0;
            waitpid(process.pid, &status, 0);
            process.status = status;
            process.killed = true;
        }
    }

  private:
    std::vector<Process> all_;
};

bool is_victim(const Team& team, std::size_t index) {
    return std::find(team.victims.begin(), team.victims.end(), index) != team.victims.end();
}

std::string describe_ending(const Process& process, const Board::Place& place) {
    const char* stage = place.stage.load();
    const std::string where = stage ? fmt::format(" at: {}", stage) : std::string();
    if (process.killed) return "did not end" + where;
    if (WIFSIGNALED(*process.status))
        return fmt::format("died of signal {} ({}){}", WTERMSIG(*process.status),
                           strsignal(WTERMSIG(*process.status)), where);
    return fmt::format("exit code {}{}", WEXITSTATUS(*process.status), where);
}

bool ended_badly(const Team& team, std::size_t index, const Process& process) {
    if (is_victim(team, index))
        return process.killed || !WIFSIGNALED(*process.status) || WTERMSIG(*process.status) != SIGKILL;
    return process.killed || !WIFEXITED(*process.status) ||
           (WEXITSTATUS(*process.status) != kExitFine && WEXITSTATUS(*process.status) != kExitSkipped);
}

Outcome judge(const Team& team, const Board& board, Processes& processes) {
    Outcome outcome;
    std::size_t skipped = 0;
    for (std::size_t i = 0; i < processes.size(); ++i) {
        const Process& process = processes[i];
        if (ended_badly(team, i, process)) {
            outcome.kind = Outcome::Kind::failed;
            outcome.reason += fmt::format("{}process {} {}", outcome.reason.empty() ? "" : "; ", i,
                                          describe_ending(process, board.places[i]));
        } else if (WIFEXITED(*process.status) && WEXITSTATUS(*process.status) == kExitSkipped) {
            ++skipped;
        }
    }
    if (outcome.kind == Outcome::Kind::fine && skipped > 0) outcome.kind = Outcome::Kind::skipped;
    return outcome;
}

}  // namespace

Outcome run_team(const Team& team, Board& board, const std::function<int(unsigned)>& body) {
    if (team.processes == 0 || team.processes > kMaxProcesses)
        return {Outcome::Kind::failed, fmt::format("{} processes are not possible", team.processes)};
    std::fflush(nullptr);
    const pid_t parent = getpid();
    Processes processes(team.processes);
    for (unsigned i = 0; i < team.processes; ++i) {
        const pid_t pid = fork();
        if (pid < 0) return {Outcome::Kind::failed, "fork failed"};
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) std::_Exit(kExitFailed);
            std::exit(body(i));
        }
        processes[i].pid = pid;
        board.places[i].pid = pid;
    }
    Clock::time_point deadline = Clock::now() + std::chrono::seconds(team.timeout_s);
    while (!processes.collect() && Clock::now() < deadline) {
        if (!board.abandoned) {
            for (std::size_t i = 0; i < processes.size(); ++i)
                if (processes[i].status && ended_badly(team, i, processes[i])) board.abandoned = true;
            if (board.abandoned) deadline = std::min(deadline, Clock::now() + kGrace);
        }
        std::this_thread::sleep_for(kPollInterval);
    }
    processes.kill_rest();
    return judge(team, board, processes);
}

}  // namespace mcastcoll::fabtest
