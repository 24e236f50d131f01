// Counts the numbered datagrams of one stream: received, duplicate, late, and missing in a row. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "facts.h"

namespace mcastcoll::doctor {

class Tally {
  public:
    static constexpr std::uint32_t kMax = 1 << 16;  // datagrams of a stream

    void take(std::uint32_t number);
    // `sent` is the number of datagrams that the sender sent.
    ReceivedStream result(unsigned from, Phase phase, std::uint64_t sent) const;

  private:
    std::vector<bool> seen_;
    std::uint64_t datagrams_ = 0, duplicates_ = 0, late_ = 0;
};

}  // namespace mcastcoll::doctor
