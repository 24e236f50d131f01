// PeerWatch, which detects the death of peers: which events count as a death. Temporary silence, non-members
// that fill the backlog, children of fork() with a dead peer's sockets, gateways accepting on behalf of
// others.
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "transport/peer_watch.h"
#include "transport_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using namespace mcastcoll::transport;

TestSuite(transport_watch_limits, .timeout = 300);

namespace {

constexpr PeerWatch::Id kWatched = 7;

SocketAddress lo_address() {
    return SocketAddress::parse("127.0.0.1").value();
}

// A peer process: opens a PeerWatch, sends the watch point, runs `then`, and stays alive.
int live(const PeerWatchOptions& options, const Pipe& point, const std::function<void(PeerWatch&)>& then) {
    auto own = PeerWatch::open(options);
    if (!own) return 2;
    const auto encoded = encode_watch_point(own.value()->local_point());
    point.put_all(encoded.data(), encoded.size());
    then(*own.value());
    for (;;) ::pause();
}

// Reads a peer's watch point (where it is watched for its death), so that the peer is watched over TCP on any
// host.
WatchPoint point_of(const Pipe& pipe) {
    std::array<std::byte, kWatchPointBytes> encoded;
    cr_assert(pipe.get_all(encoded.data(), encoded.size(), kEventTimeoutMs));
    WatchPoint point = must(decode_watch_point(encoded));
    point.host = 0;
    return point;
}

std::vector<PeerWatch::Death> reported_dead(PeerWatch& watch, int milliseconds) {
    std::array<PeerWatch::Death, 4> dead;
    std::vector<PeerWatch::Death> found;
    eventually(milliseconds, [&] {
        const std::size_t count = watch.poll(now(), dead);
        found.assign(dead.begin(), dead.begin() + static_cast<std::ptrdiff_t>(count));
        return count > 0;
    });
    return found;
}

void expect_end_of_process(PeerWatch& watch) {
    const auto dead = reported_dead(watch, kEventTimeoutMs);
    cr_assert_eq(dead.size(), 1);
    cr_assert_eq(dead[0].error, ECONNRESET);
    cr_assert(dead[0].reason.ends_with("has ended"), "%s", dead[0].reason.c_str());
}

bool connects(PeerWatch& watch) {
    std::array<PeerWatch::Death, 4> dead;
    return eventually(kEventTimeoutMs, [&] {
        cr_assert_eq(watch.poll(now(), dead), 0);
        return watch.next_deadline() == kNever;
    });
}

// Opens connections and sends nothing.
std::vector<FileDescriptor> idle_connections(const SocketAddress& to, unsigned count) {
    std::vector<FileDescriptor> all;
    for (unsigned i = 0; i < count; ++i) {
        FileDescriptor one(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK, 0));
        const SocketAddress from = SocketAddress::parse("127.0.0.2").value();
        cr_assert_eq(::bind(one.get(), from.data(), from.size()), 0);
        (void)::connect(one.get(), to.data(), to.size());
        all.push_back(std::move(one));
    }
    return all;
}

void silence(const FarHost& far, bool on) {
    shell("nsenter -t " + std::to_string(far.pid()) + " -n ip route " + (on ? "add" : "del") +
          " blackhole 10.77.0.1/32");
}

}  // namespace

// Silence is needed only to detect a host without power: networks can be silent for a minute and recover.
Test(transport_watch_limits, the_default_is_minutes) {
    cr_assert_geq(PeerWatchOptions().host_timeout_ms, 120'000);
}

Test(transport_watch_limits, silence_that_ends_is_no_death) {
    enter_network_namespace();
    const auto options = [](const char* address) {
        return PeerWatchOptions{.local = SocketAddress::parse(address).value(), .host_timeout_ms = 100'000};
    };
    auto watch = must(PeerWatch::open(options("10.77.0.1")));
    FarHost far([&](const FarHost& self) { return live(options("10.77.0.2"), self.ready, [](auto&) {}); });
    const WatchPoint point = point_of(far.ready);
    cr_assert(watch->watch(kWatched, point, now()).ok());
    cr_assert(connects(*watch));
    watch->look_at_all(now());
    cr_assert(reported_dead(*watch, 1500).empty());
    cr_assert_not(watch->any_silent(now()), "it answers");
    silence(far, true);
    watch->look(kWatched, now());
    cr_assert(watch->watch(kWatched + 1, point, now()).ok(), "another watch begins in the silence");
    cr_assert(reported_dead(*watch, 3000).empty());
    cr_assert(eventually(kEventTimeoutMs, [&] { return watch->any_silent(now()); }));
    watch->unwatch(kWatched + 1);
    cr_assert(watch->any_silent(now()), "the connected one");
    cr_assert(watch->watch(kWatched + 1, point, now()).ok());
    silence(far, false);
    cr_assert(connects(*watch), "soon after the silence");
    cr_assert(eventually(kEventTimeoutMs, [&] { return !watch->any_silent(now()); }));
    cr_assert_eq(watch->watched(), 2);
    watch->unwatch(kWatched + 1);
    ::kill(far.pid(), SIGKILL);
    expect_end_of_process(*watch);
}

// The watched process computes, so the foreign connections stay in its backlog. A peer with a full
// backlog is unreachable, but alive.
Test(transport_watch_limits, idle_foreign_connections_cause_no_death) {
    enter_network_namespace();
    shell("echo 16 > /proc/sys/net/core/somaxconn");
    const PeerWatchOptions options{.local = lo_address(), .host_timeout_ms = 1000};
    const Pipe pipe;
    const Child child([&] { return live(options, pipe, [](auto&) {}); });
    const WatchPoint point = point_of(pipe);
    const auto foreign = idle_connections(point.listener, 100);
    auto watch = must(PeerWatch::open(options));
    cr_assert(watch->watch(kWatched, point, now()).ok());
    cr_assert(reported_dead(*watch, 4000).empty());
    cr_assert(watch->next_deadline() != kNever, "there was no room");
    child.signal(SIGKILL);
    expect_end_of_process(*watch);
}

Test(transport_watch_limits, foreign_connections_give_way_to_watchers) {
    enter_network_namespace();
    shell("echo 16 > /proc/sys/net/core/somaxconn");
    const PeerWatchOptions options{.local = lo_address(), .host_timeout_ms = 60'000};
    const Pipe pipe, go;
    const Child child([&] {
        return live(options, pipe, [&](PeerWatch& own) {
            std::array<PeerWatch::Death, 4> dead;
            (void)go.get(kEventTimeoutMs);
            for (;;) {
                (void)own.poll(now(), dead);
                ::usleep(10'000);
            }
        });
    });
    const WatchPoint point = point_of(pipe);
    auto early = must(PeerWatch::open(options)), late = must(PeerWatch::open(options));
    cr_assert(early->watch(kWatched, point, now()).ok(), "it is connected, and has sent nothing yet");
    const auto foreign = idle_connections(point.listener, 100);
    cr_assert(late->watch(kWatched, point, now()).ok());
    go.put('g');
    cr_assert(eventually(kEventTimeoutMs, [&] { return !is_connection_open(foreign.front().get()); }));
    for (PeerWatch* const watch : {early.get(), late.get()}) {
        cr_assert(connects(*watch));
        cr_assert(reported_dead(*watch, 1500).empty());
        cr_assert_eq(watch->watched(), 1);
    }
    child.signal(SIGKILL);
    expect_end_of_process(*early);
    expect_end_of_process(*late);
}

Test(transport_watch_limits, a_child_of_fork_does_not_keep_its_parent_alive) {
    const PeerWatchOptions options{.local = lo_address(), .host_timeout_ms = 60'000};
    const Pipe pipe, never;
    const Child child([&] {
        return live(options, pipe, [&](PeerWatch& own) {
            if (::fork() == 0) {
                std::array<PeerWatch::Death, 4> dead;
                (void)own.poll(now(), dead);
                (void)never.get(5000);
                ::_exit(0);
            }
        });
    });
    auto watch = must(PeerWatch::open(options));
    cr_assert(watch->watch(kWatched, point_of(pipe), now()).ok());
    cr_assert(connects(*watch));
    cr_assert(reported_dead(*watch, 300).empty());
    const Nanoseconds start = now();
    child.signal(SIGKILL);
    expect_end_of_process(*watch);
    cr_assert(now() - start < Nanoseconds::from_ms(4000), "while the child lives");
}

// A gateway accepts connections for other hosts; a listener that mistakes watchers for foreign hosts closes
// connections, too.
Test(transport_watch_limits, connections_that_never_last_are_the_end_behind_gateways) {
    const FileDescriptor gateway(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    const SocketAddress at = lo_address();
    cr_assert_eq(::bind(gateway.get(), at.data(), at.size()), 0);
    cr_assert_eq(::listen(gateway.get(), 4), 0);
    PeerWatchOptions options{.local = lo_address(), .host_timeout_ms = 60'000};
    auto plain = must(PeerWatch::open(options));
    options.has_gateways = true;
    auto watch = must(PeerWatch::open(options));
    WatchPoint point;
    point.listener = must(SocketAddress::of_socket(gateway.get()));
    cr_assert(plain->watch(kWatched, point, now()).ok());
    std::array<PeerWatch::Death, 4> dead;
    unsigned accepted = 0;
    cr_assert(eventually(kEventTimeoutMs, [&] {
        accepted += FileDescriptor(::accept(gateway.get(), nullptr, nullptr)).valid();
        cr_assert_eq(plain->poll(now(), dead), 0, "its listener may take this watcher for a foreign host");
        return accepted == 5;
    }));
    plain->unwatch(kWatched);
    cr_assert(watch->watch(kWatched, point, now()).ok());
    accepted = 0;
    cr_assert(eventually(kEventTimeoutMs, [&] {
        accepted += FileDescriptor(::accept(gateway.get(), nullptr, nullptr)).valid();
        return watch->poll(now(), dead) > 0;
    }));
    cr_assert_eq(dead[0].error, ECONNRESET);
    cr_assert_geq(accepted, 2, "once is no proof");
}
