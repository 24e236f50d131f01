// Redundant multicasts: the loss reports exchanged by members, the redundancy chosen from the reports, and
// the packets sent.
#include "engine/loss_meter.h"
#include "engine/loss_report.h"
#include "engine/parity_code.h"
#include "engine/redundancy_policy.h"
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

// Returns the report of a group in which all members but the root lose this percentage.
LossReport all_lose(std::uint32_t percent) {
    return {.lacking = std::uint64_t{kMembers - 1} * percent * (kMillion / 100),
            .worst = percent * (kMillion / 100)};
}

// The root of a group of two, and the reports of the other member.
struct Root : Bench {
    explicit Root(Redundancy redundancy = Redundancy::automatic) : Bench(config(redundancy)) { join(); }
    static engine::GroupConfig config(Redundancy redundancy) {
        auto config = config_of(0, 2);
        config.redundancy = redundancy;
        config.checkpoint_every = 4;
        config.retransmit_bytes = 16 * 1024;
        return config;
    }
    // Broadcasts this many bytes and returns the multicasts.
    std::vector<Out> send(std::uint64_t bytes) {
        buffers.push_back(content(bytes));
        cr_assert(broadcast(0, buffers.back()).ok());
        ++posted;
        return sent_of(drain(), Kind::fragment);
    }
    // The other member has finished every operation, and reports these losses.
    void send_report(const LossReport& losses) {
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
    // A requested fragment that arrives late was not lost.
    LossMeter late, copied;
    for (unsigned i = 0; i < 1000; ++i) {
        late.note(1, 1, 1);
        late.note_late(1, 1, 1);
        copied.note(1, 1, 1);
        copied.note_late(0, 1, 1);
    }
    cr_assert(late.own().worst < 100 && late.own().missed < 100, "%u", late.own().worst);
    cr_assert(copied.own().worst > 900'000 && copied.own().missed < 100, "%u", copied.own().missed);
    // In a long message a lost fragment counts as a part of a message.
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
    cr_assert_eq(policy.copies(RedundancyPolicy::kMaxCopied), 2U);
    cr_assert_eq(policy.copies(RedundancyPolicy::kMaxCopied + 1), 0U);
    // A single receiver with the same average loss justifies fewer copies.
    RedundancyPolicy pair = policy_of(Redundancy::automatic);
    pair.adopt({.lacking = 50'000, .worst = 50'000});
    cr_assert_eq(pair.copies(1), 1U);
    // At a loss slightly below the threshold the root still multicasts copies, far below the threshold it
    // stops.
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
    // The first reports may refer to operations sent without copies.
    for (int report = 0; report < 8; ++report) {
        policy.adopt(bursts);
        cr_assert(policy.copies(1) == 1 && !policy.spreads(), "report %d", report);
    }
    policy.adopt(bursts);
    cr_assert(policy.copies(1) == RedundancyPolicy::kMaxCopies && policy.spreads());
    // The spread mode lasts for a while, and then is reevaluated.
    unsigned reports = 0;
    for (bursts.missed = 0; policy.spreads() && reports < 1000; ++reports) policy.adopt(bursts);
    cr_assert(reports > 10 && reports < 1000, "%u", reports);
    cr_assert_eq(policy.copies(1), 1U);
}

Test(redundancy, a_root_sends_no_copy_until_losses_are_reported) {
    Root root;
    cr_assert_eq(root.send(8).size(), 1U);
    root.send_report(kTenth);
    const auto out = root.send(5000);
    cr_assert_eq(out.size(), 12U, "four fragments, and two copies of each");
    for (std::size_t i = 0; i < out.size(); ++i) {
        cr_assert_eq(index_of(out[i].header.fragment), i % 4);
        cr_assert_eq(repeated(out[i]), i >= 4);
        cr_assert(out[i].payload == out[i % 4].payload);
    }
    cr_assert_eq(root.send(8 * 1424).size(), 8U, "it is not short");
    cr_assert_eq(root.engine.counters().redundancy_changes, 1U);
    root.send_report({});
    cr_assert_eq(root.send(5000).size(), 4U);
    Root off(Redundancy::off);
    off.send_report(kTenth);
    cr_assert_eq(off.send(8).size(), 1U);
}

Test(redundancy, copies_that_go_apart_wait_for_their_time) {
    Root root;
    for (int report = 0; report < 10; ++report)
        root.send_report({.lacking = kMillion / 10, .worst = kMillion / 10, .missed = kMillion / 10});
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

namespace {

// Returns the loss reports of a receiver after this many broadcasts, each delivered by `receive`.
std::vector<LossReport> reports_after(
    std::size_t broadcasts,
    const std::function<void(Bench& receiver, const Packet& fragment, const ByteString& buffer)>& receive) {
    auto config = config_of(1, 2);
    config.checkpoint_every = 4;
    Bench receiver(config);
    receiver.join();
    std::vector<ByteString> buffers(broadcasts, ByteString(8));
    for (std::uint64_t id = 0; id < broadcasts; ++id) {
        cr_assert(receiver.broadcast(0, buffers[id]).ok());
        receive(receiver, receiver.fragment(0, id, 0, content(8)), buffers[id]);
    }
    std::vector<LossReport> reports;
    for (const Out& report : sent_of(receiver.drain(), Kind::watermark_up))
        reports.push_back(engine::unpack_losses(report.header.total, 2));
    cr_assert(!reports.empty());
    return reports;
}

Packet flagged(Packet packet, std::uint64_t flag) {
    packet.total |= flag;
    return packet;
}

}  // namespace

// A receiver counts a fragment as lost if only its copy arrived.
Test(redundancy, a_receiver_reports_losses_with_the_next_watermark) {
    for (const std::uint64_t flag : {std::uint64_t{0}, wire::kRepeatFlag}) {
        const auto reports =
            reports_after(8, [&](Bench& receiver, const Packet& fragment, const ByteString& got) {
                receiver.datagram(flagged(fragment, flag));
                cr_assert(got == content(8));
                receiver.datagram(fragment);  // the original, late; or a duplicate
            });
        cr_assert_eq(reports.back().worst, 0U, "what came late was not lost");
        cr_assert_eq(reports.back().missed, 0U);
    }
}

// A message was faster than the multicast, as when the root was not scheduled. No copy was lost.
Test(redundancy, what_comes_behind_a_message_was_not_missed) {
    for (const std::uint64_t flag : {std::uint64_t{0}, wire::kRepeatFlag}) {
        const auto reports =
            reports_after(8, [&](Bench& receiver, const Packet& fragment, const ByteString& got) {
                Packet data = fragment;
                data.kind = Kind::data;
                receiver.message(data);
                cr_assert(got == content(8));
                for (int i = 0; i < 2; ++i) receiver.datagram(flagged(fragment, flag));
            });
        cr_assert_eq(reports.back().missed, 0U);
        cr_assert((reports.back().worst > 0) == (flag != 0), "%u", reports.back().worst);
    }
}

Test(redundancy, what_only_a_copy_brought_was_lost) {
    const auto reports = reports_after(4, [](Bench& receiver, const Packet& fragment, const ByteString&) {
        receiver.datagram(flagged(fragment, wire::kRepeatFlag));
        receiver.datagram(flagged(fragment, wire::kRepeatFlag));  // a further copy is no late original
    });
    cr_assert_eq(reports.size(), 1U);
    cr_assert(reports[0].worst > 10'000 && reports[0].lacking == reports[0].worst && reports[0].missed == 0,
              "%u", reports[0].worst);
}

namespace {

// Returns parity row `row` of a whole message, which is one block.
Packet parity_of(std::uint32_t root, const ByteString& message, std::uint32_t row) {
    engine::ParityCode code(1424);
    const Bytes made = code.encode(message, row);
    return {.kind = Kind::parity,
            .sender = root,
            .operation = 0,
            .fragment = row,
            .total = message.size(),
            .payload = ByteString(made.begin(), made.end()),
            .key = {},
            .epoch = {}};
}

}  // namespace

Test(redundancy, a_root_sends_parity_behind_the_blocks_of_longer_messages) {
    Root root;
    root.send_report(kTenth);
    const std::uint64_t before = root.engine.counters().parity_sent;
    ByteString message = content(8 * 1424 - 9);
    cr_assert(root.broadcast(0, message).ok());
    const auto out = root.drain();
    const auto rows = sent_of(out, Kind::parity);
    cr_assert_eq(sent_of(out, Kind::fragment).size(), 8U);
    cr_assert_eq(rows.size(), 2U, "a quarter");
    cr_assert_eq(root.engine.counters().parity_sent - before, 2U);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
        cr_assert_eq(index_of(rows[row].header.fragment), row);
        cr_assert(rows[row].payload == parity_of(0, message, row).payload);
    }
    Root well, off(Redundancy::off);
    off.send_report(kTenth);
    for (Root* other : {&well, &off}) {
        ByteString buffer = message;
        cr_assert(other->broadcast(0, buffer).ok());
        cr_assert_eq(sent_of(other->drain(), Kind::parity).size(), 0U);
    }
}

Test(redundancy, parity_is_as_much_as_is_lost_and_at_most_a_share) {
    RedundancyPolicy policy = policy_of(Redundancy::automatic);
    cr_assert_eq(policy.parity(64), 0U);
    policy.adopt({.lacking = 15 * 1000, .worst = 1000});
    cr_assert_eq(policy.parity(64), 2U);
    policy.adopt(all_lose(1));
    cr_assert_eq(policy.parity(64), 5U);
    cr_assert_eq(policy.parity(46), 4U);
    cr_assert_eq(policy.parity(2), 1U, "the end of a message");
    policy.adopt(all_lose(20));
    cr_assert_eq(policy.parity(64), 8U);
    cr_assert_eq(policy.parity(46), 5U);
    cr_assert_eq(policy.parity(16), 4U);
    cr_assert_eq(policy.window(256), 224U);
    policy.adopt({});
    cr_assert_eq(policy.parity(64), 0U);
    cr_assert_eq(policy.window(256), 256U);
}

// A receiver restores lost fragments without a NAK: posted or not, short or long, parity rows first or last.
Test(redundancy, a_receiver_restores_what_it_lost) {
    for (const std::uint32_t fragments : {8U, 40U})
        for (const bool posted : {false, true})
            for (const bool rows_first : {false, true}) {
                auto config = config_of(1, 3);
                config.retransmit_bytes = 16 * 1024;
                Bench receiver(config);
                receiver.join();
                const ByteString sent = content(fragments * 1424 - 5);
                ByteString buffer(sent.size());
                if (posted) cr_assert(receiver.broadcast(0, buffer).ok());
                const auto rows = [&] {
                    for (const std::uint32_t row : {3U, 0U}) receiver.datagram(parity_of(0, sent, row));
                };
                if (rows_first) rows();
                for (std::uint32_t i = 0; i + 1 < fragments; ++i)
                    if (i != 2) receiver.datagram(receiver.fragment(0, 0, i, sent));
                if (!rows_first) rows();
                if (!posted) cr_assert(receiver.broadcast(0, buffer).ok());
                cr_assert_eq(sent_of(receiver.drain(), Kind::nak).size(), 0U);
                cr_assert(buffer == sent, "%u fragments, posted %d, rows first %d", fragments, posted,
                          rows_first);
                cr_assert_eq(receiver.engine.counters().fragments_restored, 2U);
            }
}

Test(redundancy, fragments_beyond_parity_are_requested) {
    Bench receiver(config_of(1, 2));
    receiver.join();
    const ByteString sent = content(40 * 1424);
    ByteString buffer(sent.size());
    cr_assert(receiver.broadcast(0, buffer).ok());
    for (std::uint32_t i = 2; i < 40; ++i) receiver.datagram(receiver.fragment(0, 0, i, sent));
    receiver.datagram(parity_of(0, sent, 0));
    const auto naks = sent_of(receiver.pass(Nanoseconds::from_ms(2)), Kind::nak);
    cr_assert_eq(naks.size(), 1U);
    // Of two missing fragments, the first comes by message, and the stored row restores the second.
    receiver.message({.kind = Kind::data,
                      .sender = 0,
                      .operation = 0,
                      .fragment = 0,
                      .total = sent.size(),
                      .payload = ByteString(sent.begin(), sent.begin() + 1424),
                      .key = {},
                      .epoch = {}});
    receiver.drain();
    cr_assert(buffer == sent);
}

// The receiver requests one fragment to test whether the multicast continues, and parity restores this
// fragment. The receiver must still request the fragments lost after it.
Test(redundancy, a_tested_and_restored_fragment_is_followed_by_another_nak) {
    constexpr std::uint32_t kAll = 114, kReceived = 112;
    auto config = config_of(1, 2);
    config.window = 256;
    Bench receiver(config);
    receiver.join();
    const ByteString sent = content(kAll * 1424);
    const ByteString block(sent.begin(), sent.begin() + engine::kBlockFragments * 1424);
    std::array<ByteString, 2> buffers{ByteString(sent.size()), ByteString(sent.size())};
    for (std::uint64_t id = 0; id < buffers.size(); ++id) cr_assert(receiver.broadcast(0, buffers[id]).ok());
    // An earlier broadcast of the same root uses a share of its window.
    for (std::uint32_t i = 0; i < kAll; ++i) receiver.datagram(receiver.fragment(0, 0, i, sent));
    Packet row = parity_of(0, block, 0);
    row.operation = 1;
    row.total = sent.size();
    for (std::uint32_t i = 0; i < kReceived; ++i) {
        if (i != 1 && i != 5) receiver.datagram(receiver.fragment(0, 1, i, sent));
        if (i + 1 == engine::kBlockFragments) receiver.datagram(row);
    }
    cr_assert_eq(sent_of(receiver.pass(Nanoseconds::from_ms(2)), Kind::nak).size(), 1U, "for 1 and 5");
    cr_assert_eq(sent_of(receiver.pass(Nanoseconds::from_ms(200)), Kind::nak).size(), 0U, "1 is requested");
    for (const std::uint32_t index : {5U, 1U}) {
        Packet data = receiver.fragment(0, 1, index, sent);
        data.kind = Kind::data;
        receiver.message(data);
    }
    cr_assert_eq(receiver.engine.arrived(operation_of(1)), kReceived * 1424U);
    const auto naks = sent_of(receiver.pass(Nanoseconds::from_ms(200)), Kind::nak);
    cr_assert_eq(naks.size(), 1U);
    cr_assert_eq(index_of(naks[0].header.fragment), kReceived);
}

// Only rows of this message from its root are accepted.
Test(redundancy, parity_of_liars_is_dropped) {
    Bench receiver(config_of(1, 3));
    receiver.join();
    const ByteString sent = content(40 * 1424), other = content(40 * 1424 + 1);
    ByteString buffer(sent.size());
    cr_assert(receiver.broadcast(0, buffer).ok());
    for (std::uint32_t i = 1; i < 40; ++i) receiver.datagram(receiver.fragment(0, 0, i, sent));
    const auto refused = [&](Packet packet, const char* why) {
        const std::uint64_t before = receiver.engine.counters().bad_fragment;
        receiver.datagram(packet);
        cr_assert_eq(receiver.engine.counters().bad_fragment, before + 1, "%s", why);
    };
    Packet packet = parity_of(2, sent, 0);
    refused(packet, "not the root");
    packet = parity_of(0, sent, 0);
    packet.fragment = engine::kMaxParity;
    refused(packet, "no row");
    packet.fragment = engine::kBlockFragments;
    refused(packet, "no block");
    packet.fragment = UINT32_MAX - engine::kBlockFragments + 1;
    refused(packet, "far beyond the end");
    refused(parity_of(0, other, 0), "of another length");
    packet = parity_of(0, sent, 0);
    packet.payload.pop_back();
    refused(packet, "too short");
    cr_assert_eq(receiver.engine.counters().fragments_restored, 0U);
    receiver.datagram(parity_of(0, sent, 0));
    receiver.drain();
    cr_assert(buffer == sent);
    // Data from a wrong root before the post are discarded, and so is everything derived from such data.
    Bench misdirected(config_of(1, 3));
    misdirected.join();
    for (std::uint32_t row = 0; row < 3; ++row) misdirected.datagram(parity_of(2, other, row));
    cr_assert(misdirected.broadcast(0, buffer).ok());
    std::fill(buffer.begin(), buffer.end(), std::byte{});
    for (std::uint32_t i = 2; i < 40; ++i) misdirected.datagram(misdirected.fragment(0, 0, i, sent));
    misdirected.drain();
    cr_assert_eq(misdirected.engine.counters().fragments_restored, 0U);
    for (std::uint32_t row = 0; row < 2; ++row) misdirected.datagram(parity_of(0, sent, row));
    misdirected.drain();
    cr_assert(buffer == sent);
}

}  // namespace mcastcoll::bench::redundancy
