// PeerWatch against real processes: busy, stopped, killed, unreachable.
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "watch_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;

TestSuite(transport_watch, .timeout = 300);

namespace {

void stopped_lives_killed_is_dead(const PeerWatchOptions& options, std::size_t neighbours) {
    auto watch = open_or_fail(options);
    const Pipe pipe;
    Child child([&] { return peer(options, pipe); });
    cr_assert(watch->watch(7, receive_point(pipe), now()).ok());
    cr_assert_eq(watch->neighbours(), neighbours);
    cr_assert(deaths(*watch, 1, 100).empty());
    child.signal(SIGSTOP);
    // Longer than the timeout, and than keepalive at its fastest.
    cr_assert(deaths(*watch, 1, 4000).empty(), "a stopped process is alive");
    child.signal(SIGKILL);
    pollfd entry{watch->descriptor(), POLLIN, 0};
    cr_assert_eq(::poll(&entry, 1, kPatienceMs), 1, "the descriptor wakes a sleeper");
    const auto dead = deaths(*watch, 1, kPatienceMs);
    cr_assert_eq(dead.size(), 1);
    cr_assert_eq(dead[0].id, 7);
    expect_reason(dead[0], neighbours > 0 ? "its process " + std::to_string(child.pid()) + " has ended"
                                          : "the idle connection to 127.0.0.1:");
    cr_assert_eq(watch->watched(), 0);
    cr_assert(deaths(*watch, 1, 20).empty(), "a death is told once");
}

}  // namespace

Test(transport_watch, neighbour_stopped_and_killed) {
    PeerWatchOptions options;
    options.peer_timeout_ms = 1000;
    stopped_lives_killed_is_dead(options, 1);
}

Test(transport_watch, tcp_stopped_and_killed) {
    PeerWatchOptions options;
    options.local = loopback();
    options.peer_timeout_ms = 1000;
    options.tcp_only = true;
    stopped_lives_killed_is_dead(options, 0);
}

Test(transport_watch, a_peer_already_gone_is_dead_at_once) {
    PeerWatchOptions options;
    options.local = loopback();
    for (const bool tcp_only : {false, true}) {
        options.tcp_only = tcp_only;
        auto watch = open_or_fail(options);
        const Pipe pipe;
        WatchPoint point;
        {
            Child child([&] { return peer(options, pipe); });
            point = receive_point(pipe);
        }
        cr_assert(watch->watch(1, point, now()).ok());
        const auto dead = deaths(*watch, 1, kPatienceMs);
        cr_assert_eq(dead.size(), 1);
        expect_reason(dead[0], tcp_only ? "nobody listens at 127.0.0.1:" : "its process ");
    }
}

Test(transport_watch, a_reused_process_number_is_not_the_peer) {
    auto watch = open_or_fail({});
    WatchPoint self = watch->local_point();
    cr_assert_neq(self.start_time, 0);
    cr_assert(watch->watch(1, self, now()).ok());
    self.start_time -= 1;
    cr_assert(watch->watch(2, self, now()).ok());
    const auto dead = deaths(*watch, 1, kPatienceMs);
    cr_assert_eq(dead.size(), 1);
    cr_assert_eq(dead[0].id, 2);
    cr_assert_eq(watch->watched(), 1);
}

Test(transport_watch, unwatched_peers_are_not_told) {
    PeerWatchOptions options;
    options.local = loopback();
    auto watch = open_or_fail(options);
    const Pipe pipe;
    Child child([&] { return peer(options, pipe); });
    const WatchPoint point = receive_point(pipe);
    cr_assert(watch->watch(1, point, now()).ok());
    cr_assert(watch->watch(2, point, now()).ok());
    auto again = watch->watch(2, point, now());
    cr_assert_eq(again.error().code, EEXIST);
    watch->unwatch(1);
    watch->unwatch(99);
    child.signal(SIGKILL);
    const auto dead = deaths(*watch, 1, kPatienceMs);
    cr_assert_eq(dead.size(), 1);
    cr_assert_eq(dead[0].id, 2);
    cr_assert(deaths(*watch, 1, 300).empty());
    cr_assert(watch->watch(1, watch->local_point(), now()).ok(), "a slot is used again");
}

Test(transport_watch, many_watchers_of_one_that_never_polls) {
    PeerWatchOptions options;
    options.local = loopback();
    options.peer_timeout_ms = 2000;
    options.tcp_only = true;
    const Pipe pipe;
    Child child([&] { return peer(options, pipe); });
    const WatchPoint point = receive_point(pipe);
    auto watch = open_or_fail(options);
    constexpr PeerWatch::Id kWatchers = 300;
    for (PeerWatch::Id id = 0; id < kWatchers; ++id) cr_assert(watch->watch(id, point, now()).ok());
    std::array<PeerWatch::Death, 4> dead;
    cr_assert(eventually(kPatienceMs,
                         [&] {
                             cr_assert_eq(watch->poll(now(), dead), 0);
                             return watch->next_deadline() == kNever;
                         }),
              "all are connected");
    constexpr int kThreeTimeoutsMs = 6000;
    cr_assert(deaths(*watch, 1, kThreeTimeoutsMs).empty(), "connections nobody accepts are none the worse");
    cr_assert(watch->next_deadline() == kNever);
    child.signal(SIGKILL);
    cr_assert_eq(deaths(*watch, kWatchers, kPatienceMs).size(), kWatchers);
}

Test(transport_watch, churning_watchers_do_not_fill_the_backlog) {
    enter_network_namespace();
    shell("echo 16 > /proc/sys/net/core/somaxconn");
    PeerWatchOptions options;
    options.local = loopback();
    options.peer_timeout_ms = 2000;
    options.tcp_only = true;
    auto watched = open_or_fail(options);
    std::array<PeerWatch::Death, 4> dead;
    Nanoseconds time = now();
    for (int round = 0; round < 10; ++round) {
        auto watcher = open_or_fail(options);
        for (PeerWatch::Id id = 0; id < 10; ++id)
            cr_assert(watcher->watch(id, watched->local_point(), now()).ok());
        cr_assert(eventually(kPatienceMs,
                             [&] {
                                 cr_assert_eq(watcher->poll(now(), dead), 0);
                                 return watcher->next_deadline() == kNever;
                             }),
                  "round %d", round);
        time = time + Nanoseconds::from_ms(1100);
        cr_assert_eq(watched->poll(time, dead), 0);
    }
}

Test(transport_watch, an_address_that_does_not_answer_is_dead_after_the_timeout) {
    enter_network_namespace();
    PeerWatchOptions options;
    options.local = SocketAddress::parse("10.77.0.1").value();
    options.peer_timeout_ms = 500;
    auto watch = open_or_fail(options);
    WatchPoint nobody;
    nobody.listener = SocketAddress::parse("10.77.0.99:4000").value();
    const Nanoseconds start = now();
    cr_assert(watch->watch(5, nobody, start).ok());
    cr_assert(watch->next_deadline() != kNever);
    const auto dead = deaths(*watch, 1, kPatienceMs);
    cr_assert_eq(dead.size(), 1);
    expect_reason(dead[0], "10.77.0.99:4000 could not be reached for 500 ms");
    cr_assert(now() - start >= Nanoseconds::from_ms(500));
}

Test(transport_watch, a_host_that_falls_silent_is_dead) {
    enter_network_namespace();
    PeerWatchOptions options;
    options.local = SocketAddress::parse("10.77.0.1").value();
    options.peer_timeout_ms = 2000;
    auto watch = open_or_fail(options);
    const Pipe go, ready;
    Child far([&] {
        if (::unshare(CLONE_NEWNET) != 0) return 3;
        ready.put('n');
        if (go.get(kPatienceMs) != 'g') return 4;
        if (::system("ip addr add 10.77.0.2/24 dev mc1 && ip link set mc1 up") != 0) return 5;
        PeerWatchOptions there = options;
        there.local = SocketAddress::parse("10.77.0.2").value();
        return peer(there, ready);
    });
    cr_assert_eq(ready.get(kPatienceMs), 'n');
    shell("ip link set mc1 netns " + std::to_string(far.pid()));
    go.put('g');
    const WatchPoint point = receive_point(ready);
    cr_assert(watch->watch(3, point, now()).ok());
    cr_assert_eq(watch->neighbours(), 0, "another network namespace is another host");
    cr_assert(deaths(*watch, 1, 2500).empty());
    // The far host answers no more, without a word: what it sends us disappears.
    shell("nsenter -t " + std::to_string(far.pid()) + " -n ip route add blackhole 10.77.0.1/32");
    const auto dead = deaths(*watch, 1, kPatienceMs);
    cr_assert_eq(dead.size(), 1);
    expect_reason(dead[0], "10.77.0.2:");
    expect_reason(dead[0], "answered no keepalive for 2000 ms");
}

// Its connections are nobody's any more, and it has not said so.
Test(transport_watch, a_look_finds_a_host_that_was_started_again) {
    enter_network_namespace();
    PeerWatchOptions options;
    options.local = SocketAddress::parse("10.77.0.1").value();
    options.peer_timeout_ms = 400'000;
    auto watch = open_or_fail(options);
    std::unique_ptr<Pipe> go, ready;
    const auto start = [&] {
        go = std::make_unique<Pipe>(), ready = std::make_unique<Pipe>();
        auto far = std::make_unique<Child>([&] {
            if (::unshare(CLONE_NEWNET) != 0) return 3;
            ready->put('n');
            if (go->get(kPatienceMs) != 'g') return 4;
            if (::system("ip addr add 10.77.0.2/24 dev mc1 && ip link set mc1 up") != 0) return 5;
            PeerWatchOptions there = options;
            there.local = SocketAddress::parse("10.77.0.2").value();
            return peer(there, *ready);
        });
        cr_assert_eq(ready->get(kPatienceMs), 'n');
        shell("ip link set mc1 netns " + std::to_string(far->pid()));
        go->put('g');
        return far;
    };
    auto far = start();
    const WatchPoint point = receive_point(*ready);
    cr_assert(watch->watch(3, point, now()).ok());
    cr_assert(watch->watch(4, point, now()).ok());
    const auto connected = [&] { return watch->next_deadline() == kNever; };
    std::array<PeerWatch::Death, 4> dead;
    cr_assert(eventually(kPatienceMs, [&] { return watch->poll(now(), dead) == 0 && connected(); }));
    shell("ip link set mc0 down");
    far.reset();
    // The cable goes with the other end's namespace.
    cr_assert(eventually(kPatienceMs, [] { return ::system("ip link show mc0 >/dev/null 2>&1") != 0; }));
    shell(
        "ip link add mc0 type veth peer name mc1 && ip addr add 10.77.0.1/24 dev mc0 && ip link set mc0 up");
    far = start();
    (void)receive_point(*ready);
    watch->look(3, now());
    watch->look(99, now());
    const auto found = deaths(*watch, 1, kPatienceMs);
    cr_assert_eq(found.size(), 1, "who is not looked at is asked much later");
    cr_assert_eq(found[0].id, 3);
    cr_assert_eq(found[0].error, ECONNRESET);
    expect_reason(found[0], "the idle connection to 10.77.0.2:");
}

Test(transport_watch, limits_and_bad_input) {
    PeerWatchOptions options;
    options.peer_timeout_ms = 0;
    cr_assert_not(PeerWatch::open(options).ok());
    options.peer_timeout_ms = 1000;
    auto watch = open_or_fail(options);
    WatchPoint wildcard;
    wildcard.listener = SocketAddress::parse("0.0.0.0:5").value();
    auto refused = watch->watch(1, wildcard, now());
    cr_assert_eq(refused.error().code, EOPNOTSUPP);
    WatchPoint stranger;
    stranger.pid = 1;
    stranger.host = watch->local_point().host + 1;
    refused = watch->watch(1, stranger, now());
    cr_assert_eq(refused.error().code, EOPNOTSUPP);
    cr_assert_eq(watch->watched(), 0);
    auto foreign = PeerWatch::open({.local = SocketAddress::parse("203.0.113.9").value()});
    cr_assert_eq(foreign.error().code, EADDRNOTAVAIL);
}

Test(transport_watch, points_travel) {
    for (const char* text : {"10.1.2.3:4", "[fd00::1]:65535", "0.0.0.0:9"}) {
        WatchPoint point{SocketAddress::parse(text).value(), 4711, 0x123456789abcdef0, 0xfedcba9876543210};
        auto back = decode_watch_point(encode_watch_point(point));
        cr_assert(back.ok());
        cr_assert(back.value().listener == point.listener);
        cr_assert_eq(back.value().pid, point.pid);
        cr_assert_eq(back.value().start_time, point.start_time);
        cr_assert_eq(back.value().host, point.host);
    }
    const WatchPoint point{SocketAddress::parse("10.1.2.3:4").value(), 1, 2, 3};
    const auto good = encode_watch_point(point);
    cr_assert_not(decode_watch_point(Bytes(good).first(good.size() - 1)).ok());
    auto bad = good;
    bad[0] = std::byte{2};
    cr_assert_not(decode_watch_point(bad).ok(), "version");
    bad = good;
    bad[1] = std::byte{5};
    cr_assert_not(decode_watch_point(bad).ok(), "family");
    bad = good;
    bad[2] = bad[3] = std::byte{0};
    cr_assert_not(decode_watch_point(bad).ok(), "port");
    bad = good;
    bad[4] = std::byte{0xff};
    cr_assert_not(decode_watch_point(bad).ok(), "pid");
    bad = good;
    bad[24] = std::byte{239};
    cr_assert_not(decode_watch_point(bad).ok(), "multicast");
    cr_assert_not(decode_watch_point(encode_watch_point({})).ok(), "nothing to watch");
}

Test(transport_watch, reads_odd_process_names) {
    std::string fields = "12 (a b) c) 1 2) S";
    for (int i = 4; i <= 21; ++i) fields += " " + std::to_string(i);
    auto ticks = parse_start_time(fields + " 987654 23 24\n");
    cr_assert(ticks.ok());
    cr_assert_eq(ticks.value(), 987654);
    cr_assert_not(parse_start_time(fields).ok());
    cr_assert_not(parse_start_time("").ok());
    cr_assert_not(parse_start_time("12 (x) S 1").ok());
    cr_assert_not(process_start_time(0).ok());
}
