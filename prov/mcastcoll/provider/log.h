// Lines in libfabric's own log, under the provider's name: FI_LOG_LEVEL and FI_LOG_PROV rule them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace mcastcoll::ofi {

enum class Level : std::uint8_t { warn, info, debug };

bool log_enabled(Level level);
void write_log(Level level, const std::string& text);

// A line for which there is no memory is not written: what it tells of is worth more than the telling.
template <typename... Arguments>
void log_line(Level level, fmt::format_string<Arguments...> text, Arguments&&... arguments) noexcept {
    try {
        if (log_enabled(level)) write_log(level, fmt::format(text, std::forward<Arguments>(arguments)...));
    } catch (...) {
    }
}

// Says why a call fails; what it returns.
inline int refuse(const char* call, const Error& error) noexcept {
    log_line(Level::warn, "{}: {}", call, error.message);
    return -error.code;
}

}  // namespace mcastcoll::ofi
