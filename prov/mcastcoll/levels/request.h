// An operation of a group, as its levels get it.
#pragma once

#include <cstdint>

#include "base/collective.h"

namespace mcastcoll::levels {

// The root is a rank in the group. A broadcast without ready data is held: the root sends data after
// Hierarchy::let_go().
struct Request : Collective {
    std::uint64_t cookie = 0;  // passed to Hierarchy::Owner::on_complete()
    bool held() const { return kind == Kind::broadcast && ready == 0; }
};

}  // namespace mcastcoll::levels
