// Runs one function in several processes of this host, and answers for every one of them: collects their exit
// codes, kills what is left at the deadline, and lets none outlive it.
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
    // Processes that are to die by SIGKILL, and must.
    std::vector<unsigned> victims;
};

struct Outcome {
    enum class Kind { fine, skipped, failed };
    Kind kind = Kind::fine;
    std::string reason;
};

// `body` runs in each process with its number and returns the process's exit code.
Outcome run_team(const Team& team, Board& board, const std::function<int(unsigned)>& body);

}  // namespace mcastcoll::fabtest
