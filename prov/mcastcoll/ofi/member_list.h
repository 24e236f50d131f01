// Whether the addresses of a set's members can be those of one group, as far as this host can see. Hosts that
// have one address, as docker0 has it, would otherwise wait for the join's timeout: what they send to each
// other stays where it is.
#pragma once

#include <vector>

#include "base/result.h"
#include "wire/join.h"

namespace mcastcoll::ofi {

// `members`: normalised inner addresses, this process's own among them. `over_tcp`: these are TCP listeners.
Result<void> check_members(const std::vector<wire::ByteString>& members, const wire::ByteString& own,
                           bool over_tcp);

}  // namespace mcastcoll::ofi
