// Finds firewall rules that may drop multicasts. Pure.
#pragma once

#include "facts.h"

namespace mcastcoll::doctor {

// Returns the rules in the output of `nft --json list ruleset` that may drop UDP multicasts on this
// interface. `port` is the datagrams' destination port, 0 for any port that the provider may draw; `family`
// is the IP version, 4 or 6.
Result<std::vector<Firewall::Rule>> rules_against_multicast(const std::string& ruleset,
                                                            const std::string& interface, int port,
                                                            int family);

}  // namespace mcastcoll::doctor
