// Checks whether the addresses of a set's members can belong to one group, as far as this host can see. If
// several hosts have the same address, as with docker0, the members' packets never leave the sending host,
// and the join would fail only at its timeout.
#pragma once

#include <vector>

#include "base/result.h"
#include "wire/join.h"

namespace mcastcoll::ofi {

// `members`: normalised inner addresses, including this process's. `over_tcp`: these are addresses of TCP
// listeners.
Result<void> check_members(const std::vector<wire::ByteString>& members, const wire::ByteString& own,
                           bool over_tcp);

}  // namespace mcastcoll::ofi
