// Owners of what libfabric hands out: its objects, and lists of infos.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace mcastcoll::ofi {

// Closes an object when it goes out of scope.
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

// Lists are only ever made by libfabric itself, whose newer versions append fields.
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
