// Members of a host::Team for tests: processes forked for the test and ending with it, or threads sharing one
// mapping, in which a thread sanitizer sees every access.
#pragma once

#include <functional>
#include <memory>

#include "host/team.h"

namespace mcastcoll::test {

struct MembersOptions {
    std::uint32_t count = 2;
    bool threads = false;
    // run_members() fills in name, key, self and size.
    host::TeamConfig config;
};

// Opens the team as this member; waits at most ten seconds for member 0's segment.
Result<std::unique_ptr<host::Team>> join(const host::TeamConfig& config);
// A configuration with a fresh name and key.
host::TeamConfig fresh_config(const MembersOptions& options);
// Runs `body` on each member and returns how many of them did not return 0 (a message names each and the
// reason).
int run_members(const MembersOptions& options, const std::function<int(host::Team&)>& body);

}  // namespace mcastcoll::test
