// Join messages that tests damage or make up.
#pragma once

#include <cstdint>

#include "wire/join.h"

namespace mcastcoll::test {

// Writes the checksum of a message: CRC-32C, computed bit by bit, over all bytes except the checksum's four.
inline void put_checksum(wire::ByteString& bytes) {
    std::uint32_t crc = UINT32_MAX;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i >= 4 && i < 8) continue;
        crc ^= std::to_integer<std::uint32_t>(bytes[i]);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    }
    for (std::size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<std::byte>(~crc >> (24 - 8 * i));
}

}  // namespace mcastcoll::test
