// How a group is to work: what the user's variables and its set say, rank 0's for all members.
#pragma once

#include "engine/config.h"

namespace mcastcoll::group {

inline constexpr unsigned kMostChannels = 64;
inline constexpr unsigned kMostRootDelayUs = 100'000;

struct GroupSettings {
    engine::Repair repair = engine::Repair::pull;
    unsigned channels = 16;  // of the sync policy
    engine::RootSync root_sync = engine::RootSync::none;
    unsigned root_delay_us = 0;
};

}  // namespace mcastcoll::group
