// What is multicast twice, and when: the shares that members tell each other, what a member buys for them,
// and what it sends.
#include "engine/redundancy.h"
#include "engine_fixture.h"

namespace mcastcoll::bench::redundancy {

using engine::kMillion;
using engine::LossMeter;
using engine::LossReport;
using engine::Redundancy;
using engine::RedundancyPolicy;

namespace {

constexpr std::uint32_t kMembers = 16;

RedundancyPolicy policy_of(Redundancy redundancy) {
    auto config = config_of(1, kMembers);
    config.redundancy = redundancy;
    return RedundancyPolicy(config);
}

std::vector<Out> sent_of(const std::vector<Out>& all, Kind kind) {
    std::vector<Out> some;
    for (const Out& out : all)
        if ((out.kind == Effect::Kind::multicast || out.kind == Effect::Kind::message) &&
            out.header.kind == kind)
            some.push_back(out);
    return some;
}

// Everybody but the root loses so much, in hundredths.
LossReport all_lose(std::uint32_t percent) {
    return {.lacking = std::uint64_t{kMembers - 1} * percent * (kMillion / 100),
            .worst = percent * (kMillion / 100)};
}

// A root of two, and what the other one tells.
struct Root : Bench {
    explicit Root(Redundancy redundancy = Redundancy::automatic) : Bench(config(redundancy)) { join(); }
    static engine::GroupConfig config(Redundancy redundancy) {
        auto config = config_of(0, 2);
        config.redundancy = redundancy;
        config.checkpoint_every = 4;
        config.retransmit_bytes = 16 * 1024;
        return config;
    }
    // What goes out of a broadcast of so many bytes, by multicast.
    std::vector<Out> send(std::uint64_t bytes) {
        buffers.push_back(content(bytes));
        cr_assert(broadcast(0, buffers.back()).ok());
        ++posted;
        return sent_of(drain(), Kind::fragment);
    }
    // The other one has finished all, and loses so much.
    void tell(const LossReport& losses) {
        do send(8);
        while (posted % 4 != 0);
        message({.kind = Kind::watermark_up,
                 .sender = 1,
                 .operation = posted,
                 .fragment = 0,
                 .total = engine::pack(losses),
                 .payload = {},
                 .key = {},
                 .epoch = {}});
        drain();
    }
    std::vector<ByteString> buffers;
    std::uint64_t posted = 0;
};

constexpr LossReport kTenth{.lacking = kMillion / 10, .worst = kMillion / 10};

bool repeated(const Out& out) {
    return (out.header.total & wire::kRepeatFlag) != 0;
}

}  // namespace

TestSuite(redundancy, .timeout = 60);

Test(redundancy, reports_survive_the_wire_and_nonsense_is_cut_off) {
    const LossReport report{.lacking = 3 * kMillion + 5, .worst = 123'456, .missed = 77};
    cr_assert(engine::unpack_losses(engine::pack(report), 16) == report);
    const LossReport huge{.lacking = UINT64_MAX, .worst = UINT32_MAX, .missed = UINT32_MAX};
    const LossReport back = engine::unpack_losses(engine::pack(huge), 4);
    cr_assert(back.lacking == 4 * kMillion && back.worst == kMillion && back.missed == kMillion);
    const LossReport lie = engine::unpack_losses(UINT64_MAX, 2);
    cr_assert(lie.lacking == 2 * kMillion && lie.worst == kMillion && lie.missed == kMillion);
}

Test(redundancy, a_share_follows_what_is_lost_and_forgets_what_was_late) {
    LossMeter meter;
    for (unsigned i = 0; i < 4000; ++i) meter.note(i % 20 == 0, i % 40 == 0, 1);
    cr_assert(meter.own().worst > 30'000 && meter.own().worst < 70'000, "%u", meter.own().worst);
    cr_assert(meter.own().missed > 10'000 && meter.own().missed < 45'000, "%u", meter.own().missed);
    for (unsigned i = 0; i < 4000; ++i) meter.note(0, 0, 1);
    cr_assert_leq(meter.own().worst, 1U);
    // One that is asked for, and comes late, was not lost.
    LossMeter late;
    for (unsigned i = 0; i < 1000; ++i) {
        late.note(1, 0, 1);
        late.note_late(1);
    }
    cr_assert_lt(late.own().worst, 100U);
    // Of a long message a fragment is a part.
    LossMeter parts;
    for (unsigned i = 0; i < 100; ++i) parts.note(5, 0, 50);
    cr_assert(parts.own().worst > 90'000 && parts.own().worst <= 100'000, "%u", parts.own().worst);
}

Test(redundancy, copies_are_bought_by_loss_and_size_and_given_back) {
    RedundancyPolicy policy = policy_of(Redundancy::automatic);
    cr_assert_eq(policy.copies(1), 0U);
    policy.adopt(all_lose(1));
    cr_assert_eq(policy.copies(1), 1U);
    policy.adopt(all_lose(5));
    cr_assert_eq(policy.copies(1), 2U);
    cr_assert_eq(policy.copies(RedundancyPolicy::kMostCopied), 2U);
    cr_assert_eq(policy.copies(RedundancyPolicy::kMostCopied + 1), 0U);
    // A pair that loses as much in the mean is worth fewer.
    RedundancyPolicy pair = policy_of(Redundancy::automatic);
    pair.adopt({.lacking = 50'000, .worst = 50'000});
    cr_assert_eq(pair.copies(1), 1U);
    // A little below what was worth it nothing changes, far below it is given back.
    const std::uint64_t changes = policy.changes();
    policy.adopt(all_lose(4));
    cr_assert_eq(policy.copies(1), 2U);
    cr_assert_eq(policy.changes(), changes);
    policy.adopt({.lacking = 4000, .worst = 1000});
    cr_assert_eq(policy.copies(1), 1U);
    policy.adopt({});
    cr_assert_eq(policy.copies(1), 0U);
    cr_assert_eq(policy.changes(), changes + 2);
}

Test(redundancy, off_buys_nothing_and_on_always_one) {
    RedundancyPolicy off = policy_of(Redundancy::off), on = policy_of(Redundancy::on);
    cr_assert_eq(on.copies(1), 1U);
    for (std::uint32_t percent : {0U, 1U, 5U, 100U}) {
        off.adopt(all_lose(percent));
        on.adopt(all_lose(percent));
        cr_assert_eq(off.copies(1), 0U);
        cr_assert_eq(on.copies(1), percent < 5 ? 1U : 2U);
    }
    cr_assert_eq(off.changes(), 0U);
}

Test(redundancy, where_copies_are_lost_with_what_they_copy_they_go_apart) {
    RedundancyPolicy policy = policy_of(Redundancy::automatic);
    LossReport bursts = all_lose(1);
    policy.adopt(bursts);
    cr_assert(policy.copies(1) == 1 && !policy.spreads());
    bursts.missed = static_cast<std::uint32_t>(bursts.lacking / 2);
    policy.adopt(bursts);
    cr_assert(policy.copies(1) == RedundancyPolicy::kMostCopies && policy.spreads());
    // That is believed for a while, and then tried again.
    unsigned reports = 0;
    for (bursts.missed = 0; policy.spreads() && reports < 1000; ++reports) policy.adopt(bursts);
    cr_assert(reports > 10 && reports < 1000, "%u", reports);
    cr_assert_eq(policy.copies(1), 1U);
}

Test(redundancy, a_root_sends_no_copy_until_it_is_told_of_losses) {
    Root root;
    cr_assert_eq(root.send(8).size(), 1U);
    root.tell(kTenth);
    const auto out = root.send(5000);
    cr_assert_eq(out.size(), 12U, "four fragments, and two copies of each");
    for (std::size_t i = 0; i < out.size(); ++i) {
        cr_assert_eq(index_of(out[i].header.fragment), i % 4);
        cr_assert_eq(repeated(out[i]), i >= 4);
        cr_assert(out[i].payload == out[i % 4].payload);
    }
    cr_assert_eq(root.send(8 * 1424).size(), 8U, "it is not short");
    cr_assert_eq(root.engine.counters().redundancy_changes, 1U);
    root.tell({});
    cr_assert_eq(root.send(5000).size(), 4U);
    Root off(Redundancy::off);
    off.tell(kTenth);
    cr_assert_eq(off.send(8).size(), 1U);
}

Test(redundancy, copies_that_go_apart_wait_for_their_time) {
    Root root;
    root.tell(kTenth);
    root.tell({.lacking = kMillion / 10, .worst = kMillion / 10, .missed = kMillion / 10});
    cr_assert_eq(root.send(8).size(), 1U);
    std::vector<Nanoseconds> copied_at;
    for (unsigned i = 0; i < 20 && root.engine.next_deadline() != kNever; ++i) {
        root.now = root.engine.next_deadline();
        root.engine.on_timeout(root.now);
        for (const Out& out : sent_of(root.drain(), Kind::fragment)) {
            cr_assert(repeated(out));
            copied_at.push_back(root.now);
        }
    }
    cr_assert(copied_at.size() == 2 && copied_at[0] < copied_at[1], "%zu copies", copied_at.size());
}

// The receiver's side: what it has by a copy only it has lost.
Test(redundancy, a_receiver_tells_what_it_lost_with_the_next_watermark) {
    for (const std::uint64_t flag : {std::uint64_t{0}, wire::kRepeatFlag}) {
        auto config = config_of(1, 2);
        config.checkpoint_every = 4;
        Bench receiver(config);
        receiver.join();
        std::vector<ByteString> buffers(8, ByteString(8));
        const ByteString sent = content(8);
        for (std::uint64_t id = 0; id < buffers.size(); ++id) {
            cr_assert(receiver.broadcast(0, buffers[id]).ok());
            Packet packet = receiver.fragment(0, id, 0, sent);
            packet.total |= flag;
            receiver.datagram(packet);
            cr_assert(buffers[id] == sent);
            // The first one, late; or once more.
            receiver.datagram(receiver.fragment(0, id, 0, sent));
        }
        const auto words = sent_of(receiver.drain(), Kind::watermark_up);
        cr_assert(!words.empty());
        const LossReport told = engine::unpack_losses(words.back().header.total, 2);
        cr_assert_eq(told.worst, 0U, "what came late was not lost");
        cr_assert_eq(told.missed, 0U);
    }
}

Test(redundancy, what_only_a_copy_brought_was_lost) {
    auto config = config_of(1, 2);
    config.checkpoint_every = 4;
    Bench receiver(config);
    receiver.join();
    std::vector<ByteString> buffers(4, ByteString(8));
    for (std::uint64_t id = 0; id < buffers.size(); ++id) {
        cr_assert(receiver.broadcast(0, buffers[id]).ok());
        Packet packet = receiver.fragment(0, id, 0, content(8));
        packet.total |= wire::kRepeatFlag;
        receiver.datagram(packet);
        receiver.datagram(packet);  // one more is none that was late
    }
    const auto words = sent_of(receiver.drain(), Kind::watermark_up);
    cr_assert_eq(words.size(), 1U);
    const LossReport told = engine::unpack_losses(words[0].header.total, 2);
    cr_assert(told.worst > 10'000 && told.lacking == told.worst && told.missed == 0, "%u", told.worst);
}

}  // namespace mcastcoll::bench::redundancy
