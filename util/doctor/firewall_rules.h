// Finds firewall rules that may drop multicasts. Pure.
#pragma once

#include "facts.h"

namespace mcastcoll::doctor {

// Returns the rules in the output of `nft --json list ruleset` that may drop UDP multicasts on this
// interface. `port`: of the datagrams, 0 for any port drawn by the provider; `family`: 4 or 6.
Result<std::vector<Firewall::Rule>> rules_against_multicast(const std::string& ruleset,
                                                            const std::string& interface, int port,
                                                            int family);

}  // namespace mcastcoll::doctor
