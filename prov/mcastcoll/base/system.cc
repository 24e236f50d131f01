#include "base/system.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <system_error>

namespace mcastcoll {

Error system_error(int code, const std::string& what) {
    return {code, fmt::format("{}: {}", what, std::generic_category().message(code))};
}

Result<void> kernel_random(MutableBytes out) {
    std::size_t filled = 0;
    while (filled < out.size()) {
        const ssize_t got = ::getrandom(out.data() + filled, out.size() - filled, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            return system_error(errno, "the kernel returned no random bytes");
        }
        filled += static_cast<std::size_t>(got);
    }
    return {};
}

// FNV-1a followed by the finaliser of SplitMix64, because FNV alone varies the high bits of short inputs too
// little.
std::uint64_t stable_hash(Bytes bytes, std::uint64_t seed) {
    std::uint64_t hash = 0xcbf29ce484222325ULL ^ seed * 0x9e3779b97f4a7c15ULL;
    for (const std::byte byte : bytes)
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3ULL;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
    return hash ^ hash >> 31;
}

}  // namespace mcastcoll
