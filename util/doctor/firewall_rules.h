// Which rules of a firewall may drop multicasts. Pure.
#pragma once

#include "facts.h"

namespace mcastcoll::doctor {

// Out of `nft --json list ruleset`: the rules that may drop UDP multicasts on this interface. `port`: of the
// datagrams, 0 for any that the provider draws; `family`: 4 or 6.
Result<std::vector<Firewall::Rule>> rules_against_multicast(const std::string& ruleset,
                                                            const std::string& interface, int port,
                                                            int family);

}  // namespace mcastcoll::doctor
