// Facts of a host set without faults; each test changes a fact.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "doctor/judge.h"

namespace mcastcoll::test {

inline doctor::Host healthy_host(unsigned at) {
    using namespace doctor;
    Host host;
    host.machine.name = "n" + std::to_string(at);
    host.machine.boot = "boot" + std::to_string(at);
    host.machine.host = at + 1;
    host.machine.cores = 16;
    host.machine.clock_source = std::string("tsc");
    host.machine.governors = {"performance"};
    host.libraries.mcastcoll = "0.9.0";
    host.libraries.libfabric = "1.17";
    host.libraries.provider = std::string("/usr/lib/libfabric/libmcastcoll-fi.so");
    host.libraries.inner = "net";
    host.libraries.openmpi = std::string("4.1.4");
    host.libraries.component = true;
    host.libraries.mpich = std::string("4.0.2");
    host.libraries.interposer = true;
    Network& network = host.network;
    network.interface = "eth0";
    network.address = "10.0.0." + std::to_string(at + 1);
    network.subnet = "10.0.0.0/24";
    network.mtu = 1500;
    network.up = network.multicast = true;
    network.driver = "ixgbe";
    network.speed_mbit = std::uint64_t{10000};
    network.segmentation = network.coalescing = true;
    network.rmem_max = std::uint64_t{4194304};
    network.buffer_wanted = 4194304;
    network.buffer_granted = 8388608;
    network.datagram_bytes = 1472;
    network.window = 744;
    network.member = true;
    host.memory.shm_bytes = std::uint64_t{1} << 33;
    host.memory.shm_free = std::uint64_t{1} << 33;
    host.memory.locked = UINT64_MAX;
    host.memory.files = 65536;
    host.memory.reads_neighbour = true;
    host.rdma.group = Look<std::string>::failed("there is no RDMA device");
    host.firewall.looked = true;
    host.querier.received = std::string("10.0.0.254");
    host.querier.waited_s = 3;
    host.end_to_end = EndToEnd{"", 4, 40, 100, 0, ""};
    host.sends = true;
    for (unsigned phase = 0; phase < kPhases; ++phase)
        host.sent.push_back({static_cast<Phase>(phase), phase == 0 ? 50U : 100U, 1472, 100, ""});
    return host;
}

inline doctor::Facts healthy_facts(unsigned size) {
    doctor::Facts facts;
    facts.top_mbit = 500;
    facts.wait_s = 3;
    for (unsigned i = 0; i < size; ++i) {
        facts.hosts.emplace_back(healthy_host(i));
        facts.names.push_back("n" + std::to_string(i));
        facts.gone.emplace_back();
    }
    for (auto& to : facts.hosts)
        for (unsigned from = 0; from < size; ++from)
            for (const doctor::Stream& stream : facts.hosts[from]->sent)
                to->received.push_back({from, stream.phase, stream.datagrams, 0, 0, 0});
    return facts;
}

// Changes the counts of what `to` received from `from` in these phases.
inline void change(doctor::Facts& facts, unsigned from, unsigned to,
                   std::initializer_list<doctor::Phase> phases,
                   const std::function<void(doctor::ReceivedStream&)>& how) {
    for (doctor::ReceivedStream& received : facts.hosts[to]->received)
        if (received.from == from && std::count(phases.begin(), phases.end(), received.phase) > 0)
            how(received);
}
inline constexpr auto kEveryPhase = {doctor::Phase::small,  doctor::Phase::full, doctor::Phase::slow,
                                     doctor::Phase::medium, doctor::Phase::fast, doctor::Phase::burst,
                                     doctor::Phase::again};

}  // namespace mcastcoll::test
