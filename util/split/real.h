// A function of the C library that this library interposes.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace mcastcoll::split {

// Resolved on the first call: constructors of other libraries may call interposed functions before ours run.
template <typename Function>
class Real {
  public:
    constexpr explicit Real(const char* name) : name_(name) {}

    template <typename... Arguments>
    auto operator()(Arguments... arguments) {
        Function* found = function_.load(std::memory_order_acquire);
        if (found == nullptr) {
            found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
            function_.store(found, std::memory_order_release);
        }
        return found(arguments...);
    }

  private:
    const char* const name_;
    std::atomic<Function*> function_{nullptr};
};

}  // namespace mcastcoll::split
