// The C library's own functions, past ours of the same name.
//
// Each is looked up when it is first needed: other libraries' constructors may call them before ours runs.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace mcastcoll::split {

template <typename Function>
class Real {
  public:
    constexpr explicit Real(const char* name) : name_(name) {}

    Function* get() {
        Function* found = function_.load(std::memory_order_acquire);
        if (found == nullptr) {
            found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
            function_.store(found, std::memory_order_release);
        }
        return found;
    }
    template <typename... Arguments>
    auto operator()(Arguments... arguments) {
        return get()(arguments...);
    }

  private:
    const char* const name_;
    std::atomic<Function*> function_{nullptr};
};

}  // namespace mcastcoll::split
