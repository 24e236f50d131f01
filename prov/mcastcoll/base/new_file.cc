#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/system.h"

namespace mcastcoll {
namespace {

// Returns 0 or an errno value.
int write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t wrote = ::write(descriptor, text.data(), text.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
        text.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return 0;
}

}  // namespace

Result<void> write_new_file(int folder, const std::string& name, std::string_view text, mode_t mode) {
    const std::string unfinished = name + std::string(kUnfinishedSuffix);
    (void)::unlinkat(folder, unfinished.c_str(), 0);
    constexpr int kHow = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const FileDescriptor file(::openat(folder, unfinished.c_str(), kHow, mode));
    if (!file.valid()) return system_error(errno, unfinished);
    int code = write_all(file.get(), text);
    if (code == 0 && ::renameat(folder, unfinished.c_str(), folder, name.c_str()) != 0) code = errno;
    if (code == 0) return {};
    (void)::unlinkat(folder, unfinished.c_str(), 0);
    return system_error(code, name);
}

}  // namespace mcastcoll
