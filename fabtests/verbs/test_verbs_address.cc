// The parts of multicast over RDMA without a device: addresses, headers, and when the transport is not used.
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "transport/verbs_address.h"
#include "transport/verbs_transport.h"

using namespace mcastcoll;
using namespace mcastcoll::transport;

TestSuite(verbs_address, .timeout = 30);

namespace {

using Header = std::array<std::byte, kRouteHeaderBytes>;

SocketAddress address(const char* text) {
    return SocketAddress::parse(text).value();
}

// The IPv4 header of a datagram from 10.9.0.1 to 239.1.2.3, with its checksum.
constexpr std::array<unsigned, 20> kV4 = {0x45, 0, 0,  0x40, 0, 0, 0x40, 0, 1, 17,
                                          0,    0, 10, 9,    0, 1, 239,  1, 2, 3};

Header v4_header() {
    Header header{};
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < kV4.size(); ++i) {
        header[20 + i] = static_cast<std::byte>(kV4[i]);
        sum += i % 2 == 0 ? kV4[i] << 8 : kV4[i];
    }
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    header[30] = static_cast<std::byte>(~sum >> 8 & 0xff);
    header[31] = static_cast<std::byte>(~sum & 0xff);
    return header;
}

}  // namespace

Test(verbs_address, gids_and_back) {
    const Gid mapped = gid_of(address("239.1.2.3"));
    cr_assert_eq(mapped[9], std::byte{0});
    cr_assert_eq(mapped[10], std::byte{0xff});
    cr_assert_eq(mapped[12], std::byte{239});
    for (const char* text : {"239.1.2.3", "10.9.0.1", "ff15::1:2", "fe80::1"}) {
        cr_assert(address_of(gid_of(address(text))) == address(text), "%s", text);
    }
}

Test(verbs_address, queue_pairs_have_ports) {
    cr_assert_eq(port_of_queue_pair(0), 1);
    cr_assert_eq(port_of_queue_pair(17), 18);
    for (const std::uint32_t number : {65534u, 65535u, 0xffffffu})
        cr_assert_gt(port_of_queue_pair(number), 0);
    cr_assert_neq(port_of_queue_pair(65535), port_of_queue_pair(65536));
}

Test(verbs_address, sources_of_roce_v2_in_ipv4) {
    Header header = v4_header();
    cr_assert(source_in(header) == address("10.9.0.1"));
    // Bytes of an earlier datagram in front of the header are ignored.
    header[0] = std::byte{0x60};
    cr_assert(source_in(header) == address("10.9.0.1"));
    // A damaged header is refused.
    header = v4_header();
    header[33] ^= std::byte{1};
    cr_assert_not(source_in(header).has_value());
}

Test(verbs_address, sources_of_route_headers) {
    Header header{};
    cr_assert_not(source_in(header).has_value());
    header[0] = std::byte{0x60};
    const Gid from = gid_of(address("fe80::2:3"));
    std::copy(from.begin(), from.end(), header.begin() + 8);
    cr_assert(source_in(header) == address("fe80::2:3"));
    const Gid mapped = gid_of(address("10.9.0.1"));
    std::copy(mapped.begin(), mapped.end(), header.begin() + 8);
    cr_assert(source_in(header) == address("10.9.0.1"));
}

Test(verbs_address, names_of_devices_are_no_paths) {
    for (const char* name :
         {"", "no_such_device", "no_such_device:1", "..", ".", "../net/lo", ":", ":1", "/"})
        cr_assert(interface_of_rdma_device(name).empty(), "%s", name);
}

// A device tree like the kernel's: RoCE's ports name their interface, InfiniBand's do not.
Test(verbs_address, interfaces_of_devices) {
    char root[] = "/tmp/mcc-devices-XXXXXX";
    cr_assert_not_null(::mkdtemp(root));
    const std::filesystem::path devices = root;
    const auto write = [&](const std::string& path, const char* text) {
        std::filesystem::create_directories((devices / path).parent_path());
        std::ofstream(devices / path) << text;
    };
    write("roce/ports/1/gid_attrs/ndevs/0", "eth3\n");
    for (const char* port : {"ib/ports/1/state", "ib/ports/2/state"}) write(port, "4: ACTIVE\n");
    write("ib/device/net/ib0/dev_port", "0\n");
    write("ib/device/net/ib1.8001/dev_port", "1\n");
    write("ib/device/net/ib1/dev_port", "1\n");
    write("bare/ports/1/state", "1: DOWN\n");
    for (const auto& [device, interface] : {std::pair{"roce", "eth3"},
                                            {"roce:1", "eth3"},
                                            {"roce:2", ""},
                                            {"ib", "ib0"},
                                            {"ib:1", "ib0"},
                                            {"ib:2", "ib1"},
                                            {"ib:3", ""},
                                            {"bare", ""},
                                            {"bare:1", ""}}) {
        const std::string found = interface_of_rdma_device(device, devices);
        cr_assert_str_eq(found.c_str(), interface, "%s", device);
    }
    std::filesystem::remove_all(devices);
}

Test(verbs_address, groups_that_a_subnet_manager_chose) {
    for (const char* text : {"ff12:a01b::7", "ff15:a01b:1::", "ff1e:a01b::1"})
        cr_assert(is_assigned_group(address(text)), "%s", text);
    for (const char* text : {"ff12:401b::7", "ff02:a01b::7", "fe12:a01b::7", "239.1.2.3"})
        cr_assert_not(is_assigned_group(address(text)), "%s", text);
}

Test(verbs_address, what_is_not_there_is_passed_over) {
    VerbsOptions options;
    options.interface = find_interface_by_name("lo").value();
    const auto opened = open_verbs(options);
    cr_assert_not(opened.ok());
    cr_assert(opened.error().code == ENODEV || opened.error().code == ENOSYS, "%d", opened.error().code);
    cr_assert_not(opened.error().message.empty());
}
