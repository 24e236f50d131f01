#include "provider/log.h"

#include <cerrno>

#include "provider/provider.h"

namespace mcastcoll::ofi {
namespace {

fi_log_level to_libfabric(Level level) {
    switch (level) {
        case Level::warn:
            return FI_LOG_WARN;
        case Level::info:
            return FI_LOG_INFO;
        case Level::debug:
            return FI_LOG_DEBUG;
    }
    return FI_LOG_WARN;
}

}  // namespace

bool log_enabled(Level level) {
    return fi_log_enabled(&provider(), to_libfabric(level), FI_LOG_CORE) != 0;
}

void write_log(Level level, const std::string& text) {
    const int saved = errno;
    fi_log(&provider(), to_libfabric(level), FI_LOG_CORE, "mcastcoll", 0, "%s\n", text.c_str());
    errno = saved;
}

}  // namespace mcastcoll::ofi
