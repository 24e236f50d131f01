// Runs one function in several processes of this host and supervises them: collects their exit codes, and
// kills every process still running at the deadline or when the launcher ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/board.h"

namespace mcastcoll::fabtest {

// Exit codes of a member's process.
inline constexpr int kExitFine = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitSkipped = 77;

struct Team {
    unsigned processes = 0;
    unsigned timeout_s = 0;
    // Processes that must die by SIGKILL.
    std::vector<unsigned> victims;
};

struct Outcome {
    enum class Kind { fine, skipped, failed };
    Kind kind = Kind::fine;
    std::string reason;
};

// Runs `body` in each process with the process's number; `body` returns the process's exit code.
Outcome run_team(const Team& team, Board& board, const std::function<int(unsigned)>& body);

}  // namespace mcastcoll::fabtest
