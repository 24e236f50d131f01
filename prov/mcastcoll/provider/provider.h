// The provider object passed to libfabric when it loads this library. libfabric stores its own state in the
// object, so exactly one exists and is never destroyed. Made in ofi/provider.cc.
#pragma once

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

namespace mcastcoll::provider {

inline constexpr const char* kProviderName = "mcastcoll";

fi_provider& provider();

}  // namespace mcastcoll::provider
