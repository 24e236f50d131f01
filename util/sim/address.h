// The address of a process for messages: its number, and how often the process was started before. Datagrams
// are addressed by number alone.
#pragma once

#include <cstdint>

#include "group/outbox.h"

namespace mcastcoll::sim {

using Address = group::Outbox::Peer;
constexpr Address address_of(std::uint32_t number, std::uint32_t restarts) {
    return std::uint64_t{restarts} << 32 | number;
}
constexpr std::uint32_t number_of(Address address) {
    return static_cast<std::uint32_t>(address);
}

}  // namespace mcastcoll::sim
