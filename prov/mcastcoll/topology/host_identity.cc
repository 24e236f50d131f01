#include "topology/host_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/file_descriptor.h"
#include "base/system.h"

namespace mcastcoll::topology {
namespace {

constexpr std::uint64_t kSeed = 0x6d6363686f737401;

}  // namespace

Result<HostIdentity> read_host_identity() {
    constexpr const char* kBoot = "/proc/sys/kernel/random/boot_id";
    HostIdentity identity;
    const FileDescriptor file(::open(kBoot, O_RDONLY | O_CLOEXEC));
    std::array<char, 64> text;
    const ssize_t got = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
    if (got <= 0) return system_error(got < 0 ? errno : EIO, kBoot);
    identity.boot.assign(text.data(), static_cast<std::size_t>(got));

    struct stat found = {};
    for (const auto& [path, inode] : {std::pair{"/proc/self/ns/pid", &identity.pid_namespace},
                                      {"/proc/self/ns/net", &identity.net_namespace},
                                      {"/proc/self/ns/user", &identity.user_namespace}}) {
        if (::stat(path, &found) != 0) return system_error(errno, path);
        *inode = found.st_ino;
    }
    if (::stat("/dev/shm", &found) != 0) return system_error(errno, "/dev/shm");
    if (!S_ISDIR(found.st_mode)) return Error{ENOTDIR, "/dev/shm is no folder"};
    if (::access("/dev/shm", W_OK | X_OK) != 0) return system_error(errno, "/dev/shm");
    identity.shm_device = found.st_dev;
    identity.shm_inode = found.st_ino;
    identity.user = ::geteuid();
    return identity;
}

std::uint64_t host_id(const HostIdentity& identity) {
    const std::string text =
        fmt::format("{} pid {} net {} user {} shm {} {} uid {}", identity.boot, identity.pid_namespace,
                    identity.net_namespace, identity.user_namespace, identity.shm_device, identity.shm_inode,
                    identity.user);
    const std::uint64_t hash = stable_hash(std::as_bytes(std::span(text)), kSeed);
    return hash == 0 ? 1 : hash;
}

std::string host_name() {
    std::array<char, 256> text{};
    if (::gethostname(text.data(), text.size() - 1) != 0) return "";
    const std::string_view name = text.data();
    return std::string(name.substr(0, name.find('.')));
}

}  // namespace mcastcoll::topology
