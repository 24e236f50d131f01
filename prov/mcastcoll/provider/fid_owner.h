// Closes an object when it goes out of scope.
#pragma once

#include <rdma/fabric.h>

#include <memory>

namespace mcastcoll::provider {

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

}  // namespace mcastcoll::provider
