// Writes lines to libfabric's log under the provider's name. FI_LOG_LEVEL and FI_LOG_PROV select the lines.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace mcastcoll::provider {

enum class Level : std::uint8_t { warn, info, debug };

bool log_enabled(Level level);
void write_log(Level level, const std::string& text);

// Drops the line if memory is lacking: logging must not make an operation fail.
template <typename... Arguments>
void log_line(Level level, fmt::format_string<Arguments...> text, Arguments&&... arguments) noexcept {
    try {
        if (log_enabled(level)) write_log(level, fmt::format(text, std::forward<Arguments>(arguments)...));
    } catch (...) {
    }
}

// Logs the reason why a call fails and returns the error code.
inline int refuse(const char* call, const Error& error) noexcept {
    log_line(Level::warn, "{}: {}", call, error.message);
    return -error.code;
}

}  // namespace mcastcoll::provider
