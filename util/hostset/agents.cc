#include "hostset/agents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cstring>

#include "base/system.h"

namespace mcastcoll::hostset {
namespace {

constexpr int kLook_ms = 100, kLeave_ms = 5000, kLongestLine = 4096;

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
    return fmt::format("ended with status {}", WEXITSTATUS(status));
}

Result<pid_t> spawn(const std::vector<std::string>& command, int input, int output) {
    std::vector<char*> argv;
    for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    pid_t process = -1;
    const int error = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return system_error(error, fmt::format("cannot start {}", command.front()));
    return process;
}

}  // namespace

Result<void> Agents::start(std::uint32_t rank, const std::string& host,
                           const std::vector<std::string>& command, std::string_view input) {
    std::array<int, 2> in{-1, -1}, out{-1, -1};
    // Sockets rather than pipes: a write without a reader returns an error instead of raising a signal.
    const bool made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) == 0 &&
                      ::pipe2(out.data(), O_CLOEXEC) == 0;
    const FileDescriptor own_in(in[0]), its_in(in[1]), its_out(out[1]);
    FileDescriptor own_out(out[0]);
    if (!made) return system_error(errno, "pipes to an agent");
    const auto process = spawn(command, its_in.get(), its_out.get());
    if (!process) return process.error();
    // If the input arrives incomplete, the process on the remote host reports an error.
    (void)::send(own_in.get(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    const std::lock_guard lock(mutex_);
    agents_.push_back({rank, host, process.value(), std::move(own_out), {}, {}});
    return {};
}

void Agents::listen() {
    if (!agents_.empty()) thread_ = std::thread([this] { copy_output(); });
}

std::string Agents::ended(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    for (const Agent& agent : agents_)
        if (agent.rank == rank) return agent.ended;
    return {};
}

void Agents::read_output(Agent& agent) {
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(agent.output.get(), buffer.data(), buffer.size());
    if (got <= 0) agent.output.reset();
    agent.line.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    for (;;) {
        std::size_t end = agent.line.find('\n');
        if (end == std::string::npos && (got <= 0 || agent.line.size() > kLongestLine))
            end = agent.line.size();
        if (end == std::string::npos || agent.line.empty()) return;
        // If standard error has no reader, the line is lost.
        (void)attempt(
            [&] { fmt::print(stderr, "{}: {}\n", agent.host, std::string_view(agent.line).substr(0, end)); });
        agent.line.erase(0, end + 1);
    }
}

// Returns true if the agent has ended and its output has been copied.
bool Agents::check_agent(Agent& agent) {
    int status = 0;
    if (agent.ended.empty() && ::waitpid(agent.process, &status, WNOHANG) == agent.process)
        agent.ended = how_it_ended(status);
    // Other processes may keep the pipe open after the agent has ended: only the output available now is
    // read.
    pollfd one{agent.output.get(), POLLIN, 0};
    while (agent.output.valid() && ::poll(&one, 1, 0) == 1) {
        read_output(agent);
        one.fd = agent.output.get();
    }
    return !agent.ended.empty();
}

void Agents::copy_output() {
    for (;;) {
        std::vector<pollfd> outputs;
        {
            const std::lock_guard lock(mutex_);
            bool all_ended = true;
            for (Agent& agent : agents_) {
                all_ended = check_agent(agent) && all_ended;
                if (agent.output.valid()) outputs.push_back({agent.output.get(), POLLIN, 0});
            }
            if (all_ended || end_.over()) return;
        }
        ::poll(outputs.data(), outputs.size(), kLook_ms);
    }
}

Agents::~Agents() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        end_ = Deadline(kLeave_ms);
    }
    thread_.join();
    for (const int signal : {SIGTERM, SIGKILL}) {
        for (const Agent& agent : agents_)
            if (agent.ended.empty()) ::kill(agent.process, signal);
        const Deadline deadline(1000);
        for (Agent& agent : agents_)
            while (!check_agent(agent) && !deadline.over()) ::usleep(10'000);
    }
}

}  // namespace mcastcoll::hostset
