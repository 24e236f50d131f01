// PeerWatch where something is short: descriptors, or places to watch from.
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "watch_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;

TestSuite(transport_watch_limits, .timeout = 300);

namespace {

// As if so many descriptors were all that this process may have.
class Descriptors {
  public:
    explicit Descriptors(rlim_t most) {
        cr_assert_eq(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        set(most);
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

}  // namespace

// Whoever waits for a peer that cannot be watched would wait for ever.
Test(transport_watch_limits, a_watch_without_descriptors_ends_with_that) {
    for (const bool reachable : {true, false}) {
        PeerWatchOptions options;
        if (reachable) options.local = loopback();
        options.peer_timeout_ms = 400;
        auto watch = open_or_fail(options);
        const Pipe pipe;
        Child child([&] { return peer(options, pipe); });
        const WatchPoint point = receive_point(pipe);
        {
            const Descriptors none(0);
            cr_assert(watch->watch(1, point, now()).ok(), "there may be descriptors again");
            const auto dead = deaths(*watch, 1, kPatienceMs);
            cr_assert_eq(dead.size(), 1, "reachable: %d", reachable);
            cr_assert_eq(dead[0].error, EMFILE);
            expect_reason(dead[0], "could not be watched for 400 ms");
            cr_assert_eq(watch->watched(), 0);
        }
        cr_assert(watch->watch(1, point, now()).ok());
        cr_assert_eq(watch->neighbours(), 1);
    }
}

Test(transport_watch_limits, a_watch_begins_when_there_are_descriptors_again) {
    PeerWatchOptions options;
    options.peer_timeout_ms = kPatienceMs;
    auto watch = open_or_fail(options);
    const Pipe pipe;
    Child child([&] { return peer(options, pipe); });
    const WatchPoint point = receive_point(pipe);
    const Nanoseconds start = now();
    {
        const Descriptors none(0);
        cr_assert(watch->watch(1, point, start).ok());
        cr_assert_eq(watch->neighbours(), 0);
    }
    std::array<PeerWatch::Death, 4> dead;
    cr_assert_eq(watch->poll(start + Nanoseconds::from_ms(kPatienceMs / 2), dead), 0);
    cr_assert_eq(watch->neighbours(), 1);
    child.signal(SIGKILL);
    const auto found = deaths(*watch, 1, kPatienceMs);
    cr_assert_eq(found.size(), 1);
    cr_assert_eq(found[0].error, ECONNRESET);
}

Test(transport_watch_limits, so_many_are_watched_and_no_more) {
    const Descriptors enough(PeerWatch::kMaxWatches + 100);
    auto watch = open_or_fail({});
    const Pipe pipe;
    Child child([&] { return peer({}, pipe); });
    const WatchPoint point = receive_point(pipe);
    for (PeerWatch::Id id = 0; id < PeerWatch::kMaxWatches; ++id)
        cr_assert(watch->watch(id, point, now()).ok(), "%zu", static_cast<std::size_t>(id));
    cr_assert_eq(watch->neighbours(), PeerWatch::kMaxWatches);
    const auto refused = watch->watch(PeerWatch::kMaxWatches, point, now());
    cr_assert_eq(refused.error().code, ENOSPC);
    watch->unwatch(5);
    cr_assert(watch->watch(PeerWatch::kMaxWatches, point, now()).ok());
    child.signal(SIGKILL);
    auto dead = deaths(*watch, PeerWatch::kMaxWatches, kPatienceMs);
    cr_assert_eq(dead.size(), PeerWatch::kMaxWatches, "each is told once");
    std::sort(dead.begin(), dead.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (std::size_t i = 0; i < dead.size(); ++i) cr_assert_eq(dead[i].id, i < 5 ? i : i + 1);
    cr_assert_eq(watch->watched(), 0);
}
