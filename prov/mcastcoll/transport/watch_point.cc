#include "transport/watch_point.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "base/system.h"
#include "wire/bytes.h"

namespace mcastcoll::transport {
namespace {

// The layout of an encoded watch point. All integers are big-endian.
constexpr std::size_t kVersionAt = 0;
constexpr std::size_t kFamilyAt = 1;  // 0, 4 or 6
constexpr std::size_t kPortAt = 2;
constexpr std::size_t kPidAt = 4;
constexpr std::size_t kStartAt = 8;
constexpr std::size_t kHostAt = 16;
constexpr std::size_t kAddressAt = 24;
constexpr std::size_t kScopeAt = 40;
constexpr std::size_t kTokenAt = 44;
static_assert(kTokenAt + 4 == kWatchPointBytes && kWatchPointBytes <= 64);
constexpr std::byte kVersion{2};
constexpr std::uint64_t kHostSeed = 0x6d63617374686f73;

}  // namespace

std::array<std::byte, kWatchPointBytes> encode_watch_point(const WatchPoint& point) {
    std::array<std::byte, kWatchPointBytes> out{};
    out[kVersionAt] = kVersion;
    if (point.listener.valid()) {
        out[kFamilyAt] = point.listener.family() == AF_INET ? std::byte{4} : std::byte{6};
        wire::put(&out[kPortAt], point.listener.port());
        const Bytes address = point.listener.address_bytes();
        std::copy(address.begin(), address.end(), out.begin() + kAddressAt);
        wire::put(&out[kScopeAt], point.listener.scope());
    }
    wire::put(&out[kPidAt], point.pid);
    wire::put(&out[kStartAt], point.start_time);
    wire::put(&out[kHostAt], point.host);
    wire::put(&out[kTokenAt], point.token);
    return out;
}

Result<WatchPoint> decode_watch_point(Bytes bytes) {
    if (bytes.size() != kWatchPointBytes)
        return Error{EINVAL,
                     fmt::format("a watch point has {} bytes, not {}", kWatchPointBytes, bytes.size())};
    if (bytes[kVersionAt] != kVersion)
        return Error{EINVAL, fmt::format("a watch point of version {} is unknown",
                                         std::to_integer<unsigned>(bytes[kVersionAt]))};
    WatchPoint point;
    point.pid = wire::get<std::uint32_t>(&bytes[kPidAt]);
    point.start_time = wire::get<std::uint64_t>(&bytes[kStartAt]);
    point.host = wire::get<std::uint64_t>(&bytes[kHostAt]);
    point.token = wire::get<std::uint32_t>(&bytes[kTokenAt]);
    const auto family = std::to_integer<unsigned>(bytes[kFamilyAt]);
    const std::uint16_t port = wire::get<std::uint16_t>(&bytes[kPortAt]);
    if (family != 0 && family != 4 && family != 6)
        return Error{EINVAL, "a watch point's address is neither IPv4 nor IPv6"};
    if (family != 0)
        point.listener = SocketAddress(bytes.subspan(kAddressAt, family == 4 ? 4 : 16), port,
                                       wire::get<std::uint32_t>(&bytes[kScopeAt]));
    if (point.listener.valid() && (port == 0 || point.listener.is_multicast()))
        return Error{EINVAL, fmt::format("a watch point cannot be at {}", point.listener)};
    if (point.pid > INT32_MAX) return Error{EINVAL, fmt::format("{} is not a process number", point.pid)};
    if (!point.listener.valid() && point.pid == 0)
        return Error{EINVAL, "a watch point has neither a listener nor a process"};
    return point;
}

std::uint64_t local_host_id() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat pid_namespace = {};
    struct stat net_namespace = {};
    if (boot.empty() || ::stat("/proc/self/ns/pid", &pid_namespace) != 0 ||
        ::stat("/proc/self/ns/net", &net_namespace) != 0)
        return 0;
    const std::string text = fmt::format("{}\n {} {}", boot, pid_namespace.st_ino, net_namespace.st_ino);
    const std::uint64_t hash = stable_hash(std::as_bytes(std::span(text)), kHostSeed);
    return hash == 0 ? 1 : hash;
}

// proc(5): field 2 is the name in brackets, which may contain any character, and field 22 is the start time.
Result<std::uint64_t> process_start_time(pid_t pid) {
    constexpr int kFieldsBetween = 19;
    std::string text, field;
    std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid)), text, '\0');
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    for (int i = 0; i < kFieldsBetween; ++i) fields >> field;
    std::uint64_t ticks = 0;
    if (fields >> ticks) return ticks;
    return Error{ESRCH, fmt::format("/proc has no start time of process {}", pid)};
}

}  // namespace mcastcoll::transport
