// Owner of an fi_info list, and a request for one. Lists are only ever made by libfabric itself, whose newer
// versions append fields.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>

namespace mcastcoll::ofi {

struct InfoDeleter {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoOwner = std::unique_ptr<fi_info, InfoDeleter>;

// What fi_getinfo() is asked.
struct InfoRequest {
    std::uint32_t version;
    const char* node;
    const char* service;
    std::uint64_t flags;
    const fi_info* hints;
};

}  // namespace mcastcoll::ofi
