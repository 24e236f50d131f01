// Many groups over few sockets: sharing of addresses and sockets, and the limits of both.
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "transport/socket_address.h"
#include "transport_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using namespace mcastcoll::transport;

TestSuite(transport_hub, .timeout = 300);

namespace {

// Returns the nth of a family of addresses on one port.
SocketAddress nth(const OneGroupOptions& options, std::uint32_t n) {
    return range_group_address(options.family, GroupKey{0x5ca1ab1e}, 3, n, options.group.port());
}

void say(MulticastHub& hub, const SocketAddress& group, const std::string& text) {
    const Datagram datagram{std::as_bytes(std::span(text)), {}};
    cr_assert_eq(hub.send(std::span(&datagram, 1), {group, true}).accepted, 1);
}

using Texts = std::multiset<std::string>;

// Returns the texts that a hub receives until `enough` returns true.
Texts receive_until(MulticastHub& hub, const std::function<bool(const Texts&)>& enough) {
    Texts texts;
    eventually(kEventTimeoutMs, [&] {
        hub.receive(now(), [&](Bytes bytes, const SocketAddress&) {
            texts.emplace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        });
        return enough(texts);
    });
    return texts;
}

Texts receive(MulticastHub& hub, std::size_t count) {
    return receive_until(hub, [&](const Texts& texts) { return texts.size() >= count; });
}

// Sends a marker, and returns what a hub receives up to it: everything sent before has then arrived.
Texts receive_until_marked(MulticastHub& hub, MulticastHub& speaker, const SocketAddress& marked) {
    say(speaker, marked, "mark");
    Texts texts = receive_until(hub, [](const Texts& received) { return received.count("mark") > 0; });
    cr_assert_eq(texts.erase("mark"), 1);
    return texts;
}

std::size_t open_descriptors() {
    namespace fs = std::filesystem;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator{}));
}

void leave_descriptors(rlim_t count) {
    const rlimit limit{open_descriptors() - 1 + count, open_descriptors() - 1 + count};
    cr_assert_eq(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void more_than_a_socket_holds(const std::string& interface, int family) {
    constexpr std::size_t kGroups = 100;
    const auto options = multicast_options(interface, family);
    auto listener = must(MulticastHub::open(options));
    auto speaker = must(MulticastHub::open(options));
    std::vector<Membership> memberships;
    for (std::uint32_t i = 0; i < kGroups; ++i) memberships.push_back(must(listener->join(nth(options, i))));
    cr_assert_leq(listener->receiving_sockets(), 4 + kGroups / 20, "sockets are shared");
    cr_assert_geq(listener->receiving_sockets(), kGroups / listener->memberships_per_socket());
    Texts said;
    for (std::uint32_t i = 0; i < kGroups; ++i)
        say(*speaker, nth(options, i), *said.insert(std::to_string(i)));
    cr_assert(receive(*listener, kGroups) == said);
    memberships.clear();
    cr_assert_eq(listener->receiving_sockets(), 0);
}

}  // namespace

Test(transport_hub, more_than_a_socket_holds_v4) {
    more_than_a_socket_holds("lo", 4);
}

Test(transport_hub, more_than_a_socket_holds_v6) {
    enter_network_namespace();
    more_than_a_socket_holds("mc0", 6);
}

Test(transport_hub, an_address_is_left_by_the_last_that_shares_it) {
    const auto options = multicast_options("lo", 4);
    auto hub = must(MulticastHub::open(options)), speaker = must(MulticastHub::open(options));
    const Membership stays = must(hub->join(nth(options, 0)));
    Membership one = must(hub->join(nth(options, 1))), other = must(hub->join(nth(options, 1)));
    const auto is_received = [&] {
        say(*speaker, nth(options, 1), "x");
        return receive_until_marked(*hub, *speaker, nth(options, 0)).count("x");
    };
    cr_assert_eq(is_received(), 1, "once, however many share it");
    one = Membership();
    cr_assert_eq(is_received(), 1);
    Membership moved = std::move(other);
    cr_assert_eq(is_received(), 1);
    moved = Membership();
    cr_assert_eq(is_received(), 0);
    cr_assert_not(hub->has_joined(nth(options, 1)));
    one = must(hub->join(nth(options, 1)));
    cr_assert_eq(is_received(), 1);
}

// The socket is bound to the port, but receives only its joined groups, not groups joined by other sockets of
// the host.
Test(transport_hub, other_groups_on_the_port_are_not_received) {
    const auto options = multicast_options("lo", 4);
    auto mine = must(MulticastHub::open(options)), others = must(MulticastHub::open(options));
    const Membership a = must(mine->join(nth(options, 0))), b = must(others->join(nth(options, 1)));
    say(*mine, nth(options, 1), "for others");
    cr_assert(receive_until_marked(*mine, *others, nth(options, 0)).empty());
    cr_assert(receive(*others, 1) == Texts{"for others"});
}

Test(transport_hub, the_first_addresses_have_buffers_of_their_own) {
    auto options = multicast_options("lo", 4);
    options.memberships_per_socket = 2;
    auto hub = must(MulticastHub::open(options));
    std::vector<Membership> memberships;
    std::vector<std::size_t> sockets;
    for (std::uint32_t i = 0; i < 10; ++i) {
        memberships.push_back(must(hub->join(nth(options, i))));
        sockets.push_back(hub->receiving_sockets());
    }
    cr_assert(sockets == (std::vector<std::size_t>{1, 2, 3, 4, 4, 4, 4, 4, 5, 5}));
}

// A membership that the kernel refuses unexpectedly goes to another socket.
Test(transport_hub, the_kernel_has_the_last_word) {
    auto options = multicast_options("lo", 4);
    options.memberships_per_socket = 1000;
    auto hub = must(MulticastHub::open(options));
    std::vector<Membership> memberships;
    for (std::uint32_t i = 0; i < 200; ++i) memberships.push_back(must(hub->join(nth(options, i))));
    cr_assert_geq(hub->receiving_sockets(), 4);
}

Test(transport_hub, without_descriptors_sockets_are_shared_and_then_there_is_no_room) {
    auto options = multicast_options("lo", 4);
    options.memberships_per_socket = 3;
    auto hub = must(MulticastHub::open(options)), speaker = must(MulticastHub::open(options));
    std::vector<Membership> memberships;
    memberships.push_back(must(hub->join(nth(options, 0))));
    say(*speaker, nth(options, 0), "opens the sender");
    cr_assert_eq(receive(*hub, 1).size(), 1);
    leave_descriptors(1);
    cr_assert(hub->has_room());
    memberships.push_back(must(hub->join(nth(options, 1))));
    cr_assert_not(hub->has_room());
    cr_assert_eq(hub->receiving_sockets(), 2);
    for (std::uint32_t i = 2; i < 6; ++i) memberships.push_back(must(hub->join(nth(options, i))));
    cr_assert_eq(hub->receiving_sockets(), 2);
    const auto refused = hub->join(nth(options, 6));
    cr_assert(!refused && refused.error().code == EMFILE);
    const Membership shared = must(hub->join(nth(options, 5)));
    for (std::uint32_t i = 0; i < 6; ++i) say(*speaker, nth(options, i), "x");
    cr_assert_eq(receive(*hub, 6).size(), 6, "what is joined still works");
    memberships.erase(memberships.begin());
    memberships.push_back(must(hub->join(nth(options, 6))));
}

Test(transport_hub, the_set_limit_counts_addresses) {
    auto options = multicast_options("lo", 4);
    options.max_memberships = 2;
    auto hub = must(MulticastHub::open(options));
    const Membership one = must(hub->join(nth(options, 0)));
    cr_assert(hub->has_room());
    Membership two = must(hub->join(nth(options, 1)));
    cr_assert_not(hub->has_room());
    const auto refused = hub->join(nth(options, 2));
    cr_assert(!refused && refused.error().code == ENOBUFS);
    const Membership again = must(hub->join(nth(options, 1)));
    two = Membership();
    cr_assert_not(hub->has_room(), "it is still shared");
}

Test(transport_hub, joining_and_leaving_leaves_nothing) {
    const auto options = multicast_options("lo", 4);
    auto hub = must(MulticastHub::open(options));
    const std::size_t before = open_descriptors();
    for (std::uint32_t i = 0; i < 2000; ++i) {
        const Membership one = must(hub->join(nth(options, i))), other = must(hub->join(nth(options, i + 1)));
        cr_assert_leq(hub->receiving_sockets(), 2);
    }
    cr_assert_eq(open_descriptors(), before);
}

// A hub sends runs of messages to two of its groups with both of its senders: messages to a group keep their
// order.
Test(transport_hub, runs_to_several_groups_keep_apart) {
    const auto options = multicast_options("lo", 4);
    auto hub = must(MulticastHub::open(options)), speaker = must(MulticastHub::open(options));
    const Membership a = must(hub->join(nth(options, 0))), b = must(hub->join(nth(options, 1)));
    std::vector<std::string> texts;
    std::vector<Datagram> datagrams;
    for (int i = 0; i < 60; ++i) texts.push_back("number " + std::to_string(100 + i));
    for (const std::string& text : texts) datagrams.push_back({std::as_bytes(std::span(text)), {}});
    std::map<std::string, std::vector<std::string>> received;
    cr_assert_eq(speaker->send(datagrams, {nth(options, 0), true}).accepted, datagrams.size());
    cr_assert_eq(speaker->send(datagrams, {nth(options, 1), false}).accepted, datagrams.size());
    std::size_t count = 0;
    eventually(kEventTimeoutMs, [&] {
        hub->receive(now(), [&](Bytes bytes, const SocketAddress& source) {
            received[source.to_string()].emplace_back(reinterpret_cast<const char*>(bytes.data()),
                                                      bytes.size());
            ++count;
        });
        return count == 2 * texts.size();
    });
    cr_assert_eq(received.size(), 2, "the two senders have a port each");
    for (const auto& [source, in_order] : received) cr_assert(in_order == texts, "%s", source.c_str());
}

Test(transport_hub, range_addresses_are_stable_and_apart) {
    for (const int family : {4, 6}) {
        std::set<std::string> seen;
        for (std::uint64_t key = 1; key <= 10; ++key)
            for (std::uint32_t level = 0; level < 8; ++level)
                for (std::uint32_t index = 0; index < 4; ++index) {
                    const auto one = range_group_address(family, GroupKey{key}, level, index, 20001);
                    cr_assert(one == range_group_address(family, GroupKey{key}, level, index, 20001));
                    cr_assert(one.is_multicast());
                    cr_assert_eq(one.port(), 20001);
                    seen.insert(one.to_string());
                }
        cr_assert_eq(seen.size(), 320);
    }
    // Members of different builds must agree.
    cr_assert_eq(range_group_address(4, GroupKey{1}, 2, 3, 20000).to_string(), "239.68.47.158:20000");
    cr_assert_eq(range_group_address(6, GroupKey{1}, 2, 3, 20000).to_string(),
                 "[ff15:5a44:2f9e:59d6:f1bb:1e56:6507:a868]:20000");
}

// A child of fork() holds the socket, too, with an unread datagram.
Test(transport_hub, what_was_left_is_no_news_though_a_child_of_fork_holds_it) {
    const auto options = multicast_options("lo", 4);
    auto hub = must(MulticastHub::open(options)), speaker = must(MulticastHub::open(options));
    const SocketAddress group = nth(options, 0);
    auto membership = std::make_unique<Membership>(must(hub->join(group)));
    const Pipe never;
    const Child child([&] { return never.get(kEventTimeoutMs) < 0; });
    say(*speaker, group, "unread");
    pollfd news{hub->descriptor(), POLLIN, 0};
    cr_assert_eq(::poll(&news, 1, kEventTimeoutMs), 1);
    membership.reset();
    cr_assert_eq(::poll(&news, 1, 0), 0);
    child.signal(SIGKILL);
}
