// What the application asks of a join, in the words of groups: members by their addresses, and which of them
// this one is.
#pragma once

#include <rdma/fi_domain.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "group/welcome.h"
#include "ofi/av_set.h"
#include "wire/join.h"

namespace mcastcoll::ofi {

struct JoinPlan {
    wire::JoinId id;
    Rank self{};
    std::vector<wire::ByteString> members;  // inner addresses in rank order, normalised
    fi_addr_t token = 0;                    // what fi_mc_addr() shall say
    fi_addr_t parent = FI_ADDR_NOTAVAIL;    // the group that the application named as this one's parent
    void* context = nullptr;
    Nanoseconds deadline = kNever;  // of the join
    GroupSettings settings;         // this member's wish; rank 0's becomes the group's
};

// For the log.
std::string name_of(const JoinPlan& plan);

// An inner address with everything removed that differs between members: padding, scope, a name's trailing
// zeros.
wire::ByteString normalise_address(Bytes inner_address);

// Members, this one's rank, and the hash of the list; the rest is the station's to say.
Result<JoinPlan> plan_members(const AvSet& set, fid_av* av, const wire::ByteString& own_address);

}  // namespace mcastcoll::ofi
