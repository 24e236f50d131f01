// The status page: how trunks, their streams and the site's own connections are, for people and for programs.
#pragma once

#include <string>

#include "base/result.h"
#include "relay/endpoint.h"

namespace mcastcoll::gateway {

class Gateway;

std::string status_as_text(const Gateway& gateway);
std::string status_as_json(const Gateway& gateway);
// The page of a gateway that runs; waits for it for a few seconds at most.
Result<std::string> ask_status(const relay::Endpoint& gateway, bool json);

}  // namespace mcastcoll::gateway
