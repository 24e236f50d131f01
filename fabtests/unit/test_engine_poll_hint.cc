// The poll hint of an engine: the path (multicast or messages) by which it expects the next data.
#include "reduce_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;
using engine::PollHint;

TestSuite(poll_hint, .timeout = 300);

namespace {

constexpr PollHint kNoWay{false, false}, kByMulticast{true, false}, kByMessage{false, true};

struct Joined : Bench {
    explicit Joined(std::uint32_t self, std::vector<std::uint32_t> deaf = {}) : Bench(config_of(self, 4)) {
        cr_assert(engine.poll_hint() == mcastcoll::engine::kPollAll, "before it has joined");
        join(std::move(deaf));
        cr_assert(engine.poll_hint() == kNoWay, "nothing is open");
    }
};

}  // namespace

Test(poll_hint, a_broadcast_comes_by_multicast_until_a_nak) {
    Joined bench(2);
    ByteString message = content(5000), buffer(message.size());
    cr_assert(bench.broadcast(1, buffer).ok());
    bench.drain();
    cr_assert(bench.engine.poll_hint() == kByMulticast);
    bench.datagram(bench.fragment(1, 0, 0, message));
    cr_assert(bench.engine.poll_hint() == kByMulticast);
    bench.datagram(bench.fragment(1, 0, 2, message));
    std::size_t naks = 0;
    for (int i = 0; i < 1000 && naks == 0; ++i)
        naks = count(bench.pass(Nanoseconds::from_us(100)), Kind::nak);
    cr_assert_gt(naks, 0U);
    cr_assert(bench.engine.poll_hint() == engine::kPollAll);
    for (std::uint32_t i = 0; i < 4; ++i) bench.datagram(bench.fragment(1, 0, i, message));
    bench.drain();
    cr_assert(bench.engine.poll_hint() == kNoWay);
}

Test(poll_hint, without_multicast_a_member_waits_for_messages) {
    Joined bench(2, {2});
    ByteString buffer(5000);
    cr_assert(bench.broadcast(1, buffer).ok());
    bench.drain();
    cr_assert(bench.engine.poll_hint().messages);
    cr_assert_not(bench.engine.poll_hint().multicasts);
}

Test(poll_hint, a_barrier_is_messages_up_and_a_multicast_down) {
    Joined leaf(3);
    cr_assert(leaf.barrier().ok());
    leaf.drain();
    cr_assert(leaf.engine.poll_hint() == kByMulticast);

    Joined first(0);
    cr_assert(first.barrier().ok());
    first.drain();
    cr_assert(first.engine.poll_hint() == kByMessage);
    for (const Rank child : first.children()) first.message(gather(index_of(child), {}));
    first.drain();
    cr_assert(first.engine.poll_hint() == kNoWay);
}

// If the operations of a group wait for different paths, the group's poll hint names all paths.
Test(poll_hint, several_operations_wait_for_what_each_waits_for) {
    Joined bench(0);
    ByteString buffer(100);
    cr_assert(bench.broadcast(1, buffer).ok());
    cr_assert(bench.barrier().ok());
    bench.drain();
    cr_assert(bench.engine.poll_hint() == engine::kPollAll);
}

// A member without credit for the rest of a long vector waits for a credit.
Test(poll_hint, a_long_vector_waits_for_credits) {
    engine::GroupConfig config = config_of(3, 4);
    Bench bench(config);
    bench.join();
    ByteString vector = vector_of(3, std::uint64_t{100} * kPiece);
    cr_assert(bench.reduction(CollectiveKind::allreduce, vector).ok());
    bench.drain();
    cr_assert(bench.engine.poll_hint() == kByMessage);
}
