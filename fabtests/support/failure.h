// Failures of a functional test: one exception type, thrown by CHECK and related macros and caught at the top
// of a member's process. Only test programs throw; nothing here crosses a C boundary.
#pragma once

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <stdexcept>
#include <string>

namespace mcastcoll::fabtest {

class Failure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Thrown when the provider under test does not offer the feature that a case tests. The launcher reports a
// failure if mcastcoll throws it.
class Skipped : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

template <typename... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    throw Failure(fmt::format(text, std::forward<Arguments>(arguments)...));
}

// "-FI_EINVAL (Invalid argument)" for a libfabric error code; otherwise the number itself.
inline std::string describe(long value) {
    if (value >= 0) return fmt::format("{}", value);
    return fmt::format("{} ({})", value, fi_strerror(static_cast<int>(-value)));
}

inline void check(bool holds, const char* text, const char* file, int line) {
    if (!holds) fail("{}:{}: not so: {}", file, line, text);
}

inline void check_returns(long got, long wanted, const char* text, const char* file, int line) {
    if (got != wanted)
        fail("{}:{}: {} returned {} instead of {}", file, line, text, describe(got), describe(wanted));
}

}  // namespace mcastcoll::fabtest

#define CHECK(condition) ::mcastcoll::fabtest::check((condition), #condition, __FILE__, __LINE__)
// CHECK_RETURNS(0, fi_close(...)) or CHECK_RETURNS(-FI_EINVAL, ...).
#define CHECK_RETURNS(wanted, call) \
    ::mcastcoll::fabtest::check_returns((call), (wanted), #call, __FILE__, __LINE__)
