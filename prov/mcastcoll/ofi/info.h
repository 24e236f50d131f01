// Owner of an fi_info list. Lists are only ever made by libfabric itself, whose newer versions append fields.
#pragma once

#include <rdma/fabric.h>

#include <memory>

namespace mcastcoll::ofi {

struct InfoDeleter {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoOwner = std::unique_ptr<fi_info, InfoDeleter>;

}  // namespace mcastcoll::ofi
