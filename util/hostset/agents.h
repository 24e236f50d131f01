// Processes on other hosts, each started by an agent such as ssh. A thread copies the output of processes and
// agents to standard error, with the host's name before each line.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "base/result.h"

namespace mcastcoll::hostset {

class Agents {
  public:
    Agents() = default;
    // Waits a moment for running agents to end, then ends them.
    ~Agents();
    Agents(const Agents&) = delete;
    Agents& operator=(const Agents&) = delete;

    // `command` is the agent's command line; `input`, some KiB at most, its standard input.
    Result<void> start(std::uint32_t rank, const std::string& host, const std::vector<std::string>& command,
                       std::string_view input);
    // Starts the thread; call after the last start().
    void listen();
    // How the agent of this rank has ended; empty while the agent runs, or for a rank without an agent.
    std::string ended(std::uint32_t rank);

  private:
    struct Agent {
        std::uint32_t rank;
        std::string host;
        pid_t process;
        FileDescriptor output;
        std::string line;  // the unfinished line of its output
        std::string ended;
    };

    void copy_output();
    bool check_agent(Agent& agent);
    void read_output(Agent& agent);

    std::mutex mutex_;  // guards all of the following except the thread itself
    std::vector<Agent> agents_;
    Deadline end_{-1};  // of the thread
    std::thread thread_;
};

}  // namespace mcastcoll::hostset
