#include "provider/log.h"

#include <cerrno>

#include "provider/provider.h"

namespace mcastcoll::provider {
namespace {

constexpr fi_log_level kLevels[] = {FI_LOG_WARN, FI_LOG_INFO, FI_LOG_DEBUG};  // in the order of Level

}  // namespace

bool log_enabled(Level level) {
    return fi_log_enabled(&provider(), kLevels[static_cast<std::size_t>(level)], FI_LOG_CORE) != 0;
}

void write_log(Level level, const std::string& text) {
    const int saved = errno;
    fi_log(&provider(), kLevels[static_cast<std::size_t>(level)], FI_LOG_CORE, "mcastcoll", 0, "%s\n",
           text.c_str());
    errno = saved;
}

}  // namespace mcastcoll::provider
