// Reassembles a welcome at a host leader, from parts of one sender in order.
#pragma once

#include <utility>
#include <vector>

#include "wire/join.h"

namespace mcastcoll::group {

class Arrival {
  public:
    // Returns true at the last part. max_bytes: limit for the total size.
    bool add(const wire::WelcomePart& part, std::size_t max_bytes);
    wire::ByteString take() { return std::exchange(bytes_, {}); }

  private:
    wire::ByteString bytes_;
};
// Splits a welcome into parts, addressed by the join id in the head.
std::vector<wire::ByteString> parts_of(Bytes welcome, const wire::MessageHead& head);

}  // namespace mcastcoll::group
