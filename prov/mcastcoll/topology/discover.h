// Where this process is: what the user says, else its own address's subnet, the host's identity, and what
// hwloc sees of the machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/levels.h"
#include "topology/override.h"

namespace mcastcoll::topology {

// Reads FI_MCASTCOLL_TOPOLOGY's value: words, or a file when it begins with "/", "./", "../" or "file:".
Result<Override> read_override(const std::string& value);

struct Discovery {
    Place place;
    std::vector<std::string> notes;  // what could not be found out, and why, for the log
};

// `address`: the 4 or 16 bytes of the process's own address, or none. Never fails: what cannot be found out
// is left out, and noted. The host is looked at once in a process; after that a call costs microseconds.
Discovery discover(const Override& override, Bytes address);

// The parts of it, for tools.
Discovery discover_host();
Result<Subnet> own_subnet(Bytes address);

}  // namespace mcastcoll::topology
