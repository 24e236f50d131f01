// What the application's event queue says of groups.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>

#include "base/types.h"

namespace mcastcoll::ofi {

void report_join(fid_eq* queue, fid_mc& mc, int error);
// A joined group has failed; lost may be kNoRank.
void report_failure(fid_eq* queue, fid_mc& mc, int error, Rank lost);

}  // namespace mcastcoll::ofi
