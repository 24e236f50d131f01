// Closes a libfabric object when it goes out of scope.
#pragma once

#include <rdma/fabric.h>

#include <utility>

namespace mcastcoll::ofi {

template <typename Fid>
class FidOwner {
  public:
    FidOwner() = default;
    explicit FidOwner(Fid* fid) : fid_(fid) {}
    FidOwner(FidOwner&& other) noexcept : fid_(std::exchange(other.fid_, nullptr)) {}
    FidOwner& operator=(FidOwner&& other) noexcept {
        std::swap(fid_, other.fid_);
        return *this;
    }
    ~FidOwner() { reset(); }

    void reset() {
        if (fid_ != nullptr) fi_close(&fid_->fid);
        fid_ = nullptr;
    }
    // It is somebody else's now.
    Fid* release() { return std::exchange(fid_, nullptr); }
    Fid* get() const { return fid_; }
    Fid* operator->() const { return fid_; }
    // For the fi_* calls that hand out an object.
    Fid** out() {
        reset();
        return &fid_;
    }
    explicit operator bool() const { return fid_ != nullptr; }

  private:
    Fid* fid_ = nullptr;
};

}  // namespace mcastcoll::ofi
