// The members of a welcome (rank 0's answer to the members of a join), with realistic addresses, ports,
// processes, start times and places.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "wire/bytes.h"
#include "wire/join.h"

namespace mcastcoll::test {

enum class Order { hosts, round_robin, shuffled };  // assignment of ranks to hosts

struct Cluster {
    std::size_t hosts = 1, ranks = 1;  // ranks: of each host
    Order order = Order::hosts;
    // Whether hosts have nothing in common: IPv6 addresses, names and subnets are then random.
    bool strange = false;
};

class PeerMaker {
  public:
    explicit PeerMaker(const Cluster& cluster) : cluster_(cluster) {}

    std::vector<wire::Peer> make() {
        std::vector<std::size_t> host_of;
        for (std::size_t rank = 0; rank < cluster_.hosts * cluster_.ranks; ++rank)
            host_of.push_back(cluster_.order == Order::hosts ? rank / cluster_.ranks : rank % cluster_.hosts);
        if (cluster_.order == Order::shuffled) std::shuffle(host_of.begin(), host_of.end(), random_);
        for (std::size_t host = 0; host < cluster_.hosts; ++host) hosts_.push_back(make_host(host));
        std::vector<wire::Peer> peers;
        for (const std::size_t host : host_of) peers.push_back(make_peer(hosts_[host]));
        return peers;
    }

  private:
    struct Host {
        wire::ByteString address;
        std::string name, subnet;
        std::uint64_t subnet_id = 0, watched_as = 0, id = 0, booted = 0;
        std::uint32_t pid = 0, ranks = 0;
    };

    std::uint64_t up_to(std::uint64_t max) { return random_() % (max + 1); }
    template <typename Unsigned>
    static void add(wire::ByteString& to, Unsigned value) {
        to.resize(to.size() + sizeof value);
        wire::put(to.data() + to.size() - sizeof value, value);
    }
    static void add(wire::ByteString& to, const wire::ByteString& bytes) {
        to.insert(to.end(), bytes.begin(), bytes.end());
    }
    static void add_named(wire::ByteString& to, std::uint8_t level, std::uint64_t id, std::string_view name) {
        add(to, level);
        add(to, id);
        add(to, static_cast<std::uint8_t>(name.size()));
        for (const char c : name) add(to, static_cast<std::uint8_t>(c));
    }

    Host make_host(std::size_t index) {
        Host host;
        const auto number = static_cast<std::uint16_t>(cluster_.strange ? up_to(65'535) : 1);
        if (cluster_.strange) {
            add(host.address, std::uint32_t{0xfd123456});
            add(host.address, std::uint16_t{0x789a});
            add(host.address, number);
            add(host.address, random_());
            host.name = fmt::format("{:012x}", up_to((std::uint64_t{1} << 48) - 1));
            host.subnet = fmt::format("fd12:3456:789a:{:x}::/64", number);
        } else {
            add(host.address, static_cast<std::uint32_t>(0x0a010000 + 16 + index));
            host.name = fmt::format("node{:04}", index + 1);
            host.subnet = "10.1.0.0/16";
        }
        host.subnet_id = std::mt19937_64(number)();
        host.watched_as = random_();
        host.id = random_();
        host.booted = up_to(400'000'000);
        host.pid = static_cast<std::uint32_t>(1000 + up_to(cluster_.strange ? 4'190'000 : 30'000));
        return host;
    }

    wire::Peer make_peer(Host& host) {
        const bool ipv6 = host.address.size() == 16;
        wire::Peer peer;
        // sockaddr_in or sockaddr_in6
        wire::ByteString& own = peer.private_address;
        add(own, static_cast<std::uint16_t>((ipv6 ? 10 : 2) << 8));
        add(own, port());
        if (ipv6) add(own, std::uint32_t{0});
        add(own, host.address);
        add(own, wire::ByteString(ipv6 ? 4 : 8));
        // transport/socket_address.h
        add(peer.multicast_source, static_cast<std::uint8_t>(ipv6 ? 6 : 4));
        add(peer.multicast_source, port());
        add(peer.multicast_source, host.address);
        // transport/watch_point.h
        wire::ByteString& watch = peer.watch_point;
        add(watch, std::uint8_t{1});
        add(watch, static_cast<std::uint8_t>(ipv6 ? 6 : 4));
        add(watch, port());
        add(watch, host.pid += 1 + static_cast<std::uint32_t>(up_to(3)));
        add(watch, host.booted + up_to(300));
        add(watch, host.watched_as);
        add(watch, host.address);
        watch.resize(48);
        // topology/place.h: site, segment, host, package, NUMA node, L3 cache, core
        wire::ByteString& place = peer.place;
        add(place, std::uint8_t{1});
        add(place, std::uint8_t{7});
        add_named(place, 1, host.subnet_id, host.subnet);
        add_named(place, 2, host.subnet_id, host.subnet);
        add_named(place, 3, host.id, host.name);
        for (const auto& [level, size] : {std::pair{4, 16U}, {5, 8U}, {6, 4U}, {8, 1U}}) {
            add(place, static_cast<std::uint8_t>(level));
            add(place, host.ranks / size);
        }
        ++host.ranks;
        return peer;
    }
    std::uint16_t port() { return static_cast<std::uint16_t>(32'768 + up_to(28'231)); }

    const Cluster cluster_;
    std::mt19937_64 random_{7};
    std::vector<Host> hosts_;
};

}  // namespace mcastcoll::test
