// Groups of one queue pair: joining, leaving, limits, and sending to groups without a membership.
#include <criterion/criterion.h>
#include <errno.h>

#include <algorithm>
#include <optional>

#include "transport/multicast_hub.h"
#include "verbs_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using namespace mcastcoll::transport;

TestSuite(verbs_groups, .timeout = 180);

namespace {

struct Hubs {
    VerbsOwner a = open_or_fail(options_of_device(0)), b = open_or_fail(options_of_device(1));
};

}  // namespace

Test(verbs_groups, groups_are_received_only_while_joined) {
    Hubs hubs;
    const SocketAddress changing = group_number(1), staying = group_number(2);
    const Membership marks = join_or_fail(*hubs.b, staying);
    const Membership of_a = join_or_fail(*hubs.a, changing), also = join_or_fail(*hubs.a, staying);
    for (int round = 0; round < 3; ++round) {
        std::optional<Membership> membership = join_or_fail(*hubs.b, changing);
        say(*hubs.a, changing, "joined");
        cr_assert_eq(receive(*hubs.b, 1).size(), 1, "round %d", round);
        membership.reset();
        cr_assert_not(hubs.b->has_joined(changing));
        say(*hubs.a, changing, "left");
        say(*hubs.a, staying, "mark");
        cr_assert(receive_until(*hubs.b, "mark").empty(), "round %d", round);
    }
}

Test(verbs_groups, shares_are_counted) {
    Hubs hubs;
    const SocketAddress group = group_number(1);
    const Membership of_a = join_or_fail(*hubs.a, group);
    std::optional<Membership> one = join_or_fail(*hubs.b, group);
    const Membership two = join_or_fail(*hubs.b, group);
    one.reset();
    cr_assert(hubs.b->has_joined(group));
    say(*hubs.a, group, "still there");
    cr_assert_eq(receive(*hubs.b, 1).size(), 1);
}

// Joins a thousand groups, or as many as the device's limit allows.
Test(verbs_groups, a_thousand_groups_on_one_queue_pair) {
    Hubs hubs;
    constexpr std::uint32_t kGroups = 1000;
    std::vector<Membership> memberships;
    while (memberships.size() < kGroups && hubs.b->has_room()) {
        auto joined = hubs.b->join(group_number(static_cast<std::uint32_t>(memberships.size())));
        if (!joined) {
            cr_log_info("%zu groups, then: %s", memberships.size(), joined.error().message.c_str());
            break;
        }
        memberships.push_back(std::move(joined).value());
    }
    cr_log_info("%zu groups on one queue pair", memberships.size());
    cr_assert_geq(memberships.size(), 20);
    const Membership any = join_or_fail(*hubs.a, group_number(0));
    const auto last = static_cast<std::uint32_t>(memberships.size() - 1);
    for (const std::uint32_t n : {0u, last / 2, last}) {
        say(*hubs.a, group_number(n), "to " + std::to_string(n));
        const auto received = receive(*hubs.b, 1);
        cr_assert_eq(received.size(), 1, "group %u", n);
        cr_assert(received[0].text == "to " + std::to_string(n));
    }
    // Leaving a group makes room for another.
    memberships.pop_back();
    cr_assert(hubs.b->has_room());
    memberships.push_back(join_or_fail(*hubs.b, group_number(kGroups + 1)));
}

Test(verbs_groups, no_more_than_requested) {
    VerbsOptions options = options_of_device(0);
    options.max_memberships = 2;
    const VerbsOwner hub = open_or_fail(options);
    std::vector<Membership> memberships;
    memberships.push_back(join_or_fail(*hub, group_number(0)));
    cr_assert(hub->has_room());
    memberships.push_back(join_or_fail(*hub, group_number(1)));
    cr_assert_not(hub->has_room());
    const auto third = hub->join(group_number(2));
    cr_assert_not(third.ok());
    cr_assert_eq(third.error().code, ENOBUFS);
    // A second membership of a joined group takes no room.
    memberships.push_back(join_or_fail(*hub, group_number(1)));
}

Test(verbs_groups, what_is_no_group_is_refused) {
    Hubs hubs;
    for (const char* text : {"10.9.0.1", "239.1.2.3:7", "ff15::1"}) {
        const auto joined = hubs.a->join(SocketAddress::parse(text).value());
        cr_assert_not(joined.ok(), "%s", text);
        cr_assert_eq(joined.error().code, EINVAL);
    }
}

// Sends to groups without a membership, as to chained ranges (the addresses of other parts of a group).
// Before any group is joined, the transport does not know how groups are reached.
Test(verbs_groups, sends_to_what_is_not_joined) {
    Hubs hubs;
    const SocketAddress group = group_number(1);
    const Datagram datagram{};
    const Sent early = hubs.a->send(std::span(&datagram, 1), {group, false});
    cr_assert_eq(early.accepted, 0);
    cr_assert_eq(early.error, EADDRNOTAVAIL);
    if (!hubs.a->sends_anywhere()) cr_skip_test("InfiniBand does not");
    const Membership elsewhere = join_or_fail(*hubs.a, group_number(2)), of_b = join_or_fail(*hubs.b, group);
    say(*hubs.a, group, "from outside");
    cr_assert_eq(receive(*hubs.b, 1).size(), 1);
    // More address handles than the transport keeps.
    for (std::uint32_t n = 10; n < 400; ++n) say(*hubs.a, group_number(n), "to no member");
    say(*hubs.a, group, "again");
    cr_assert_eq(receive(*hubs.b, 1).size(), 1);
}

Test(verbs_groups, beside_udp) {
    const VerbsOptions options[] = {options_of_device(0), options_of_device(1)};
    std::unique_ptr<JoinableTransport> paths[2];
    for (int i = 0; i < 2; ++i) {
        UdpMulticastOptions udp;
        udp.interface = options[i].interface;
        auto hub = MulticastHub::open(udp);
        cr_assert(hub.ok());
        auto both = open_both(std::move(hub).value(), open_or_fail(options[i]));
        cr_assert(both.ok());
        paths[i] = std::move(both).value();
    }
    const SocketAddress over_verbs = group_number(1), over_udp = group_number(2).with_port(23456);
    std::vector<Membership> memberships;
    for (const auto& one : paths) {
        for (const SocketAddress& group : {over_verbs, over_udp}) {
            auto joined = one->join(group);
            cr_assert(joined.ok(), "%s", joined.ok() ? "" : joined.error().message.c_str());
            memberships.push_back(std::move(joined).value());
        }
    }
    for (const SocketAddress& group : {over_verbs, over_udp}) {
        cr_assert(paths[0]->has_joined(group));
        const std::string text = group.to_string();
        const Datagram datagram{std::as_bytes(std::span(text)), {}};
        cr_assert_eq(paths[0]->send(std::span(&datagram, 1), {group, false}).accepted, 1);
        std::string received;
        cr_assert(eventually([&] {
            paths[1]->receive(Nanoseconds{}, [&](Bytes bytes, const SocketAddress&) {
                received.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            });
            return received == text;
        }));
    }
    memberships.clear();
}
