// The owner of a list of libfabric's infos, and the request for a list.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>

namespace mcastcoll::provider {

// Only libfabric itself allocates infos, because newer versions append fields.
struct InfoDeleter {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoOwner = std::unique_ptr<fi_info, InfoDeleter>;

// The arguments of fi_getinfo().
struct InfoRequest {
    std::uint32_t version;
    const char* node;
    const char* service;
    std::uint64_t flags;
    const fi_info* hints;
};

}  // namespace mcastcoll::provider
