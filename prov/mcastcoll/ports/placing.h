// Where this process is, as it tells the other members of a group.
#pragma once

#include <string>
#include <vector>

#include "topology/override.h"
#include "wire/join.h"

namespace mcastcoll::ofi {

struct OwnPlace {
    wire::ByteString encoded;
    std::string text;
    std::vector<std::string> notes;  // what could not be found out, and why
};

// Where this process is. The address is the inner endpoint's, normalised; it may be none that has a subnet.
// Without room for shared memory a process is a host of its own.
OwnPlace find_own_place(const topology::Override& given, const wire::ByteString& inner_address);

}  // namespace mcastcoll::ofi
