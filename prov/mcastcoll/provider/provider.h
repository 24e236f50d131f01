// What libfabric is handed when it loads this library. libfabric keeps its own state in it, so there is
// exactly one, and it is the one object here that outlives everything. Made in ofi/provider.cc.
#pragma once

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

namespace mcastcoll::ofi {

inline constexpr const char* kProviderName = "mcastcoll";

fi_provider& provider();

}  // namespace mcastcoll::ofi
