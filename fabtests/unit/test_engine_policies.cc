// Repair policies, one engine at a time: events awaited by a receiver, messages to each member, and the
// handling of another member's NAK, independently of the own policy.
#include <algorithm>

#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;
using engine::Repair;

namespace {

// Removes the lower bounds of timeouts, so that times follow exactly from measurements.
engine::GroupConfig config_with(Repair repair, std::uint32_t self, std::uint32_t members) {
    engine::GroupConfig config = config_of(self, members);
    config.repair = repair;
    config.min_silence = config.min_tail = config.min_gap = config.lossless_silence = {};
    return config;
}

// A member that waits for broadcast 0, of this size, from rank 0.
struct PolicyMember : Bench {
    PolicyMember(Repair repair, std::uint32_t self, std::uint32_t members, std::uint64_t bytes)
        : Bench(config_with(repair, self, members)), sent(content(bytes)), buffer(bytes) {
        join();
        cr_assert(broadcast(0, buffer).ok());
        first = drain();
    }
    void receive(std::uint32_t index) { datagram(fragment(0, 0, index, sent)); }
    ByteString sent, buffer;
    std::vector<Out> first;  // its first messages
};

constexpr Repair kAll[] = {Repair::pull, Repair::push, Repair::sync, Repair::automatic};
const Nanoseconds kSoon = Nanoseconds::from_ms(30);

}  // namespace

TestSuite(policies, .timeout = 300);

// The principle of all policies: no member relies on another member to act unasked.
Test(policies, silence_always_ends_in_a_nak_to_the_supplier) {
    for (Repair repair : kAll)
        for (std::uint64_t bytes : {8U, 5000U, 20000U}) {
            PolicyMember receiver(repair, 2, 8, bytes);
            auto naks = of_kind(receiver.first, Kind::nak);
            for (const Out& out : of_kind(receiver.pass(kSoon), Kind::nak)) naks.push_back(out);
            cr_assert_eq(naks.size(), 1U, "%s", engine::name_of(repair).data());
            cr_assert(naks[0].to == rank_of(1));
        }
}

Test(policies, a_nak_for_missing_fragments_is_forwarded_at_once_and_once) {
    for (Repair repair : {Repair::pull, Repair::push, Repair::automatic}) {
        PolicyMember receiver(repair, 2, 8, 8);
        receiver.message(plain(Kind::nak, 3, 0, 0, 8, {std::byte{1}}));
        const auto naks = of_kind(receiver.drain(), Kind::nak);
        cr_assert_eq(naks.size(), 1U);
        cr_assert(naks[0].to == rank_of(1));
        receiver.message(plain(Kind::nak, 3, 0, 0, 8, {std::byte{1}}));
        cr_assert_eq(count(receiver.pass(kSoon), Kind::nak), 0U);
        receiver.message(plain(Kind::data, 1, 0, 0, 8, receiver.sent));
        const auto data = of_kind(receiver.drain(), Kind::data);
        cr_assert_eq(data.size(), 1U);
        cr_assert(data[0].to == rank_of(3) && data[0].payload == receiver.sent);
    }
}

Test(policies, a_nak_before_the_post_is_forwarded_with_the_post) {
    Bench bench(config_with(Repair::pull, 2, 8));
    bench.join();
    bench.message(plain(Kind::nak, 3, 0, 0, 8, {std::byte{1}}));
    cr_assert_eq(count(bench.drain(), Kind::nak), 0U, "the supplier is not known yet");
    ByteString buffer(8);
    cr_assert(bench.broadcast(0, buffer).ok());
    cr_assert_eq(count(bench.drain(), Kind::nak), 1U);
}

// A NAK for a large message may name fragments that the root has not sent yet. The member that gets the NAK
// requests only the holes in its own data from its supplier (the member that answers its NAKs).
Test(policies, of_a_large_message_only_holes_go_onward) {
    PolicyMember receiver(Repair::pull, 2, 8, 20000);
    receiver.receive(0);
    receiver.receive(2);
    receiver.drain();
    receiver.message(plain(Kind::nak, 3, 0, 0, 20000, {std::byte{0xff}, std::byte{0x7f}}));
    const auto out = receiver.drain();
    const auto naks = of_kind(out, Kind::nak);
    cr_assert_eq(naks.size(), 1U);
    cr_assert_eq(index_of(naks[0].header.fragment), 1U);
    cr_assert(naks[0].payload == ByteString{std::byte{1}});
    cr_assert_eq(count(out, Kind::data), 2U, "what is here is answered at once");
}

// Returns the time between the start of a barrier and the first NAK, after barriers of these durations.
static std::int64_t nak_delay_us(const std::vector<std::int64_t>& took_us) {
    engine::GroupConfig config = config_of(2, 8);
    config.initial_rtt = Nanoseconds::from_us(50);
    config.lossless_silence = {};  // as in a group that has lost datagrams, whose timeouts are shorter
    Bench member(config);
    member.join();
    for (std::uint64_t number = 0; number < took_us.size(); ++number) {
        cr_assert(member.barrier().ok());
        member.now = member.now + Nanoseconds::from_us(took_us[number]);
        member.datagram(plain(Kind::release, 0, number));
        member.drain();
    }
    cr_assert(member.barrier().ok());
    const Nanoseconds begin = member.now, step = Nanoseconds::from_us(5);
    while (count(member.pass(step), Kind::nak) == 0) cr_assert_lt((member.now - begin).value, kSoon.value);
    return (member.now - begin).value / 1000;
}

// On busy cores a barrier takes many round trips. The NAK is sent when a barrier takes longer than usual, and
// still soon if repairs of other members have delayed most of the recent ones.
Test(policies, a_barrier_is_not_requested_before_its_usual_time) {
    const std::int64_t min = config_of(2, 8).min_silence.value / 1000;
    cr_assert_eq(nak_delay_us({}), min);
    cr_assert_eq(nak_delay_us(std::vector<std::int64_t>(16, 20)), min);
    cr_assert_eq(nak_delay_us(std::vector<std::int64_t>(16, 500)), 625);
    std::vector<std::int64_t> repaired(16, 2000);
    std::fill_n(repaired.begin(), 5, 100);
    const std::int64_t delay = nak_delay_us(repaired);
    cr_assert(delay >= min && delay <= 4 * 100 + 5, "%ld us", static_cast<long>(delay));
}

Test(policies, push_waits_longer_and_forwards_once) {
    PolicyMember pull(Repair::pull, 2, 8, 8), push(Repair::push, 2, 8, 8);
    const Nanoseconds from = pull.now;
    cr_assert_gt((push.engine.next_deadline() - from).value, 3 * (pull.engine.next_deadline() - from).value);
    push.receive(0);
    const auto out = push.pass(kSoon);
    cr_assert_eq(count(out, Kind::data), 1U);
    cr_assert_eq(push.engine.counters().messages_forwarded, 1U);
    cr_assert_eq(count(pull.pass(Nanoseconds{}), Kind::data), 0U);
    // A member that has sent a NAK gets no second copy.
    PolicyMember with_nak(Repair::push, 2, 8, 8);
    with_nak.message(plain(Kind::nak, 3, 0, 0, 8, {std::byte{1}}));
    with_nak.receive(0);
    cr_assert_eq(count(with_nak.pass(kSoon), Kind::data), 1U);
    cr_assert_eq(with_nak.engine.counters().messages_forwarded, 0U);
}

Test(policies, a_lost_tail_is_noticed_by_the_gaps_of_its_own_message) {
    PolicyMember receiver(Repair::pull, 2, 8, 40 * 1424);
    for (std::uint32_t i = 0; i < 20; ++i) {
        receiver.now = receiver.now + Nanoseconds::from_us(5);
        receiver.receive(i);
    }
    receiver.drain();
    const Nanoseconds wait = receiver.engine.next_deadline() - receiver.now;
    cr_assert_leq(wait.value, receiver.engine.round_trip().value, "%ld us",
                  static_cast<long>(wait.value / 1000));
    const auto naks = of_kind(receiver.pass(kSoon), Kind::nak);
    cr_assert_eq(naks.size(), 1U);
    cr_assert_eq(index_of(naks[0].header.fragment), 20U);
}

TestSuite(sync_policy, .timeout = 300);

Test(sync_policy, a_receiver_reports_to_its_parent_then_sends_naks_to_its_supplier) {
    // Rank 7 of 8: report parent 1 (position 7 of a tree of four children), ring supplier 6.
    PolicyMember receiver(Repair::sync, 7, 8, 8);
    const auto out = receiver.pass(kSoon);
    const auto root_naks = of_kind(out, Kind::root_nak);
    cr_assert_eq(root_naks.size(), 2U);
    for (const Out& root_nak : root_naks) {
        cr_assert(root_nak.to == rank_of(1));
        cr_assert_eq(root_nak.header.total, 0U, "the root");
        cr_assert(root_nak.payload == ByteString{std::byte{1}});
    }
    const auto naks = of_kind(out, Kind::nak);
    cr_assert_eq(naks.size(), 1U);
    cr_assert(naks[0].to == rank_of(6));
}

Test(sync_policy, progress_forgets_fruitless_rounds) {
    PolicyMember receiver(Repair::sync, 7, 8, 6 * 1424);
    receiver.receive(5);
    for (std::uint32_t i = 0; i < 5; ++i) {
        const auto out = receiver.pass(receiver.engine.next_deadline() - receiver.now);
        cr_assert_eq(count(out, Kind::nak), 0U);
        receiver.receive(i);  // a little more progress
    }
    cr_assert_eq(count(receiver.drain(), Effect::Kind::complete), 1U);
}

Test(sync_policy, inner_members_merge_and_forward_whatever_their_policy_is) {
    for (Repair repair : kAll) {
        PolicyMember inner(repair, 1, 16, 20000);
        inner.message(plain(Kind::root_nak, 5, 0, 3, 0, {std::byte{0b101}}));
        auto root_naks = of_kind(inner.drain(), Kind::root_nak);
        cr_assert_eq(root_naks.size(), 1U, "%s", engine::name_of(repair).data());
        cr_assert(root_naks[0].to == rank_of(0));
        cr_assert_eq(index_of(root_naks[0].header.fragment), 3U);
        cr_assert(root_naks[0].payload == ByteString{std::byte{0b101}});
        // A NAK forwarded a moment ago is not forwarded again; a new NAK is.
        inner.message(plain(Kind::root_nak, 6, 0, 3, 0, {std::byte{0b111}}));
        root_naks = of_kind(inner.drain(), Kind::root_nak);
        cr_assert_eq(root_naks.size(), 1U);
        cr_assert_eq(index_of(root_naks[0].header.fragment), 4U);
        cr_assert(root_naks[0].payload == ByteString{std::byte{1}});
        inner.now = inner.now + inner.engine.round_trip();
        inner.message(plain(Kind::root_nak, 6, 0, 3, 0, {std::byte{0b111}}));
        cr_assert_eq(count(inner.drain(), Kind::root_nak), 1U);
    }
}

Test(sync_policy, a_member_forwards_before_it_has_posted) {
    Bench bench(config_with(Repair::sync, 1, 16));
    bench.join();
    bench.message(plain(Kind::root_nak, 5, 2, 0, 0, {std::byte{1}}));
    const auto root_naks = of_kind(bench.drain(), Kind::root_nak);
    cr_assert_eq(root_naks.size(), 1U);
    cr_assert(root_naks[0].to == rank_of(0) && root_naks[0].header.operation == operation_of(2));
}

Test(sync_policy, a_root_multicasts_again_what_it_has_sent_once_per_round_trip) {
    for (Repair repair : kAll)
        for (std::uint64_t bytes : {5000U, 60U * 1424}) {
            Bench bench(config_with(repair, 0, 8));
            bench.join();
            ByteString buffer = content(bytes);
            cr_assert(bench.broadcast(0, buffer).ok());
            const std::size_t fragments = count(bench.drain(), Kind::fragment);
            for (std::uint32_t sender : {1U, 2U, 3U})
                bench.message(plain(Kind::root_nak, sender, 0, 0, 0, ByteString(8, std::byte{0b110})));
            const auto again = of_kind(bench.drain(), Kind::fragment);
            std::size_t expected = 0;
            for (std::uint32_t i = 0; i < fragments; ++i) expected += i % 8 == 1 || i % 8 == 2;
            cr_assert_eq(again.size(), expected);
            for (const Out& out : again)
                cr_assert(out.payload == bench.fragment(0, 0, index_of(out.header.fragment), buffer).payload);
            cr_assert_eq(bench.engine.counters().fragments_resent, expected);
        }
}

Test(sync_policy, hostile_root_naks_are_counted_and_harm_nothing) {
    Bench bench(config_with(Repair::sync, 1, 8));
    bench.join();
    ByteString buffer(20000);
    cr_assert(bench.broadcast(0, buffer).ok());
    bench.drain();
    const auto before = bench.engine.counters().bad_sender;
    bench.message(plain(Kind::root_nak, 5, 0, 0, 99, {std::byte{1}}));          // no such root
    bench.message(plain(Kind::root_nak, 5, 0, 0, UINT64_MAX, {std::byte{1}}));  // no such root, either
    bench.message(plain(Kind::root_nak, 5, 0, 0, 3, {std::byte{1}}));           // not the root
    bench.message(
        plain(Kind::root_nak, 5, 0, 0, 0, ByteString(4096, std::byte{0xff})));  // longer than a window
    cr_assert_eq(bench.engine.counters().bad_sender - before, 4U);
    bench.message(plain(Kind::root_nak, 5, 1000, 0, 0, {std::byte{1}}));  // no such operation
    bench.message(plain(Kind::root_nak, 5, 0, 0, 0, {}));
    cr_assert_eq(count(bench.drain(), Kind::root_nak), 0U);
    // NAKs for holes far apart, and at the end of the range of numbers: the root drops some of them.
    bench.message(plain(Kind::root_nak, 5, 0, UINT32_MAX - 2, 0, ByteString(8, std::byte{0xff})));
    bench.message(plain(Kind::root_nak, 5, 0, 0, 0, ByteString(8, std::byte{0xff})));
    cr_assert_leq(count(bench.drain(), Kind::root_nak), 2U);
    // A root that has no operation 0.
    Bench root(config_with(Repair::sync, 0, 8));
    root.join();
    root.message(plain(Kind::root_nak, 1, 0, 0, 0, {std::byte{1}}));
    cr_assert(root.drain().empty(), "it has posted nothing");
}

namespace {

engine::GroupConfig four_channels(std::uint32_t self) {
    auto config = config_with(Repair::sync, self, 8);
    config.channels = 4;
    return config;
}

// A member under sync with four channels that has posted these broadcasts of rank 0.
struct ChannelUser : Bench {
    ChannelUser(std::uint32_t self, std::vector<ByteString>& buffers) : Bench(four_channels(self)) {
        join();
        for (ByteString& buffer : buffers) cr_assert(broadcast(0, buffer).ok());
    }
};

}  // namespace

Test(sync_policy, a_channel_is_used_again_after_the_watermark) {
    std::vector<ByteString> buffers(6, ByteString(8));
    ChannelUser bench(7, buffers);
    const ByteString sent = content(8);
    for (std::uint64_t id = 0; id < 4; ++id) bench.datagram(bench.fragment(0, id, 0, sent));
    auto out = bench.drain();
    cr_assert_eq(count(out, Effect::Kind::complete), 4U);
    cr_assert_eq(count(out, Kind::watermark_up), 1U, "the acknowledgement");
    bench.datagram(bench.fragment(0, 4, 0, sent));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 0U, "its channel is not free");
    bench.datagram(plain(Kind::watermark_cast, 0, 4));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
}

Test(sync_policy, a_member_without_the_watermark_requests_it_once) {
    std::vector<ByteString> buffers(6, ByteString(8));
    ChannelUser bench(7, buffers);
    const ByteString sent = content(8);
    for (std::uint64_t id = 0; id < 5; ++id) bench.datagram(bench.fragment(0, id, 0, sent));
    const auto out = bench.pass(kSoon);
    const auto requests = of_kind(out, Kind::watermark_request);
    cr_assert_eq(requests.size(), 1U);
    cr_assert(requests[0].to == rank_of(1));
    bench.message(plain(Kind::watermark_down, 1, 4));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
}

Test(sync_policy, a_parent_answers_or_forwards_the_request) {
    std::vector<ByteString> buffers(4, ByteString(8));
    ChannelUser bench(1, buffers);
    const ByteString sent = content(8);
    for (std::uint64_t id = 0; id < 4; ++id) bench.datagram(bench.fragment(0, id, 0, sent));
    bench.drain();
    bench.message(plain(Kind::watermark_request, 5, 0));
    bench.message(plain(Kind::watermark_request, 6, 0));
    const auto onward = of_kind(bench.drain(), Kind::watermark_request);
    cr_assert_eq(onward.size(), 1U);
    cr_assert(onward[0].to == rank_of(0));
    bench.datagram(plain(Kind::watermark_cast, 0, 4));
    cr_assert_eq(count(bench.drain(), Kind::watermark_down), 2U, "to the requesting children");
    bench.message(plain(Kind::watermark_request, 7, 0));
    cr_assert_eq(count(bench.drain(), Kind::watermark_down), 1U);
    const auto before = bench.engine.counters();
    bench.message(plain(Kind::watermark_request, 3, 0));  // not a child
    cr_assert_eq(changed(before, bench.engine.counters()), "messages_received bad_sender");
}

Test(sync_policy, an_older_request_does_not_answer_a_newer_one) {
    std::vector<ByteString> buffers(8, ByteString(8));
    ChannelUser bench(1, buffers);
    const ByteString sent = content(8);
    for (std::uint64_t id = 0; id < 4; ++id) bench.datagram(bench.fragment(0, id, 0, sent));
    bench.drain();
    bench.datagram(plain(Kind::watermark_cast, 0, 4));
    bench.message(plain(Kind::watermark_request, 5, 4));
    bench.message(plain(Kind::watermark_request, 5, 0));  // was overtaken
    for (std::uint64_t id = 4; id < 8; ++id) bench.datagram(bench.fragment(0, id, 0, sent));
    bench.drain();
    bench.datagram(plain(Kind::watermark_cast, 0, 8));
    const auto watermarks = of_kind(bench.drain(), Kind::watermark_down);
    cr_assert(!watermarks.empty() && watermarks.back().header.operation == operation_of(8));
}

Test(sync_policy, forged_watermarks_change_nothing) {
    std::vector<ByteString> buffers(6, ByteString(8));
    ChannelUser bench(7, buffers);
    bench.drain();
    const auto before = bench.engine.counters();
    bench.datagram(plain(Kind::watermark_cast, 3, 0));           // not sent by rank 0
    bench.datagram(plain(Kind::watermark_cast, 0, 4));           // more than this member has finished
    bench.datagram(plain(Kind::watermark_cast, 0, UINT64_MAX));  // more than this member has finished
    bench.message(plain(Kind::watermark_cast, 0, 0));            // must arrive by multicast
    cr_assert_eq(bench.engine.counters().unexpected_kind - before.unexpected_kind, 4U);
    cr_assert_eq(bench.engine.counters().checkpoints, before.checkpoints);
}

Test(sync_policy, rank_0_multicasts_the_watermark) {
    std::vector<ByteString> buffers(4, content(8));
    ChannelUser bench(0, buffers);
    bench.drain();
    for (std::uint32_t child : {1U, 2U, 3U}) bench.message(plain(Kind::watermark_up, child, 4));
    cr_assert_eq(count(bench.drain(), Kind::watermark_cast), 0U);
    bench.message(plain(Kind::watermark_up, 4, 4));
    const auto out = bench.drain();
    const auto watermark = of_kind(out, Kind::watermark_cast);
    cr_assert_eq(watermark.size(), 1U);
    cr_assert(watermark[0].kind == Effect::Kind::multicast &&
              watermark[0].header.operation == operation_of(4));
    cr_assert_eq(count(out, Kind::watermark_down), 0U, "every member receives");
}

TestSuite(automatic_policy, .timeout = 300);

namespace {

engine::Policy policy_of(Repair repair, std::uint32_t members) {
    engine::GroupConfig config;
    config.repair = repair;
    config.members = members;
    return engine::Policy(config);
}

}  // namespace

Test(automatic_policy, it_forwards_to_a_successor_that_sends_many_naks_with_hysteresis) {
    engine::Policy policy = policy_of(Repair::automatic, 8);
    cr_assert(!policy.mode(false, 1).forwards);
    for (int i = 0; i < 400; ++i) policy.note_successor(i % 25 == 0);
    cr_assert(!policy.mode(false, 1).forwards,
              "7 others with NAKs for 4 %% each count as a quarter of a member");
    int operations = 0;
    while (!policy.mode(false, 1).forwards && operations < 100) policy.note_successor(++operations % 3 == 0);
    cr_assert(policy.mode(false, 1).forwards);
    cr_assert(!policy.mode(false, 8).forwards, "now and then it checks for NAKs");
    for (int i = 0; i < 400; ++i) policy.note_successor(i % 25 == 0);
    cr_assert(policy.mode(false, 1).forwards, "it is no reason to stop, either");
    for (int i = 0; i < 400; ++i) policy.note_successor(false);
    cr_assert(!policy.mode(false, 1).forwards);
    cr_assert_eq(policy.changes(), 2U);
}

Test(automatic_policy, the_larger_the_group_the_sooner_it_forwards) {
    engine::Policy pair = policy_of(Repair::automatic, 2), large = policy_of(Repair::automatic, 64);
    for (int i = 0; i < 400; ++i) {
        pair.note_successor(i % 10 == 0);
        large.note_successor(i % 10 == 0);
    }
    cr_assert(!pair.mode(false, 1).forwards && large.mode(false, 1).forwards);
}

Test(automatic_policy, sends_naks_to_the_root_when_the_ring_is_long_and_tries_the_ring_again) {
    engine::Policy policy = policy_of(Repair::automatic, 64);
    const Nanoseconds rtt = Nanoseconds::from_us(40);
    for (int i = 0; i < 50; ++i) policy.note_repair(engine::Route::supplier, rtt, rtt);
    cr_assert(policy.mode(false, 1).route == engine::Route::supplier);
    for (int i = 0; i < 50; ++i)
        policy.note_repair(engine::Route::supplier, Nanoseconds{20 * rtt.value}, rtt);
    cr_assert(policy.mode(false, 1).route == engine::Route::root);
    int by_root = 0;
    for (; policy.mode(false, 1).route == engine::Route::root && by_root < 1000; ++by_root)
        policy.note_repair(engine::Route::root, Nanoseconds{3 * rtt.value}, rtt);
    cr_assert_lt(by_root, 1000);
    policy.note_repair(engine::Route::supplier, Nanoseconds{20 * rtt.value}, rtt);
    cr_assert(policy.mode(false, 1).route == engine::Route::supplier, "once is no proof");
    for (int i = 0; i < 8; ++i) policy.note_repair(engine::Route::supplier, Nanoseconds{20 * rtt.value}, rtt);
    cr_assert(policy.mode(false, 1).route == engine::Route::root, "it still is long");
    cr_assert_eq(policy.state().root_repair.value, 3 * rtt.value);
    engine::Policy small = policy_of(Repair::automatic, 4);
    for (int i = 0; i < 50; ++i) small.note_repair(engine::Route::supplier, Nanoseconds{20 * rtt.value}, rtt);
    cr_assert(small.mode(false, 1).route == engine::Route::supplier, "four members are no long ring");
}

Test(automatic_policy, it_chains_large_messages_that_the_multicast_does_not_bring) {
    engine::Policy policy = policy_of(Repair::automatic, 8);
    for (int i = 0; i < 50; ++i) policy.note_large(90, 100);
    cr_assert(!policy.mode(true, 1).chained);
    for (int i = 0; i < 50; ++i) policy.note_large(10, 100);
    cr_assert(policy.mode(true, 1).chained && !policy.mode(false, 1).chained);
    for (int i = 0; i < 100; ++i) policy.note_large(120, 100);  // duplicates count, too
    cr_assert(!policy.mode(true, 1).chained);
}

Test(automatic_policy, the_others_learn_nothing) {
    for (Repair repair : {Repair::pull, Repair::push, Repair::sync}) {
        engine::Policy policy = policy_of(repair, 64);
        const engine::RepairMode small = policy.mode(false, 1), large = policy.mode(true, 1);
        for (int i = 0; i < 200; ++i) {
            policy.note_successor(true);
            policy.note_large(0, 100);
            policy.note_repair(engine::Route::supplier, Nanoseconds::from_ms(5), Nanoseconds::from_us(1));
        }
        cr_assert(policy.mode(false, 1) == small && policy.mode(true, 1) == large);
        cr_assert_eq(policy.changes(), 0U);
    }
}

Test(automatic_policy, usual_times_ignore_a_few_long_ones) {
    engine::RecentTimes times;
    const Nanoseconds min = Nanoseconds::from_us(1), max = Nanoseconds::from_ms(10);
    cr_assert(times.deadline(min, max) == min);
    for (int i = 0; i < 64; ++i)
        times.sample(i % 8 == 0 ? Nanoseconds::from_ms(5) : Nanoseconds::from_us(100));
    cr_assert(times.deadline(min, max) == Nanoseconds::from_us(125));
    for (int i = 0; i < 3; ++i) times.sample(Nanoseconds::from_ms(5));
    cr_assert(times.deadline(min, max) > Nanoseconds::from_ms(5), "three are no exception any more");
}
