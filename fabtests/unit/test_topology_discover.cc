// Machines made up with hwloc, made-up identities, and the discovery of this process's place.
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>

#include "topology/discover.h"
#include "topology/machine.h"
#include "topology/tree.h"

using namespace mcastcoll;
using namespace mcastcoll::topology;

namespace {

Machine synthetic(const char* description) {
    auto machine = Machine::of_synthetic(description);
    if (!machine && machine.error().code == EOPNOTSUPP) cr_skip_test("built without hwloc");
    cr_assert(machine.ok(), "%s", machine.ok() ? "" : machine.error().message.c_str());
    return std::move(machine).value();
}

Place located(const Machine& machine, const Processors& processors) {
    Place place;
    place.set(Level::host, 1, "h");
    machine.locate(processors, place);
    return place;
}

// A rank on every core of this many equal hosts.
std::vector<Place> ranks_on_cores(const Machine& machine, unsigned hosts) {
    std::vector<Place> places;
    for (unsigned host = 0; host < hosts; ++host) {
        for (const Processors& core : machine.objects(Level::core)) {
            places.push_back(located(machine, core));
            places.back().set(Level::host, host, "h" + std::to_string(host));
        }
    }
    return places;
}

}  // namespace

Test(topology_machine, processes_are_where_their_processors_are) {
    const Machine machine = synthetic("package:2 numa:2 l3:2 core:8 pu:2");
    cr_assert_eq(machine.allowed().size(), 128);
    cr_assert_eq(machine.objects(Level::core).size(), 64);
    cr_assert_eq(machine.objects(Level::l3).size(), 8);
    cr_assert(machine.objects(Level::l2).empty());
    cr_assert_eq(located(machine, {0}).to_string(), "host h, package 0, numa 0, l3 0, core 0");
    cr_assert_eq(located(machine, {0, 1, 2}).to_string(), "host h, package 0, numa 0, l3 0", "two cores");
    cr_assert_eq(located(machine, {127}).to_string(), "host h, package 1, numa 3, l3 112, core 126");
    cr_assert_eq(located(machine, {0, 20}).to_string(), "host h, package 0, numa 0");
    cr_assert_eq(located(machine, {0, 100}).to_string(), "host h");
    cr_assert_eq(located(machine, machine.allowed()).to_string(), "host h", "bound to nothing");
    cr_assert_eq(located(machine, {}).to_string(), "host h");
    cr_assert_eq(located(machine, {5000}).to_string(), "host h", "no such processor");

    const Map map(ranks_on_cores(machine, 3), {});
    cr_assert_eq(map.members(), 192);
    cr_assert_eq(map.clusters(Level::host), 3);
    cr_assert_eq(map.clusters(Level::package), 6);
    cr_assert_eq(map.clusters(Level::numa), 12);
    cr_assert_eq(map.clusters(Level::l3), 24);
    cr_assert_eq(map.why(Level::package), "connects 12 NUMA nodes in 6 packages");
    const Tree tree(map, rank_of(100));
    cr_assert_eq(tree.children(rank_of(100)).size(), 63, "all of its host, whose first sends to the others");
    cr_assert_eq(tree.children(rank_of(64)).size(), 2);
}

Test(topology_machine, one_core_and_unbound_processes) {
    const Machine machine = synthetic("core:1 pu:1");
    cr_assert_eq(located(machine, machine.allowed()).to_string(), "host h, numa 0, core 0");
    const std::vector<Place> crowd(6, located(machine, {0}));
    const Map map(crowd, {});
    cr_assert_eq(map.levels().size(), 1);
    cr_assert(map.levels()[0] == Level::host);
    cr_assert_eq(map.clusters(Level::core), 1);
    // Unbound on a large machine: all ranks are directly below the host.
    const Machine large = synthetic("package:2 l3:4 core:32 pu:2");
    const Map unbound(std::vector<Place>(40, located(large, large.allowed())), {});
    cr_assert_eq(unbound.levels().size(), 1);
    cr_assert(unbound.levels()[0] == Level::host);
    cr_assert_eq(unbound.clusters(Level::core), 40);
}

Test(topology_machine, memory_beside_memory_and_cores_in_modules) {
    // Two kinds of memory at each package: the place names the first node.
    const Machine machine = synthetic("package:2 [numa(memory=1GB)] [numa(memory=4GB)] l2:4 core:2 pu:1");
    cr_assert_eq(located(machine, {0}).to_string(), "host h, package 0, numa 0, l2 0, core 0");
    cr_assert_eq(located(machine, {15}).at(Level::l2)->id, 14);
    cr_assert_neq(located(machine, {15}).at(Level::numa)->id, located(machine, {0}).at(Level::numa)->id);
}

Test(topology_machine, xml_gives_what_was_written) {
    const std::string path = "/tmp/mcastcoll-machine-" + std::to_string(::getpid()) + ".xml";
    std::ofstream(path) << R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0f" complete_cpuset="0x0f" allowed_cpuset="0x0d" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
    <object type="NUMANode" os_index="0" cpuset="0x0f" complete_cpuset="0x0f" nodeset="0x1" complete_nodeset="0x1" gp_index="2"/>
    <object type="Package" os_index="3" cpuset="0x03" complete_cpuset="0x03" nodeset="0x1" complete_nodeset="0x1" gp_index="3">
      <object type="Core" os_index="0" cpuset="0x01" complete_cpuset="0x01" nodeset="0x1" complete_nodeset="0x1" gp_index="4">
        <object type="PU" os_index="0" cpuset="0x01" complete_cpuset="0x01" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/></object>
      <object type="Core" os_index="1" cpuset="0x02" complete_cpuset="0x02" nodeset="0x1" complete_nodeset="0x1" gp_index="6">
        <object type="PU" os_index="1" cpuset="0x02" complete_cpuset="0x02" nodeset="0x1" complete_nodeset="0x1" gp_index="7"/></object>
    </object>
    <object type="Package" os_index="7" cpuset="0x0c" complete_cpuset="0x0c" nodeset="0x1" complete_nodeset="0x1" gp_index="8">
      <object type="Core" os_index="0" cpuset="0x04" complete_cpuset="0x04" nodeset="0x1" complete_nodeset="0x1" gp_index="9">
        <object type="PU" os_index="2" cpuset="0x04" complete_cpuset="0x04" nodeset="0x1" complete_nodeset="0x1" gp_index="10"/></object>
      <object type="Core" os_index="1" cpuset="0x08" complete_cpuset="0x08" nodeset="0x1" complete_nodeset="0x1" gp_index="11">
        <object type="PU" os_index="3" cpuset="0x08" complete_cpuset="0x08" nodeset="0x1" complete_nodeset="0x1" gp_index="12"/></object>
    </object>
  </object>
</topology>
)";
    // hwloc reads the machine from this file, as a resource manager may set it.
    ::setenv("HWLOC_XMLFILE", path.c_str(), 1);
    auto read = Machine::of_this_system();
    if (!read && read.error().code == EOPNOTSUPP) cr_skip_test("built without hwloc");
    cr_assert(read.ok(), "%s", read.ok() ? "" : read.error().message.c_str());
    const Machine machine = std::move(read).value();
    cr_assert(machine.allowed() == (Processors{0, 2, 3}), "processor 1 belongs to another");
    cr_assert_eq(machine.objects(Level::package).size(), 2);
    for (const unsigned processor : machine.own()) cr_assert_lt(processor, 4);
    cr_assert_eq(located(machine, {3}).to_string(), "host h, package 7, numa 0, core 3");
    // A container with a single package: unbound processes have the package number seen by other processes.
    cr_assert_eq(located(machine, {2, 3}).to_string(), "host h, package 7, numa 0");
    ::unsetenv("HWLOC_XMLFILE");
    ::unlink(path.c_str());
}

Test(topology_machine, nonsense_is_refused) {
    const auto machine = Machine::of_synthetic("package:2 banana:3");
    cr_assert_not(machine.ok());
}

Test(topology_host, identities_differ_when_anything_does) {
    const HostIdentity base{"boot", 1, 2, 3, 4, 5, 6};
    std::set<std::uint64_t> ids{host_id(base)};
    cr_assert_eq(host_id(base), host_id(HostIdentity(base)));
    const auto changed = [&](auto change) {
        HostIdentity other = base;
        change(other);
        cr_assert(ids.insert(host_id(other)).second);
    };
    changed([](HostIdentity& h) { h.boot = "another boot"; });
    changed([](HostIdentity& h) { h.pid_namespace = 9; });  // a container
    changed([](HostIdentity& h) { h.net_namespace = 9; });  // a virtual host
    changed([](HostIdentity& h) { h.user_namespace = 9; });
    changed([](HostIdentity& h) { h.shm_device = 9; });  // a container with a /dev/shm of its own
    changed([](HostIdentity& h) { h.shm_inode = 9; });
    changed([](HostIdentity& h) { h.user = 9; });
}

Test(topology_host, containers_are_hosts_of_their_own_unless_they_share_all) {
    if (::geteuid() != 0) cr_skip_test("namespaces take root");
    const auto mine = read_host_identity();
    cr_assert(mine.ok());
    const auto differs_after = [&](int flags) {
        int pipe_ends[2];
        cr_assert_eq(::pipe(pipe_ends), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            char outcome = 'x';
            if (::unshare(flags) == 0) {
                const pid_t inner = (flags & CLONE_NEWPID) != 0 ? ::fork() : 0;
                if (inner > 0) ::_exit(::waitpid(inner, nullptr, 0) == inner ? 0 : 1);
                const auto theirs = read_host_identity();
                outcome = !theirs ? 'e' : host_id(theirs.value()) == host_id(mine.value()) ? '=' : '!';
            }
            ::_exit(::write(pipe_ends[1], &outcome, 1) == 1 ? 0 : 1);
        }
        ::close(pipe_ends[1]);
        char outcome = '?';
        cr_assert_eq(::read(pipe_ends[0], &outcome, 1), 1);
        ::close(pipe_ends[0]);
        ::waitpid(child, nullptr, 0);
        return outcome;
    };
    if (differs_after(CLONE_NEWNET) == 'x') cr_skip_test("namespaces are not allowed here");
    cr_assert_eq(differs_after(0), '=');
    cr_assert_eq(differs_after(CLONE_NEWUTS), '=', "another name is no other host");
    cr_assert_eq(differs_after(CLONE_NEWNET), '!');
    const char pid = differs_after(CLONE_NEWPID);
    cr_assert(pid == '!' || pid == 'x', "%c", pid);
}

Test(topology_discover, finds_this_process_quickly_and_once) {
    using Clock = std::chrono::steady_clock;
    const Override nothing = Override::parse_words("auto").value();
    const std::array<std::byte, 4> loopback{std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
    const auto start = Clock::now();
    const Discovery first = discover(nothing, loopback);
    const auto once = Clock::now();
    for (int i = 0; i < 100; ++i) cr_assert(discover(nothing, loopback).place == first.place);
    const auto hundred = Clock::now();
    const auto us = [](auto time) {
        return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    };
    cr_log_info("first %ld us, again %ld us", long{us(once - start)}, long{us(hundred - once) / 100});
    cr_assert(first.place.at(Level::host).has_value());
    cr_assert_eq(first.place.at(Level::site)->name.view(), "127.0.0.0/8");
    const auto back = decode_place(encode(first.place));
    cr_assert(back && *back == first.place);

    // No address, or an address of another host: site and segment are unknown.
    cr_assert_not(discover(nothing, {}).place.at(Level::site).has_value());
    const std::array<std::byte, 4> foreign{std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
    const Discovery lost = discover(nothing, foreign);
    cr_assert_not(lost.place.at(Level::segment).has_value());
    cr_assert_not(lost.notes.empty());
    const Override given = Override::parse_words("site=X:192.0.2.0/24").value();
    cr_assert_eq(discover(given, foreign).place.at(Level::site)->name.view(), "X");
}

Test(topology_discover, a_bound_process_is_where_it_is_bound) {
    auto machine = Machine::of_this_system();
    if (!machine) cr_skip_test("built without hwloc");
    const Processors all = machine.value().allowed();
    cr_assert_not(all.empty());
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all.back(), &one);
    if (::sched_setaffinity(::getpid(), sizeof one, &one) != 0) cr_skip_test("binding is not allowed here");
    cr_assert(machine.value().own() == Processors{all.back()});
    Place place;
    machine.value().locate(machine.value().own(), place);
    cr_assert(discover(Override(), {}).place.at(Level::core) == place.at(Level::core));
}
