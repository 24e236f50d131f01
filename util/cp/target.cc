#include "cp/target.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

namespace mcastcoll::cp {
namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

}  // namespace

std::optional<struct stat> Target::Place::look(const std::string& what, int flags) const {
    struct stat found {};
    if (::fstatat(folder.get(), what.c_str(), &found, flags) != 0) return std::nullopt;
    return found;
}

FileDescriptor open_step_by_step(int base, const std::string& path) {
    FileDescriptor folder(::openat(base, ".", kFolder));
    for (std::size_t at = 0; at < path.size() && folder.valid();) {
        const std::size_t slash = std::min(path.find('/', at), path.size());
        folder =
            FileDescriptor(::openat(folder.get(), path.substr(at, slash - at).c_str(), kFolder | O_NOFOLLOW));
        at = slash + 1;
    }
    return folder;
}

FileDescriptor open_beneath(int base, const std::string& path) {
    open_how how{};
    how.flags = kFolder;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    FileDescriptor folder(static_cast<int>(::syscall(SYS_openat2, base, path.c_str(), &how, sizeof how)));
    // System call filters return EPERM for calls newer than the filter.
    if (folder.valid() || (errno != ENOSYS && errno != EPERM)) return folder;
    return open_step_by_step(base, path);
}

// The user gave the target's path, so links in this path are followed.
Target::Place Target::place_of(const Entry& entry) {
    if (entry.path.empty()) {
        const std::size_t slash = path_.rfind('/');
        const std::string above = slash == std::string::npos ? "."
                                  : slash == 0               ? "/"
                                                             : path_.substr(0, slash);
        return {FileDescriptor(::open(above.c_str(), kFolder)), path_.substr(slash + 1)};
    }
    if (!folder_.valid()) folder_ = FileDescriptor(::open(path_.c_str(), kFolder));
    const std::size_t slash = entry.path.rfind('/');
    std::string name = entry.path.substr(slash + 1);
    if (!folder_.valid()) return {FileDescriptor(), std::move(name)};
    const std::string below = slash == 0 ? "." : entry.path.substr(1, slash - 1);
    return {open_beneath(folder_.get(), below), std::move(name)};
}

}  // namespace mcastcoll::cp
