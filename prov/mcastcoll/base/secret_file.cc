#include "base/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file_descriptor.h"
#include "base/system.h"

namespace mcastcoll {
namespace {

constexpr std::size_t kMinBytes = 16, kMaxBytes = 4096;
// Smallest number of distinct bytes in a secret. 16 random bytes have fewer than 8 distinct ones with a
// probability below 1e-9.
constexpr std::ptrdiff_t kMinDifferent = 8;

Error refused(const std::string& path, std::string_view why) {
    return {EACCES, fmt::format("{} {}", path, why)};
}

Error unreadable(const std::string& path) {
    return system_error(errno, "cannot read " + path);
}

bool is_line_break(std::byte byte) {
    return byte == std::byte{'\n'} || byte == std::byte{'\r'};
}

}  // namespace

Result<std::vector<std::byte>> read_secret_file(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat state {};
    if (!file.valid() || ::fstat(file.get(), &state) != 0) return unreadable(path);
    if (!S_ISREG(state.st_mode)) return refused(path, "is not a regular file");
    if (state.st_uid != ::geteuid() && state.st_uid != 0)
        return refused(path,
                       "belongs to another user: it must belong to the user of this process, or to root");
    if ((state.st_mode & 077) != 0)
        return refused(path, "can be accessed by other users: run chmod 600 on it");
    std::vector<std::byte> secret(kMaxBytes + 1);
    const ssize_t got = ::read(file.get(), secret.data(), secret.size());
    if (got < 0) return unreadable(path);
    secret.resize(static_cast<std::size_t>(got));
    const bool is_longer = secret.size() > kMaxBytes;
    while (!secret.empty() && is_line_break(secret.back())) secret.pop_back();
    if (is_longer || secret.size() < kMinBytes)
        return refused(
            path, fmt::format("has the wrong length: it must have {} to {} bytes", kMinBytes, kMaxBytes));
    std::array<bool, 256> seen{};
    for (const std::byte byte : secret) seen[std::to_integer<std::size_t>(byte)] = true;
    if (std::ranges::count(seen, true) < kMinDifferent)
        return refused(path, "can be guessed: use random bytes, for example from head -c 32 /dev/urandom");
    return secret;
}

}  // namespace mcastcoll
