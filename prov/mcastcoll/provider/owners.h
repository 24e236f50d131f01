// Owners of libfabric's objects and info lists.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace mcastcoll::ofi {

// Closes an object when it goes out of scope.
struct FidCloser {
    template <typename Fid>
    void operator()(Fid* fid) const {
        fi_close(&fid->fid);
    }
};
template <typename Fid>
class FidOwner : public std::unique_ptr<Fid, FidCloser> {
    // Collects the result of a call with an output argument. The owner receives the object at the end of the
    // full expression.
    struct Out {
        FidOwner& owner;
        Fid* fid = nullptr;
        ~Out() { owner.reset(fid); }
        operator Fid**() { return &fid; }
    };

  public:
    using std::unique_ptr<Fid, FidCloser>::unique_ptr;
    Out out() { return {*this}; }
};

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

}  // namespace mcastcoll::ofi
