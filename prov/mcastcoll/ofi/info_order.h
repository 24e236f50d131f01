// Orders the inner provider's infos by interface and removes unwanted ones.
//
// libfabric lists the fastest interface first, and applications take the first info. The first info may be
// that of docker0, which has the same address on every host, or a link-local address.
#pragma once

#include <string>

#include "provider/info_owner.h"

namespace mcastcoll::ofi {

// `iface`: FI_MCASTCOLL_IFACE, or empty. A request that names an address or a domain gets libfabric's order.
provider::InfoOwner order_infos(provider::InfoOwner list, const provider::InfoRequest& request,
                                const std::string& iface);

}  // namespace mcastcoll::ofi
