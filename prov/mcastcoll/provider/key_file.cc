#include "provider/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file_descriptor.h"

namespace mcastcoll::ofi {
namespace {

constexpr std::size_t kLeastBytes = 16, kMostBytes = 4096;

Error refused(const std::string& path, std::string_view why) {
    return {EACCES, fmt::format("{} {}", path, why)};
}

}  // namespace

Result<wire::JoinKey> read_key_file(const std::string& path) {
    if (path.empty()) return wire::JoinKey();
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat state {};
    if (!file.valid() || ::fstat(file.get(), &state) != 0)
        return Error{errno, fmt::format("cannot read {}: {}", path, std::strerror(errno))};
    if (!S_ISREG(state.st_mode)) return refused(path, "is no regular file");
    if (state.st_uid != ::geteuid() && state.st_uid != 0) return refused(path, "is another user's");
    if ((state.st_mode & 077) != 0) return refused(path, "is open to others: chmod 600");
    wire::ByteString secret(kMostBytes + 1);
    const ssize_t got = ::read(file.get(), secret.data(), secret.size());
    if (got < 0) return Error{errno, fmt::format("cannot read {}: {}", path, std::strerror(errno))};
    const auto bytes = static_cast<std::size_t>(got);
    if (bytes < kLeastBytes || bytes > kMostBytes)
        return refused(path, fmt::format("does not have {} to {} bytes", kLeastBytes, kMostBytes));
    return wire::JoinKey(wire::derive({}, "key file", Bytes(secret).first(bytes)));
}

}  // namespace mcastcoll::ofi
