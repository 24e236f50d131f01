// The collective operations of an endpoint's table: what the application said becomes a request, which the
// station gets.
#pragma once

#include <rdma/fi_collective.h>

namespace mcastcoll::ofi {

// Makes every operation of the table ours.
void set_collectives(fi_ops_collective& table);

}  // namespace mcastcoll::ofi
