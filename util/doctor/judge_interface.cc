// Judges the interface and its sockets, of each host separately.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "judging.h"

namespace mcastcoll::doctor {
namespace {

constexpr std::uint32_t kUsualMtu = 1500;
constexpr std::uint64_t kMinWindow = 32;  // datagrams: the number taken by one system call

void judge_buffers(Judging& judging) {
    const auto requested_too_little = [](const Host& host) {
        return host.network.socket_error.empty() && host.network.window < kMinWindow &&
               host.network.buffer_granted >= 2 * host.network.buffer_wanted &&
               host.network.buffer_wanted != 0;
    };
    judging.find_where(
        [](const Host& host) {
            return host.network.buffer_granted != 0 &&
                   host.network.buffer_granted < 2 * host.network.buffer_wanted;
        },
        [](const Host& host) {
            const Network& network = host.network;
            const std::string max = network.rmem_max ? size_text(*network.rmem_max) : "less";
            return Finding{
                "buffer-small",
                Severity::limits,
                fmt::format("Sockets may buffer only {}, but {} are requested.", max,
                            size_text(network.buffer_wanted)),
                "net.core.rmem_max is the maximum for a program without privileges.",
                fmt::format("A root may have {} datagrams in flight; datagrams that arrive while a receiver "
                            "is busy are lost and must be repaired.",
                            network.window),
                fmt::format("sysctl -w net.core.rmem_max={0}\n"
                            "for good: echo net.core.rmem_max={0} >/etc/sysctl.d/90-mcastcoll.conf",
                            network.buffer_wanted),
                {}};
        });
    judging.find_where(
        [](const Host& host) { return host.network.buffer_forced; },
        [](const Host& host) {
            return Finding{
                "buffer-small",
                Severity::limits,
                fmt::format("Sockets of ordinary users may buffer only {}, but {} are requested.",
                            size_text(*host.network.rmem_max), size_text(host.network.buffer_wanted)),
                "net.core.rmem_max is the maximum for a program without privileges. The doctor ran with "
                "privileges and got more.",
                "Datagrams that arrive while such a user's receiver is busy are lost and must be repaired.",
                fmt::format("sysctl -w net.core.rmem_max={0}\n"
                            "for good: echo net.core.rmem_max={0} >/etc/sysctl.d/90-mcastcoll.conf",
                            host.network.buffer_wanted),
                {}};
        });
    judging.find_where(requested_too_little, [](const Host& host) {
        return Finding{"buffer-tiny",
                       Severity::limits,
                       fmt::format("Sockets buffer only {}.", size_text(host.network.buffer_wanted)),
                       fmt::format("FI_MCASTCOLL_RCVBUF={} is set.", host.network.buffer_wanted),
                       "A root stops after every few datagrams, and most bursts lose some.",
                       "unset FI_MCASTCOLL_RCVBUF",
                       {}};
    });
    if (judging.present().empty()) return;
    const Network& first = judging.host(judging.present().front()).network;
    if (!judging.found("buffer-small") && !judging.found("buffer-tiny") && first.buffer_granted != 0)
        judging.fine(fmt::format("receive buffers of {}: room for {} datagrams from each root",
                                 size_text(first.buffer_granted / 2), first.window));
}

void judge_mtu(Judging& judging) {
    judging.find_where(
        [](const Host& host) { return host.network.mtu != 0 && host.network.mtu < kUsualMtu; },
        [](const Host& host) {
            return Finding{
                "mtu-small",
                Severity::limits,
                fmt::format("Interface {} has an MTU of {} bytes.", host.network.interface, host.network.mtu),
                "Ethernet has 1500; a smaller MTU mostly belongs to a tunnel or an overlay network.",
                "The smallest MTU of a group's hosts applies to all of them: messages need more and smaller "
                "datagrams.",
                fmt::format("ip link set dev {} mtu 1500, if all switches and tunnels in between allow it",
                            host.network.interface),
                {}};
        });
    std::set<std::uint32_t> sizes;
    for (const unsigned i : judging.senders()) sizes.insert(judging.host(i).network.mtu);
    if (sizes.size() > 1)
        judging.find({"mtu-differs",
                      Severity::limits,
                      fmt::format("Hosts have different MTUs: {}.", fmt::join(sizes, ", ")),
                      "Their interfaces are configured differently.",
                      fmt::format("All multicasts use the smallest MTU, {}; and switches drop packets that "
                                  "are longer than their own MTU.",
                                  *sizes.begin()),
                      "ip link set dev INTERFACE mtu N, with the same N on all hosts",
                      {}});
}

void judge_subnets(Judging& judging) {
    std::set<std::string> subnets;
    for (const unsigned i : judging.senders()) subnets.insert(judging.host(i).network.subnet);
    if (subnets.size() < 2) return;
    judging.find(
        {"subnets-differ",
         Severity::limits,
         fmt::format("Hosts are in different subnets: {}.", fmt::join(subnets, ", ")),
         "Multicasts stay in their subnet unless routers are configured to forward them.",
         "Each subnet has its own multicast; between subnets collectives use point-to-point messages.",
         "No action is needed. If routers forward multicast: FI_MCASTCOLL_TTL=8 "
         "FI_MCASTCOLL_TOPOLOGY=site=one,segment=all",
         {}});
}

// Whether the two are containers of one machine with the same network.
bool have_one_network(const Host& a, const Host& b) {
    return a.machine.boot == b.machine.boot && a.machine.net_namespace == b.machine.net_namespace;
}

void judge_addresses(Judging& judging) {
    std::map<std::string, std::vector<unsigned>> hosts;
    for (const unsigned i : judging.senders())
        if (!judging.host(i).network.loopback && !judging.host(i).network.address.empty())
            hosts[judging.host(i).network.address].push_back(i);
    for (const auto& [address, at] : hosts) {
        const Host& first = judging.host(at.front());
        if (std::ranges::all_of(at, [&](unsigned i) { return have_one_network(first, judging.host(i)); }))
            continue;
        judging.find(
            {"address-shared",
             Severity::broken,
             fmt::format("Several hosts have the same address, {}.", address),
             fmt::format("The provider uses interface {}, whose address is the same on these hosts, like "
                         "that of docker0: packets to another of these hosts do not leave the sender.",
                         first.network.interface),
             "No group forms: programs run without mcastcoll.",
             "FI_MCASTCOLL_IFACE=NAME with the interface that connects the hosts",
             {}},
            at);
    }
    judging.find_where(
        [](const Host& host) { return host.sends && host.network.address.starts_with("fe80:"); },
        [](const Host& host) {
            return Finding{"link-local",
                           Severity::note,
                           fmt::format("Interface {} has only a link-local address.", host.network.interface),
                           "It has no IPv4 address and no global IPv6 address.",
                           "mcastcoll works between hosts of this link; other software may not.",
                           "ip address add ADDRESS/LENGTH dev " + host.network.interface,
                           {}};
        });
}

void judge_offloads(Judging& judging) {
    judging.find_where(
        [](const Host& host) {
            const Network& network = host.network;
            const bool physical = !network.driver.empty();
            return !network.loopback && ((network.segmentation && !*network.segmentation) ||
                                         (physical && network.coalescing && !*network.coalescing));
        },
        [](const Host& host) {
            return Finding{
                "offload-off",
                Severity::note,
                fmt::format("Interface {} handles each datagram separately.", host.network.interface),
                "Segmentation (gso) or coalescing (gro) is disabled.",
                "The kernel handles datagrams one by one instead of in runs; this work is most of the cost "
                "of a long broadcast.",
                fmt::format("ethtool -K {} gso on gro on tx-udp-segmentation on", host.network.interface),
                {}};
        });
}

}  // namespace

void judge_interface(Judging& judging) {
    judging.find_where([](const Host& host) { return !host.network.error.empty(); },
                       [](const Host& host) {
                           return Finding{"no-interface",
                                          Severity::broken,
                                          "There is no interface for multicast.",
                                          host.network.error + ".",
                                          "Collectives between hosts use point-to-point messages.",
                                          "ip -brief address, then FI_MCASTCOLL_IFACE=NAME",
                                          {}};
                       });
    judging.find_where(
        [](const Host& host) { return !host.network.socket_error.empty(); },
        [](const Host& host) {
            return Finding{"no-sockets",
                           Severity::broken,
                           fmt::format("Multicast sockets cannot be opened on {}.", host.network.interface),
                           host.network.socket_error + ".",
                           "Collectives between hosts use point-to-point messages.",
                           fmt::format("ip link set dev {0} up multicast on; or "
                                       "FI_MCASTCOLL_IFACE=NAME of another interface",
                                       host.network.interface),
                           {}};
        });
    judging.find_where([](const Host& host) { return host.network.loopback; },
                       [&](const Host& host) {
                           const bool alone = judging.senders().size() < 2;
                           return Finding{
                               "loopback",
                               alone ? Severity::limits : Severity::broken,
                               "Multicasts would use the loopback interface and reach no other host.",
                               fmt::format("The provider's own address is {}.", host.network.address),
                               "Other hosts receive nothing.",
                               "FI_MCASTCOLL_IFACE=NAME with the interface that connects the hosts; and let "
                               "this host's name resolve to its address there (/etc/hosts)",
                               {}};
                       });
    judge_offloads(judging);
    judge_buffers(judging);
    judge_mtu(judging);
    judge_subnets(judging);
    judge_addresses(judging);
    if (judging.present().empty()) return;
    const Network& first = judging.host(judging.present().front()).network;
    if (first.interface.empty() || !first.socket_error.empty() || judging.found("address-shared")) return;
    judging.fine(fmt::format("interface {}, {}, MTU {}{}", first.interface, first.address, first.mtu,
                             first.speed_mbit ? fmt::format(", {} Mbit/s", *first.speed_mbit) : ""));
    for (const unsigned i : judging.present())
        if (!judging.host(i).network.rmem_max)
            judging.unseen("net.core.rmem_max", judging.host(i).network.rmem_max.why_not);
}

}  // namespace mcastcoll::doctor
