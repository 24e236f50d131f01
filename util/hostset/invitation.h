// Passed by the head to a process that the head starts through an agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/crypto.h"

namespace mcastcoll::hostset {

struct Invitation {
    wire::Key token{};
    std::uint32_t rank = 0;
    std::vector<std::string> environment;  // NAME=VALUE
};
std::string as_bytes_of(const Invitation& invitation);
Result<Invitation> parse_invitation(std::string_view bytes);

}  // namespace mcastcoll::hostset
