#include "transport/verbs_address.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "wire/bytes.h"

namespace mcastcoll::transport {
namespace {

// Known devices have 1 to 3 ports. Limits the search for the port in a name.
constexpr int kMaxPorts = 16;

constexpr std::size_t kMappedAt = 12;
constexpr std::size_t kV4HeaderAt = kRouteHeaderBytes - 20;

bool is_mapped(const Gid& gid) {
    return std::all_of(gid.begin(), gid.begin() + 10, [](std::byte byte) { return byte == std::byte{0}; }) &&
           gid[10] == std::byte{0xff} && gid[11] == std::byte{0xff};
}

// True for a valid IPv4 header without options: its 16-bit ones' complement sum is all ones.
bool is_v4_header(std::span<const std::byte, 20> header) {
    if (header[0] != std::byte{0x45}) return false;
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < header.size(); at += 2) sum += wire::get<std::uint16_t>(header.data() + at);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

// Returns the IPoIB interface of a port. The kernel's description of the port does not name the interface. So
// this is the first one by name among the adapter's interfaces with the port's number: the names of child
// interfaces (of other partitions) begin with their parent's name.
std::string ipoib_interface(const std::string& device, int port) {
    std::string first;
    std::error_code failed;
    for (std::filesystem::directory_iterator at(device + "/device/net", failed), end; !failed && at != end;
         at.increment(failed)) {
        std::ifstream file(at->path() / "dev_port");
        const std::string name = at->path().filename();
        int number = -1;
        if (file >> number && number == port - 1 && (first.empty() || name < first)) first = name;
    }
    return first;
}

}  // namespace

Gid gid_of(const SocketAddress& address) {
    Gid gid{};
    const Bytes bytes = address.address_bytes();
    if (bytes.size() == gid.size()) {
        std::copy(bytes.begin(), bytes.end(), gid.begin());
    } else if (bytes.size() == gid.size() - kMappedAt) {
        gid[10] = gid[11] = std::byte{0xff};
        std::copy(bytes.begin(), bytes.end(), gid.begin() + kMappedAt);
    }
    return gid;
}

SocketAddress address_of(const Gid& gid) {
    return SocketAddress(Bytes(gid).subspan(is_mapped(gid) ? kMappedAt : 0), 0);
}

// ff1s:a01b::/32, where s is the scope.
bool is_assigned_group(const SocketAddress& group) {
    const Bytes bytes = group.address_bytes();
    return bytes.size() == sizeof(Gid) && bytes[0] == std::byte{0xff} && (bytes[1] >> 4) == std::byte{1} &&
           bytes[2] == std::byte{0xa0} && bytes[3] == std::byte{0x1b};
}

std::uint16_t port_of_queue_pair(std::uint32_t number) {
    return static_cast<std::uint16_t>(number % 65535 + 1);
}

// Looks for an IPv4 header first, by its checksum: it fills only the second half, and the first half holds
// old data.
std::optional<SocketAddress> source_in(std::span<const std::byte, kRouteHeaderBytes> header) {
    const auto v4 = header.last<kRouteHeaderBytes - kV4HeaderAt>();
    if (is_v4_header(v4)) return SocketAddress(v4.subspan<12, sizeof(in_addr)>(), 0);
    if ((header[0] & std::byte{0xf0}) != std::byte{0x60}) return {};
    Gid from;
    std::copy_n(header.data() + 8, from.size(), from.begin());
    return address_of(from);
}

std::string interface_of_rdma_device(std::string_view device, const std::string& devices) {
    const auto colon = device.find(':');
    const std::string wanted(colon == std::string_view::npos ? "" : device.substr(colon + 1));
    const std::string name(device.substr(0, colon));
    // A device is a folder's name, never a path.
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) return {};
    const std::string at = devices + "/" + name;
    for (int port = 1; port <= kMaxPorts; ++port) {
        const std::string number = std::to_string(port);
        std::error_code failed;
        if ((!wanted.empty() && wanted != number) ||
            !std::filesystem::exists(at + "/ports/" + number, failed))
            continue;
        std::ifstream file(at + "/ports/" + number + "/gid_attrs/ndevs/0");
        std::string interface;
        if (file >> interface) return interface;
        if (interface = ipoib_interface(at, port); !interface.empty()) return interface;
    }
    return {};
}

std::string why_no_rdma() {
    std::error_code failed;
    const std::filesystem::directory_iterator devices(kRdmaDevices, failed);
    if (failed || devices == std::filesystem::directory_iterator()) return "there is no RDMA device";
    // In containers, devices may be visible but not usable.
    if (!std::filesystem::exists("/dev/infiniband/rdma_cm", failed))
        return "there is an RDMA device, but no /dev/infiniband/rdma_cm (is rdma_ucm loaded?)";
    return {};
}

}  // namespace mcastcoll::transport
