// Restores errno at the end of a block.
#pragma once

#include <cerrno>

namespace mcastcoll::split {

class KeepErrno {
  public:
    KeepErrno() noexcept : before_(errno) {}
    ~KeepErrno() { errno = before_; }
    bool instead(int error) const noexcept {  // returns false, so that the caller can return the result
        before_ = error;
        return false;
    }
    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

  private:
    mutable int before_;
};

}  // namespace mcastcoll::split
