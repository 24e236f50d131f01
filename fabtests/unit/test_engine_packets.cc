// Every packet that an engine does not expect: only counters may change.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

// A receiver (rank 1 of 4) that waits for operation 0, a broadcast of this length from rank 0.
struct ReceivingMember : Bench {
    explicit ReceivingMember(std::uint64_t bytes)
        : Bench(config_of(1, 4)), sent(content(bytes)), buffer(bytes) {
        join();
        cr_assert(broadcast(0, buffer).ok());
        drain();
    }
    bool finish_by_multicast() {
        for (std::uint32_t i = 0; i < engine.config().fragments(sent.size()); ++i)
            datagram(fragment(0, 0, i, sent));
        const auto out = drain();
        return count(out, Effect::Kind::complete) == 1 && out.front().status == 0 &&
               out.front().operation == 0 && buffer == sent;
    }
    ByteString sent, buffer;
};

struct Damage {
    const char* name;
    void (*packet)(Packet&);
    void (*bytes)(ByteString&);
    const char* counters;  // these counters change, and no others
};

const Damage kDatagrams[] = {
    {"cut short", nullptr, [](ByteString& b) { b.resize(30); }, "bad_packet"},
    {"cut by one", nullptr, [](ByteString& b) { b.pop_back(); }, "bad_packet"},
    {"empty", nullptr, [](ByteString& b) { b.clear(); }, "bad_packet"},
    {"of another protocol", nullptr, [](ByteString& b) { b[0] = std::byte{0}; }, "bad_packet"},
    {"of another version", nullptr, [](ByteString& b) { b[2] = std::byte{9}; }, "bad_packet"},
    {"a flipped bit", nullptr, [](ByteString& b) { b.back() ^= std::byte{4}; }, "bad_checksum"},
    {"of another group", [](Packet& p) { p.key = GroupKey{1}; }, nullptr, "foreign_group"},
    {"of an older epoch", [](Packet& p) { p.epoch = Epoch{2}; }, nullptr, "foreign_epoch"},
    {"of a newer epoch", [](Packet& p) { p.epoch = Epoch{4}; }, nullptr, "foreign_epoch"},
    {"from a rank that is none", [](Packet& p) { p.sender = 4; }, nullptr, "bad_sender"},
    {"from no rank", [](Packet& p) { p.sender = UINT32_MAX; }, nullptr, "bad_sender"},
    {"own copy", [](Packet& p) { p.sender = 1; }, nullptr, "own_copies"},
    {"from who is not the root", [](Packet& p) { p.sender = 2; }, nullptr, "datagrams_received bad_fragment"},
    {"far in the future", [](Packet& p) { p.operation = 64; }, nullptr,
     "datagrams_received future_operation"},
    {"very far in the future", [](Packet& p) { p.operation = UINT64_MAX; }, nullptr,
     "datagrams_received future_operation"},
    {"fragment beyond the end", [](Packet& p) { p.fragment = 4; }, nullptr,
     "datagrams_received bad_fragment"},
    {"fragment far beyond the end", [](Packet& p) { p.fragment = UINT32_MAX; }, nullptr,
     "datagrams_received bad_fragment"},
    {"too short a fragment", [](Packet& p) { p.payload.pop_back(); }, nullptr,
     "datagrams_received bad_fragment"},
    {"too long a fragment", [](Packet& p) { p.payload.push_back({}); }, nullptr,
     "datagrams_received bad_fragment"},
    {"empty fragment", [](Packet& p) { p.payload.clear(); }, nullptr, "datagrams_received bad_fragment"},
    {"another length of message", [](Packet& p) { p.total += 1; }, nullptr,
     "datagrams_received bad_fragment"},
    {"an absurd length of message", [](Packet& p) { p.total = UINT64_MAX; }, nullptr,
     "datagrams_received bad_fragment"},
    {"a release instead of a fragment", [](Packet& p) { p.kind = Kind::release; }, nullptr,
     "datagrams_received bad_fragment"},
    {"a late probe", [](Packet& p) { p.kind = Kind::probe; }, nullptr, "datagrams_received probes_received"},
    {"a message kind by multicast", [](Packet& p) { p.kind = Kind::data; }, nullptr,
     "datagrams_received unexpected_kind"},
    {"a failure by multicast", [](Packet& p) { p.kind = Kind::fail; }, nullptr,
     "datagrams_received unexpected_kind"},
};

const Damage kMessages[] = {
    {"cut short", nullptr, [](ByteString& b) { b.resize(30); }, "bad_packet"},
    {"a flipped bit", nullptr, [](ByteString& b) { b.back() ^= std::byte{4}; }, "bad_checksum"},
    {"of another group", [](Packet& p) { p.key = GroupKey{1}; }, nullptr, "foreign_group"},
    {"of another epoch", [](Packet& p) { p.epoch = Epoch{9}; }, nullptr, "foreign_epoch"},
    {"from a rank that is none", [](Packet& p) { p.sender = 99; }, nullptr, "bad_sender"},
    {"from itself", [](Packet& p) { p.sender = 1; }, nullptr, "own_copies"},
    {"far in the future", [](Packet& p) { p.operation = 64; }, nullptr, "messages_received future_operation"},
    {"fragments beyond the end", [](Packet& p) { p.fragment = 4; }, nullptr,
     "messages_received bad_fragment"},
    {"more than the message",
     [](Packet& p) {
         p.fragment = 1;
         p.payload.resize(5000);
     },
     nullptr, "messages_received bad_fragment"},
    {"too short", [](Packet& p) { p.payload.resize(1000); }, nullptr, "messages_received bad_fragment"},
    {"a fragment as a message", [](Packet& p) { p.kind = Kind::fragment; }, nullptr,
     "messages_received unexpected_kind"},
    {"a probe as a message", [](Packet& p) { p.kind = Kind::probe; }, nullptr,
     "messages_received unexpected_kind"},
    {"a vote from who is no child", [](Packet& p) { p.kind = Kind::vote; }, nullptr,
     "messages_received unexpected_kind"},
    {"a second map", [](Packet& p) { p.kind = Kind::reachability_map; }, nullptr,
     "messages_received unexpected_kind"},
    {"a watermark from who is not the parent",
     [](Packet& p) {
         p.kind = Kind::watermark_down;
         p.sender = 2;
         p.operation = 0;
     },
     nullptr, "messages_received unexpected_kind"},
    {"a watermark that no member can have reached",
     [](Packet& p) {
         p.kind = Kind::watermark_down;
         p.operation = 16;
     },
     nullptr, "messages_received unexpected_kind"},
    {"a NAK longer than a window",
     [](Packet& p) {
         p.kind = Kind::nak;
         p.sender = 2;
         p.payload.resize(9);
     },
     nullptr, "messages_received naks_received bad_sender"},
    {"go again", [](Packet& p) { p.kind = Kind::go; }, nullptr, "messages_received unexpected_kind"},
    {"ready from who is no child", [](Packet& p) { p.kind = Kind::ready; }, nullptr,
     "messages_received unexpected_kind"},
};

void check_damage(const Damage& damage, bool multicast) {
    ReceivingMember receiver(5000);
    Packet packet = receiver.fragment(0, 0, 1, receiver.sent);
    if (!multicast) packet.kind = Kind::data;
    if (damage.packet != nullptr) damage.packet(packet);
    ByteString bytes = receiver.bytes_of(packet);
    if (damage.bytes != nullptr) damage.bytes(bytes);
    const engine::Counters before = receiver.engine.counters();
    for (int i = 0; i < 3; ++i)
        multicast ? receiver.engine.on_packet(bytes, receiver.now)
                  : receiver.engine.on_message(bytes, receiver.now);
    const std::string names = changed(before, receiver.engine.counters());
    cr_assert(names == damage.counters, "%s: %s", damage.name, names.c_str());
    cr_assert(receiver.drain().empty(), "%s had an effect", damage.name);
    cr_assert(receiver.finish_by_multicast(), "%s did harm", damage.name);
}

}  // namespace

TestSuite(packets, .timeout = 300);

Test(packets, bad_datagrams_change_counters_only) {
    for (const Damage& damage : kDatagrams) check_damage(damage, true);
}

Test(packets, bad_messages_change_counters_only) {
    for (const Damage& damage : kMessages) check_damage(damage, false);
}

Test(packets, every_bit_and_every_length_is_checked) {
    ReceivingMember receiver(100);
    const ByteString good = receiver.bytes_of(receiver.fragment(0, 0, 0, receiver.sent));
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        ByteString flipped = good;
        flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        receiver.engine.on_packet(flipped, receiver.now);
    }
    for (std::size_t length = 0; length < good.size(); ++length)
        receiver.engine.on_packet(Bytes(good).first(length), receiver.now);
    cr_assert(receiver.drain().empty());
    cr_assert_eq(receiver.engine.counters().datagrams_received, 0U);
    cr_assert(receiver.finish_by_multicast());
}

Test(packets, duplicates_are_ignored_before_and_after_the_end) {
    ReceivingMember receiver(5000);
    const Packet first = receiver.fragment(0, 0, 0, receiver.sent);
    for (int i = 0; i < 5; ++i) receiver.datagram(first);
    cr_assert_eq(receiver.engine.counters().duplicates, 4U);
    cr_assert(receiver.finish_by_multicast());
    receiver.buffer.assign(5000, std::byte{0x55});  // the buffer belongs to the application again
    receiver.datagram(first);
    Packet repair = first;
    repair.kind = Kind::data;
    receiver.message(repair);
    cr_assert(receiver.buffer == ByteString(5000, std::byte{0x55}));
    cr_assert_eq(receiver.engine.counters().duplicates, 4U + 1 + 2);
    cr_assert(receiver.drain().empty());
}

Test(packets, what_is_below_the_watermark_is_stale) {
    Bench bench(config_of(1, 2));
    bench.join();
    for (std::uint64_t id = 0; id < 16; ++id) {
        ByteString buffer(10);
        cr_assert(bench.broadcast(0, buffer).ok());
        bench.datagram(bench.fragment(0, id, 0, content(10)));
        cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
    }
    bench.message({.kind = Kind::watermark_down, .operation = 16, .payload = {}, .key = {}, .epoch = {}});
    bench.drain();
    const engine::Counters before = bench.engine.counters();
    bench.datagram(bench.fragment(0, 3, 0, content(10)));
    bench.message(
        {.kind = Kind::nak, .operation = 15, .total = 10, .payload = {std::byte{1}}, .key = {}, .epoch = {}});
    cr_assert_eq(bench.engine.counters().stale_operation - before.stale_operation, 2U);
    cr_assert(bench.drain().empty());
}

Test(packets, small_broadcasts_may_come_before_they_are_posted) {
    Bench bench(config_of(1, 4));
    bench.join();
    const ByteString sent = content(5000);
    for (std::uint32_t i : {3U, 0U, 2U, 1U}) bench.datagram(bench.fragment(2, 0, i, sent));
    cr_assert(bench.drain().empty());
    ByteString buffer(5000);
    cr_assert(bench.broadcast(2, buffer).ok());
    const auto out = bench.drain();
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
    cr_assert_eq(out.front().operation, 0U);
    cr_assert(buffer == sent);
}

Test(packets, what_came_early_for_something_else_is_not_used) {
    for (std::uint32_t root : {0U, 2U})
        for (std::uint64_t bytes : {100U, 5000U}) {
            if (root == 2 && bytes == 5000) continue;  // these parameters agree with the early data
            Bench bench(config_of(1, 4));
            bench.join();
            ByteString wrong(5000, std::byte{0x77});
            for (std::uint32_t i = 0; i < 4; ++i) bench.datagram(bench.fragment(2, 0, i, wrong));
            ByteString buffer(bytes);
            const ByteString sent = content(bytes);
            cr_assert(bench.broadcast(root, buffer).ok());
            cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 0U);
            for (std::uint32_t i = 0; i < bench.engine.config().fragments(bytes); ++i)
                bench.datagram(bench.fragment(root, 0, i, sent));
            cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
            cr_assert(buffer == sent);
        }
}

Test(packets, the_first_fragments_of_a_large_broadcast_may_come_before_the_post) {
    Bench bench(config_of(1, 4));
    bench.join();
    const std::uint32_t kept = bench.engine.config().window, all = kept + 12;
    const ByteString sent = content(std::uint64_t{all} * 1424);
    for (std::uint32_t i = 0; i < all; ++i) bench.datagram(bench.fragment(0, 0, i, sent));
    cr_assert_eq(bench.engine.counters().unposted_dropped, 12U);
    ByteString buffer(sent.size());
    cr_assert(bench.broadcast(0, buffer).ok());
    cr_assert(std::equal(buffer.begin(), buffer.begin() + kept * 1424, sent.begin()));
    const auto out = bench.pass(Nanoseconds::from_ms(1));
    cr_assert_eq(count(out, Kind::nak), 1U);
    for (const Out& o : out)
        if (o.kind == Effect::Kind::message && o.header.kind == Kind::nak) {
            cr_assert(o.to == rank_of(0), "the ring predecessor is the root");
            cr_assert_eq(index_of(o.header.fragment), kept);
            cr_assert(o.payload == ByteString({std::byte{0xff}, std::byte{0x0f}}));
        }
}

Test(packets, early_buffers_are_few_and_come_back) {
    Bench bench(config_of(1, 4));
    bench.join();
    const std::uint32_t buffers = bench.engine.config().early_buffers;
    const ByteString sent = content(20 * 1424);
    std::vector<ByteString> posted(48, ByteString(sent.size()));
    for (std::uint64_t round = 0; round < posted.size(); round += buffers + 1) {
        const std::uint64_t dropped = bench.engine.counters().unposted_dropped;
        const std::uint64_t end = std::min<std::uint64_t>(round + buffers + 1, posted.size());
        for (std::uint64_t id = round; id < end; ++id)
            for (std::uint32_t i = 0; i < 20; ++i) bench.datagram(bench.fragment(2, id, i, sent));
        cr_assert_eq(bench.engine.counters().unposted_dropped - dropped, (end - round > buffers ? 20U : 0U));
        for (std::uint64_t id = round; id < end; ++id) {
            // Every second posted operation differs from the early data: then none of the data may be used.
            const bool wrong_early_data = id % 2 == 1;
            cr_assert(bench.broadcast(wrong_early_data ? 0 : 2, posted[id]).ok());
            const ByteString expected =
                wrong_early_data || id == round + buffers ? ByteString(sent.size()) : sent;
            cr_assert(posted[id] == expected, "operation %lu", static_cast<unsigned long>(id));
        }
        bench.drain();
    }
}

Test(packets, members_that_disagree_about_the_length_end) {
    for (Kind kind : {Kind::nak, Kind::data}) {
        ReceivingMember receiver(5000);
        Packet packet = receiver.fragment(0, 0, 0, content(4000));
        packet.kind = kind;
        if (kind == Kind::nak) packet.payload = {std::byte{1}};
        receiver.message(packet);
        const auto out = receiver.drain();
        cr_assert_eq(count(out, Effect::Kind::failed), 1U);
        cr_assert_eq(count(out, Kind::fail), 3U, "all others are informed");
        cr_assert_eq(out.front().status, EMSGSIZE);
    }
}
// For each policy, with and without multicast: data of a different length arrives before the post. The member
// sends a NAK, so that its supplier (the member that answers its NAKs) can report the mismatch.
Test(packets, lengths_that_contradict_early_data) {
    for (auto repair : {engine::Repair::pull, engine::Repair::push})
        for (bool deaf : {false, true})
            for (std::size_t bytes : {50U, 150U, 20000U}) {
                auto config = config_of(2, 3);
                config.repair = repair;
                Bench bench(config);
                bench.join(deaf ? std::vector<std::uint32_t>{2} : std::vector<std::uint32_t>{});
                Packet early = bench.fragment(0, 0, 0, content(100));
                early.kind = Kind::data;
                bench.message(early);
                ByteString buffer(bytes);
                cr_assert(bench.broadcast(0, buffer).ok());
                const auto out = bench.pass(Nanoseconds::from_ms(90));
                cr_assert_eq(count(out, Kind::nak), 1U, "%zu bytes, deaf %d", bytes, deaf);
                cr_assert_eq(count(out, Effect::Kind::complete), 0U);
            }
}
