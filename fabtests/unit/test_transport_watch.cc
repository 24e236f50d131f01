// PeerWatch, which detects the death of peers, against real processes: busy, stopped, killed, unreachable;
// and shortages of descriptors or of watch points (where peers watch a process).
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <vector>

#include "transport/peer_watch.h"
#include "transport_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using namespace mcastcoll::transport;

TestSuite(transport_watch, .timeout = 300);

namespace {

SocketAddress loopback() {
    return SocketAddress::parse("127.0.0.1").value();
}

// A peer: opens a PeerWatch, sends its watch point, and makes no further call.
int peer(const PeerWatchOptions& options, const Pipe& point) {
    auto own = PeerWatch::open(options);
    if (!own) return 2;
    const auto encoded = encode_watch_point(own.value()->local_point());
    point.put_all(encoded.data(), encoded.size());
    for (;;) ::pause();
}

// Makes a peer on this host look remote, to watch it over TCP.
WatchPoint over_tcp(WatchPoint point) {
    point.pid = 0;
    return point;
}

WatchPoint receive_point(const Pipe& pipe, bool by_tcp = false) {
    std::array<std::byte, kWatchPointBytes> encoded;
    cr_assert(pipe.get_all(encoded.data(), encoded.size(), kEventTimeoutMs));
    const WatchPoint point = must(decode_watch_point(encoded));
    return by_tcp ? over_tcp(point) : point;
}

// Returns the deaths detected within the time, or as soon as there are `expected` deaths.
std::vector<PeerWatch::Death> deaths(PeerWatch& watch, std::size_t expected, int milliseconds) {
    std::vector<PeerWatch::Death> found;
    eventually(milliseconds, [&] {
        std::array<PeerWatch::Death, 4> dead;
        const std::size_t count = watch.poll(now(), dead);
        found.insert(found.end(), dead.begin(), dead.begin() + static_cast<std::ptrdiff_t>(count));
        return found.size() >= expected;
    });
    return found;
}

void expect_reason(const PeerWatch::Death& death, const std::string& part) {
    cr_assert(death.reason.find(part) != std::string::npos, "'%s' is not in the reason '%s'", part.c_str(),
              death.reason.c_str());
}

// Returns the milliseconds that the reason states after `text`; -1 if it states none.
long ms_after(const std::string& text, const std::string& reason) {
    const std::size_t at = reason.find(text);
    long ms = -1;
    if (at == std::string::npos || sscanf(reason.c_str() + at + text.size(), "%ld ms", &ms) != 1) return -1;
    return ms;
}

void stopped_lives_killed_is_dead(const PeerWatchOptions& options, bool by_tcp) {
    auto watch = must(PeerWatch::open(options));
    const Pipe pipe;
    Child child([&] { return peer(options, pipe); });
    cr_assert(watch->watch(7, receive_point(pipe, by_tcp), now()).ok());
    cr_assert(deaths(*watch, 1, 100).empty());
    child.signal(SIGSTOP);
    // Waits longer than the timeout, and than keepalive at its fastest.
    cr_assert(deaths(*watch, 1, 4000).empty(), "a stopped process is alive");
    child.signal(SIGKILL);
    pollfd entry{watch->descriptor(), POLLIN, 0};
    cr_assert_eq(::poll(&entry, 1, kEventTimeoutMs), 1, "the descriptor wakes a sleeper");
    const auto dead = deaths(*watch, 1, kEventTimeoutMs);
    cr_assert_eq(dead.size(), 1);
    cr_assert_eq(dead[0].id, 7);
    cr_assert_eq(dead[0].error, ECONNRESET);
    expect_reason(dead[0], by_tcp ? "its process has ended"
                                  : "its process " + std::to_string(child.pid()) + " has ended");
    cr_assert_eq(watch->watched(), 0);
    cr_assert(deaths(*watch, 1, 20).empty(), "a death is reported once");
}

// Limits this process to this many descriptors.
class Descriptors {
  public:
    explicit Descriptors(rlim_t max) {
        cr_assert_eq(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        set(max);
    }
    ~Descriptors() { set(before_.rlim_cur); }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;

  private:
    void set(rlim_t now) {
        const rlimit limits{now, before_.rlim_max};
        cr_assert_eq(::setrlimit(RLIMIT_NOFILE, &limits), 0);
    }
    rlimit before_{};
};

// Returns the number of the next descriptor to be opened.
int next_descriptor() {
    const int next = ::dup(STDERR_FILENO);
    cr_assert(next >= 0);
    ::close(next);
    return next;
}

// Returns options for the near end of the cable; there() returns those for the far end.
PeerWatchOptions here(std::int64_t timeout_ms) {
    return {SocketAddress::parse("10.77.0.1").value(), timeout_ms};
}

PeerWatchOptions there(PeerWatchOptions options) {
    options.local = SocketAddress::parse("10.77.0.2").value();
    return options;
}

}  // namespace

Test(transport_watch, neighbour_stopped_and_killed) {
    stopped_lives_killed_is_dead({SocketAddress(), 1000}, false);
}

Test(transport_watch, tcp_stopped_and_killed) {
    stopped_lives_killed_is_dead({.local = loopback(), .host_timeout_ms = 1000}, true);
}

Test(transport_watch, a_peer_already_gone_is_dead_at_once) {
    PeerWatchOptions options;
    options.local = loopback();
    for (const bool by_tcp : {false, true}) {
        auto watch = must(PeerWatch::open(options));
        const Pipe pipe;
        WatchPoint point;
        {
            Child child([&] { return peer(options, pipe); });
            point = receive_point(pipe, by_tcp);
        }
        cr_assert(watch->watch(1, point, now()).ok());
        const auto dead = deaths(*watch, 1, kEventTimeoutMs);
        cr_assert_eq(dead.size(), 1);
        expect_reason(dead[0], "its process ");
    }
}

Test(transport_watch, a_reused_process_number_is_not_the_peer) {
    auto watch = must(PeerWatch::open({}));
    WatchPoint self = watch->local_point();
    cr_assert_neq(self.start_time, 0);
    cr_assert(watch->watch(1, self, now()).ok());
    self.start_time -= 1;
    cr_assert(watch->watch(2, self, now()).ok());
    const auto dead = deaths(*watch, 1, kEventTimeoutMs);
    cr_assert_eq(dead.size(), 1);
    cr_assert_eq(dead[0].id, 2);
    cr_assert_eq(watch->watched(), 1);
}

Test(transport_watch, unwatched_peers_are_not_reported) {
    PeerWatchOptions options;
    options.local = loopback();
    auto watch = must(PeerWatch::open(options));
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
    const auto dead = deaths(*watch, 1, kEventTimeoutMs);
    cr_assert_eq(dead.size(), 1);
    cr_assert_eq(dead[0].id, 2);
    cr_assert(deaths(*watch, 1, 300).empty());
    cr_assert(watch->watch(1, watch->local_point(), now()).ok(), "a slot is used again");
}

Test(transport_watch, many_watchers_of_one_that_never_polls) {
    const PeerWatchOptions options{.local = loopback(), .host_timeout_ms = 2000};
    const Pipe pipe;
    Child child([&] { return peer(options, pipe); });
    const WatchPoint point = receive_point(pipe, true);
    auto watch = must(PeerWatch::open(options));
    constexpr PeerWatch::Id kWatchers = 300;
    for (PeerWatch::Id id = 0; id < kWatchers; ++id) cr_assert(watch->watch(id, point, now()).ok());
    std::array<PeerWatch::Death, 4> dead;
    cr_assert(eventually(kEventTimeoutMs,
                         [&] {
                             cr_assert_eq(watch->poll(now(), dead), 0);
                             return watch->next_deadline() == kNever;
                         }),
              "all are connected");
    constexpr int kThreeTimeoutsMs = 6000;
    cr_assert(deaths(*watch, 1, kThreeTimeoutsMs).empty(), "connections without accept() hold as well");
    cr_assert(watch->next_deadline() == kNever);
    child.signal(SIGKILL);
    cr_assert_eq(deaths(*watch, kWatchers, kEventTimeoutMs).size(), kWatchers);
}

Test(transport_watch, churning_watchers_do_not_fill_the_backlog) {
    enter_network_namespace();
    shell("echo 16 > /proc/sys/net/core/somaxconn");
    const PeerWatchOptions options{.local = loopback(), .host_timeout_ms = 2000};
    auto watched = must(PeerWatch::open(options));
    const WatchPoint point = over_tcp(watched->local_point());
    std::array<PeerWatch::Death, 4> dead;
    Nanoseconds time = now();
    for (int round = 0; round < 10; ++round) {
        auto watcher = must(PeerWatch::open(options));
        for (PeerWatch::Id id = 0; id < 10; ++id) cr_assert(watcher->watch(id, point, now()).ok());
        cr_assert(eventually(kEventTimeoutMs,
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
    auto watch = must(PeerWatch::open(here(500)));
    WatchPoint unreachable;
    unreachable.listener = SocketAddress::parse("10.77.0.99:4000").value();
    const Nanoseconds start = now();
    cr_assert(watch->watch(5, unreachable, start).ok());
    cr_assert(watch->next_deadline() != kNever);
    const auto dead = deaths(*watch, 1, kEventTimeoutMs);
    cr_assert_eq(dead.size(), 1);
    expect_reason(dead[0], "its host did not respond for 5");
    cr_assert(now() - start >= Nanoseconds::from_ms(500));
}

Test(transport_watch, a_host_that_falls_silent_is_dead) {
    enter_network_namespace();
    const PeerWatchOptions options = here(2000);
    auto watch = must(PeerWatch::open(options));
    const FarHost far([&](const FarHost& self) { return peer(there(options), self.ready); });
    cr_assert(watch->watch(3, receive_point(far.ready), now()).ok());
    cr_assert(deaths(*watch, 1, 2500).empty());
    // The far host silently stops answering: packets to this host disappear.
    shell("nsenter -t " + std::to_string(far.pid()) + " -n ip route add blackhole 10.77.0.1/32");
    const auto dead = deaths(*watch, 1, kEventTimeoutMs);
    cr_assert_eq(dead.size(), 1);
    cr_assert_eq(dead[0].error, EHOSTDOWN);
    expect_reason(dead[0], "its host did not respond for ");
    expect_reason(dead[0], " at 10.77.0.2:");
}

// The restarted host no longer knows its old connections, and has sent no reset.
Test(transport_watch, a_look_finds_a_host_that_was_started_again) {
    enter_network_namespace();
    const PeerWatchOptions options = here(400'000);
    auto watch = must(PeerWatch::open(options));
    const auto start = [&] {
        return std::make_unique<FarHost>(
            [&](const FarHost& self) { return peer(there(options), self.ready); });
    };
    auto far = start();
    const WatchPoint point = receive_point(far->ready);
    cr_assert(watch->watch(3, point, now()).ok());
    cr_assert(watch->watch(4, point, now()).ok());
    const auto connected = [&] { return watch->next_deadline() == kNever; };
    std::array<PeerWatch::Death, 4> dead;
    cr_assert(eventually(kEventTimeoutMs, [&] { return watch->poll(now(), dead) == 0 && connected(); }));
    shell("ip link set mc0 down");
    far.reset();
    // The cable disappears with the other end's namespace.
    cr_assert(eventually(kEventTimeoutMs, [] { return ::system("ip link show mc0 >/dev/null 2>&1") != 0; }));
    shell(
        "ip link add mc0 type veth peer name mc1 && ip addr add 10.77.0.1/24 dev mc0 && ip link set mc0 up");
    far = start();
    (void)receive_point(far->ready);
    watch->look(3, now());
    watch->look(99, now());
    const auto found = deaths(*watch, 1, kEventTimeoutMs);
    cr_assert_eq(found.size(), 1, "a member that is not examined is queried much later");
    cr_assert_eq(found[0].id, 3);
    cr_assert_eq(found[0].error, ECONNRESET);
    expect_reason(found[0], "has ended");
}

// With every limit from no descriptors to enough, while look() is called again and again: living and
// reachable peers are watched for their death, and all others are reported lost in time.
Test(transport_watch, every_number_of_descriptors_comes_to_an_end) {
    constexpr std::int64_t kTimeoutMs = 200;
    constexpr PeerWatch::Id kNeighbour = 1, kByTcp = 2, kSilent = 3;
    enter_network_namespace();
    const PeerWatchOptions options = here(kTimeoutMs);
    const Pipe pipe;
    Child child([&] { return peer(options, pipe); });
    const WatchPoint neighbour = receive_point(pipe);
    WatchPoint silent;
    silent.listener = SocketAddress::parse("10.77.0.99:4000").value();
    unsigned max_watched = 0;
    for (rlim_t spare = 0; spare <= 8; ++spare) {
        auto watch = must(PeerWatch::open(options));
        const Descriptors few(static_cast<rlim_t>(next_descriptor()) + spare);
        const Nanoseconds start = now();
        cr_assert(watch->watch(kNeighbour, neighbour, start).ok());
        cr_assert(watch->watch(kByTcp, over_tcp(neighbour), start).ok());
        cr_assert(watch->watch(kSilent, silent, start).ok());
        std::vector<PeerWatch::Id> lost;
        std::array<PeerWatch::Death, 4> dead;
        const bool ended = eventually(kEventTimeoutMs, [&] {
            for (const PeerWatch::Id id : {kNeighbour, kByTcp, kSilent}) watch->look(id, now());
            const std::size_t count = watch->poll(now(), dead);
            for (std::size_t i = 0; i < count; ++i) {
                cr_assert(dead[i].error == EMFILE || dead[i].id == kSilent, "%zu", spare);
                lost.push_back(dead[i].id);
            }
            return watch->next_deadline() == kNever;
        });
        cr_assert(ended, "%lu descriptors: a member is neither watched nor lost", spare);
        cr_assert_eq(lost.size() + watch->watched(), 3);
        cr_assert(std::count(lost.begin(), lost.end(), kSilent) == 1, "%lu descriptors", spare);
        cr_assert(spare > 0 || lost.size() == 3, "without a descriptor no member is watched");
        max_watched = std::max(max_watched, static_cast<unsigned>(watch->watched()));
    }
    cr_assert_eq(max_watched, 2, "enough is enough");
}

Test(transport_watch, limits_and_bad_input) {
    PeerWatchOptions options;
    options.host_timeout_ms = 0;
    cr_assert_not(PeerWatch::open(options).ok());
    options.host_timeout_ms = 1000;
    auto watch = must(PeerWatch::open(options));
    WatchPoint wildcard;
    wildcard.listener = SocketAddress::parse("0.0.0.0:5").value();
    auto refused = watch->watch(1, wildcard, now());
    cr_assert_eq(refused.error().code, EOPNOTSUPP);
    WatchPoint foreign_point;
    foreign_point.pid = 1;
    foreign_point.host = watch->local_point().host + 1;
    refused = watch->watch(1, foreign_point, now());
    cr_assert_eq(refused.error().code, EOPNOTSUPP);
    cr_assert_eq(watch->watched(), 0);
    auto foreign = PeerWatch::open({.local = SocketAddress::parse("203.0.113.9").value()});
    cr_assert_eq(foreign.error().code, EADDRNOTAVAIL);
}

Test(transport_watch, points_travel) {
    for (const char* text : {"10.1.2.3:4", "[fd00::1]:65535", "0.0.0.0:9"}) {
        WatchPoint point{SocketAddress::parse(text).value(), 4711, 0x123456789abcdef0, 0xfedcba9876543210,
                         0x89abcdef};
        auto back = decode_watch_point(encode_watch_point(point));
        cr_assert(back.ok());
        cr_assert(back.value().listener == point.listener);
        cr_assert_eq(back.value().pid, point.pid);
        cr_assert_eq(back.value().start_time, point.start_time);
        cr_assert_eq(back.value().host, point.host);
        cr_assert_eq(back.value().token, point.token);
    }
    const WatchPoint point{SocketAddress::parse("10.1.2.3:4").value(), 1, 2, 3};
    const auto good = encode_watch_point(point);
    cr_assert_not(decode_watch_point(Bytes(good).first(good.size() - 1)).ok());
    auto bad = good;
    bad[0] = std::byte{1};
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
    const auto before = process_start_time(::getpid());
    cr_assert(before.ok() && before.value() > 0);
    cr_assert_eq(::prctl(PR_SET_NAME, "a b) 1 2\n) S 3"), 0);
    cr_assert_eq(process_start_time(::getpid()).value(), before.value());
    cr_assert_not(process_start_time(0).ok());
}

// A process waiting for a peer that cannot be watched would wait for ever.
Test(transport_watch, a_watch_without_descriptors_ends_with_that) {
    for (const bool reachable : {true, false}) {
        PeerWatchOptions options;
        if (reachable) options.local = loopback();
        options.host_timeout_ms = 400;
        auto watch = must(PeerWatch::open(options));
        const Pipe pipe;
        Child child([&] { return peer(options, pipe); });
        const WatchPoint point = receive_point(pipe);
        {
            const Descriptors none(0);
            cr_assert(watch->watch(1, point, now()).ok(), "there may be descriptors again");
            const auto dead = deaths(*watch, 1, kEventTimeoutMs);
            cr_assert_eq(dead.size(), 1, "reachable: %d", reachable);
            cr_assert_eq(dead[0].error, EMFILE);
            // Later than the timeout on a busy machine, but never earlier.
            cr_assert_geq(ms_after("could not be watched for ", dead[0].reason), options.host_timeout_ms,
                          "'%s'", dead[0].reason.c_str());
            cr_assert_eq(watch->watched(), 0);
        }
        cr_assert(watch->watch(1, point, now()).ok());
        cr_assert(watch->next_deadline() == kNever, "its process is watched");
    }
}

Test(transport_watch, a_watch_begins_when_there_are_descriptors_again) {
    PeerWatchOptions options;
    options.host_timeout_ms = kEventTimeoutMs;
    auto watch = must(PeerWatch::open(options));
    const Pipe pipe;
    Child child([&] { return peer(options, pipe); });
    const WatchPoint point = receive_point(pipe);
    const Nanoseconds start = now();
    {
        const Descriptors none(0);
        cr_assert(watch->watch(1, point, start).ok());
        cr_assert(watch->next_deadline() != kNever);
    }
    std::array<PeerWatch::Death, 4> dead;
    cr_assert_eq(watch->poll(start + Nanoseconds::from_ms(kEventTimeoutMs / 2), dead), 0);
    cr_assert(watch->next_deadline() == kNever);
    child.signal(SIGKILL);
    const auto found = deaths(*watch, 1, kEventTimeoutMs);
    cr_assert_eq(found.size(), 1);
    cr_assert_eq(found[0].error, ECONNRESET);
}

// The sibling inherits the descriptor through which the process is watched, so the descriptor stays readable.
Test(transport_watch, a_death_is_news_once_though_a_child_of_fork_holds_the_descriptor) {
    auto watch = must(PeerWatch::open({}));
    const Pipe pipe, never;
    Child child([&] { return peer({}, pipe); });
    cr_assert(watch->watch(1, receive_point(pipe), now()).ok());
    const Child sibling([&] { return never.get(kEventTimeoutMs) < 0; });
    child.signal(SIGKILL);
    cr_assert_eq(deaths(*watch, 1, kEventTimeoutMs).size(), 1);
    pollfd news{watch->descriptor(), POLLIN, 0};
    cr_assert_eq(::poll(&news, 1, 0), 0);
    sibling.signal(SIGKILL);
}

Test(transport_watch, so_many_are_watched_and_no_more) {
    const Descriptors enough(PeerWatch::kMaxWatches + 100);
    auto watch = must(PeerWatch::open({}));
    const Pipe pipe;
    Child child([&] { return peer({}, pipe); });
    const WatchPoint point = receive_point(pipe);
    for (PeerWatch::Id id = 0; id < PeerWatch::kMaxWatches; ++id)
        cr_assert(watch->watch(id, point, now()).ok(), "%zu", static_cast<std::size_t>(id));
    const auto refused = watch->watch(PeerWatch::kMaxWatches, point, now());
    cr_assert_eq(refused.error().code, ENOSPC);
    watch->unwatch(5);
    cr_assert(watch->watch(PeerWatch::kMaxWatches, point, now()).ok());
    child.signal(SIGKILL);
    auto dead = deaths(*watch, PeerWatch::kMaxWatches, kEventTimeoutMs);
    cr_assert_eq(dead.size(), PeerWatch::kMaxWatches, "each is reported once");
    std::sort(dead.begin(), dead.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (std::size_t i = 0; i < dead.size(); ++i) cr_assert_eq(dead[i].id, i < 5 ? i : i + 1);
    cr_assert_eq(watch->watched(), 0);
}
