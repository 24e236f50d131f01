// Non-members in a group of reliable multicast messages: forged packets, replayed packets, senders that claim
// to join and never answer, and packets that fill memory.
#include "reliable/incoming.h"
#include "reliable/store.h"
#include "reliable_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::reliable;
using namespace mcastcoll::reliable_test;

namespace {

using Packet = std::vector<std::byte>;

constexpr wire::Key kKey{std::byte{1}}, kOther{std::byte{2}};

Packet make(const Header& header, std::size_t body) {
    const auto head = encode(header);
    Packet packet(head.begin(), head.end());
    packet.resize(kHeaderBytes + body, std::byte{0xff});
    return packet;
}

Packet join_of(MemberId from, std::uint8_t does) {
    return make({.kind = Kind::join, .flags = does, .size = 64, .group = 7, .from = from, .oldest = 1}, 0);
}

// Returns how many messages a sender delivers to a receiver in a second; `disturb` is called in each step.
template <typename Disturb>
std::uint64_t messages_in_a_second(Network& network, Node& sender, Disturb disturb) {
    const std::uint64_t before = sender.sent;
    const Nanoseconds end = network.now() + ms(1000);
    while (network.now() < end) {
        disturb();
        for (int i = 0; i < 8 && sender.protocol().can_send(100); ++i) sender.publish(network.now());
        network.step();
    }
    return sender.sent - before;
}

}  // namespace

TestSuite(reliable_foreign, .timeout = 120);

Test(reliable_foreign, packets_without_a_valid_tag_are_dropped) {
    Network network(11, 0);
    network.key = kKey;
    Node& sender = network.add(true, true);
    Node& node = network.add(true, true);
    network.run_ms(100);
    sender.publish(network.now());
    network.run_ms(100);
    std::uint64_t forged = 0;
    for (unsigned kind = 1; kind <= 7; ++kind) {
        Header header{
            .kind = static_cast<Kind>(kind), .flags = 3, .size = 64, .group = 7, .from = sender.id()};
        header.to = kind < 3 ? kAllMembers : node.id();
        header.number = header.oldest = 1;
        header.serial = 1000 + kind;
        node.receive(make(header, 30), place(sender.id()), network.now());
        header.from = MemberId{5};
        node.receive(make(header, 30), place(MemberId{5}), network.now());
        cr_assert_eq(node.protocol().counters().invalid_tag, forged += 2, "kind %u", kind);
    }
    cr_assert_eq(node.protocol().receivers(), 1);
    for (int i = 0; i < 50; ++i) sender.publish(network.now());
    network.run_ms(200);
    cr_assert_eq(node.next.at(sender.id()), 51);
    cr_assert(node.losses.empty() && sender.protocol().settled());
}

// Without a key any host can request repairs, again and again: the number of retransmissions is limited.
Test(reliable_foreign, repeated_reports_are_answered_within_a_budget) {
    Network network(14, 0);
    Node& sender = network.add(true, false);
    Node& node = network.add(false, true);
    network.run_ms(100);
    constexpr std::uint64_t kMs = 1000, kAtOnce = 2048, kEachMs = 20;
    std::uint64_t packets = 0;
    for (; packets < 400 && sender.protocol().can_send(100); ++packets) {
        sender.publish(network.now());
        sender.protocol().flush(network.now());
    }
    for (std::uint64_t ms = 2; ms <= kMs; ms += 2) {
        Header header{.kind = Kind::report, .flags = 0, .size = 64, .group = 7, .from = node.id()};
        header.to = sender.id();
        header.number = header.oldest = 1;
        sender.receive(make(header, kBitmapBytes), place(node.id()),
                       network.now() + Nanoseconds::from_ms(static_cast<std::int64_t>(ms)));
    }
    const std::uint64_t repaired = sender.protocol().counters().repaired;
    cr_assert_gt(repaired, kAtOnce, "%zu", static_cast<std::size_t>(repaired));
    cr_assert_leq(repaired, kAtOnce + kEachMs * kMs + packets);
}

Test(reliable_foreign, no_byte_of_a_packet_can_be_changed) {
    Network network(12, 0);
    network.key = kKey;
    Node& sender = network.add(true, false);
    Node& node = network.add(false, true);
    network.run_ms(100);
    network.recording = true;
    sender.publish(network.now());
    network.run_ms(20);
    cr_assert(network.recorded.size() >= 2);
    std::uint64_t changed = 0;
    for (const Packet& packet : network.recorded)
        for (std::size_t at = 0; at < packet.size(); ++at) {
            Packet other = packet;
            other[at] ^= std::byte{1};
            const auto header = decode(other);
            const bool meant = header.ok() && header.value().group == 7 && header.value().from != node.id() &&
                               (header.value().to == kAllMembers || header.value().to == node.id());
            if (!meant) continue;
            node.receive(other, place(header.value().from), network.now());
            cr_assert_eq(node.protocol().counters().invalid_tag, ++changed, "byte %zu", at);
        }
    cr_assert(changed > 50);
}

Test(reliable_foreign, no_two_packets_have_the_same_sender_and_serial) {
    Network network(13, 20);
    network.key = kKey;
    network.recording = true;
    std::vector<Node*> nodes;
    for (int i = 0; i < 3; ++i) nodes.push_back(&network.add(true, true));
    network.run_ms(300);
    for (int turn = 0; turn < 3000; ++turn) {
        for (Node* node : nodes)
            if (node->protocol().can_send(100)) node->publish(network.now());
        network.step();
    }
    std::map<std::pair<MemberId, std::uint64_t>, const Packet*> seen;
    std::uint64_t again = 0;
    for (const Packet& packet : network.recorded) {
        const Header header = decode(packet).value();
        const auto [known, fresh] = seen.try_emplace({header.from, header.serial}, &packet);
        if (fresh) continue;
        cr_assert(*known->second == packet);
        ++again;
    }
    cr_assert(again > 100, "packets were repaired");
}

Test(reliable_foreign, members_with_different_keys_do_not_receive_each_other) {
    Network network(14, 0);
    std::vector<Node*> nodes;
    for (const auto& key : {std::optional(kKey), std::optional(kOther), std::optional<wire::Key>()}) {
        network.key = key;
        nodes.push_back(&network.add(true, true));
    }
    network.run_ms(100);
    for (Node* node : nodes) node->publish(network.now());
    network.run_ms(500);
    for (Node* node : nodes) {
        cr_assert(node->next.empty() && node->losses.empty());
        cr_assert_eq(node->protocol().receivers(), 0);
        cr_assert(node->protocol().counters().invalid_tag > 0);
    }
}

// Replays every recorded packet to every member, with the original source.
Test(reliable_foreign, replayed_packets_are_dropped) {
    Network network(15, 5);
    network.key = kKey;
    network.recording = true;
    Node& sender = network.add(true, true);
    Node& node = network.add(true, true);
    network.run_ms(200);
    std::size_t repeated = 0;
    for (int turn = 0; turn < 4000; ++turn) {
        if (sender.protocol().can_send(100)) sender.publish(network.now());
        for (int i = 0; i < 5 && repeated < network.recorded.size(); ++i) {
            const Packet packet = network.recorded[repeated++];
            for (Node* one : {&sender, &node})
                one->receive(packet, place(decode(packet).value().from), network.now());
        }
        network.step();
    }
    network.run_ms(500);
    cr_assert(node.protocol().counters().replayed >= 5, "%lu", node.protocol().counters().replayed);
    cr_assert_eq(node.next.at(sender.id()), sender.sent);
    cr_assert(sender.protocol().settled() && node.losses.empty() && sender.losses.empty());
}

// A sender has left; its recorded packets are replayed to a later receiver.
Test(reliable_foreign, messages_of_former_members_are_not_delivered_again) {
    Network network(16, 0);
    network.key = kKey;
    network.recording = true;
    Node& left = network.add(true, true);
    Node& stays = network.add(true, true);
    network.run_ms(100);
    for (int i = 0; i < 20; ++i) left.publish(network.now());
    network.run_ms(100);
    left.protocol().leave(network.now());
    left.alive = false;
    network.run_ms(100);
    const auto recorded = network.recorded;
    Node& comes = network.add(false, true);
    for (int round = 0; round < 3; ++round)
        for (const Packet& packet : recorded) {
            const Header header = decode(packet).value();
            if (header.from != left.id()) continue;
            comes.receive(packet, place(left.id()), network.now());
            stays.receive(packet, place(left.id()), network.now());
            network.step();
        }
    network.run_ms(500);
    cr_assert_eq(comes.next.count(left.id()), 0);
    cr_assert_eq(stays.next.at(left.id()), 20);
    cr_assert(comes.losses.empty() && stays.losses.empty());
}

// Joins of unknown senders, once and a thousand times per second; without a key, so that only the missing
// answer distinguishes them from members.
Test(reliable_foreign, a_member_without_an_answer_slows_a_sender_by_less_than_half) {
    for (const int every : {10'000, 10}) {  // steps
        Network network(17, 0);
        Node& sender = network.add(true, false);
        Node& node = network.add(false, true);
        network.run_ms(100);
        const std::uint64_t alone = messages_in_a_second(network, sender, [] {});
        int step = 0;
        std::uint64_t joins = 0;
        std::uint64_t disturbed = 0;
        for (int second = 0; second < 3; ++second)
            disturbed += messages_in_a_second(network, sender, [&] {
                if (step++ % every != 0) return;
                const MemberId unknown{1000 + 2 * joins++};
                sender.receive(join_of(unknown, kReceives), place(unknown), network.now());
            });
        cr_assert(joins >= (every == 10 ? 3000U : 3U));
        cr_assert(disturbed / 3 > alone / 2, "%lu instead of %lu", disturbed / 3, alone);
        cr_assert(sender.protocol().counters().unresponsive > 0);
        network.run_ms(1500);
        cr_assert_eq(node.next.at(sender.id()), sender.sent);
        cr_assert(node.losses.empty());
    }
}

// A member receives, but its messages are lost for a while. When they arrive again, the data kept for the
// member have expired, and the member is informed.
Test(reliable_foreign, a_late_answer_gets_expelled) {
    Network network(18, 0);
    Node& sender = network.add(true, false);
    Node& other = network.add(false, true);
    network.run_ms(100);
    Node& late = network.add(false, true);
    network.step();
    late.mute = true;
    messages_in_a_second(network, sender, [] {});
    cr_assert_eq(sender.protocol().counters().unresponsive, 1);
    late.mute = false;
    network.run_ms(500);
    cr_assert_eq(late.losses.size(), 1);
    cr_assert_eq(late.losses[0], Loss::expelled);
    cr_assert_eq(other.next.at(sender.id()), sender.sent);
    cr_assert(other.losses.empty());
}

Test(reliable_foreign, a_member_is_where_it_has_answered) {
    Network network(19, 0);
    Node& sender = network.add(true, true);
    Node& node = network.add(true, true);
    network.run_ms(100);
    const Place elsewhere = place(MemberId{99});
    for (const Kind kind : {Kind::leave, Kind::expelled, Kind::join, Kind::beat, Kind::report})
        node.receive(
            make({.kind = kind, .flags = 3, .size = 64, .group = 7, .from = sender.id(), .number = 5}, 0),
            elsewhere, network.now());
    cr_assert_eq(node.protocol().counters().other_source, 5);
    for (int i = 0; i < 10; ++i) sender.publish(network.now()), node.publish(network.now());
    network.run_ms(200);
    cr_assert_eq(node.next.at(sender.id()), 10);
    cr_assert_eq(sender.next.at(node.id()), 10);
    cr_assert(node.losses.empty() && node.protocol().settled() && sender.protocol().settled());
}

// A table full of senders that have never answered still has room for a member.
Test(reliable_foreign, a_member_without_an_answer_makes_room) {
    Network network(20, 0);
    Node& sender = network.add(true, false);
    network.run_ms(100);
    for (std::uint64_t i = 0; i < 2 * Members::kMaxMembers; ++i) {
        const MemberId unknown{1000 + i};
        sender.receive(join_of(unknown, kReceives | kSends), place(unknown), network.now());
    }
    cr_assert_eq(sender.protocol().receivers(), Members::kMaxMembers);
    Node& node = network.add(false, true);
    network.run_ms(100);
    sender.publish(network.now());
    network.run_ms(100);
    cr_assert_eq(node.next.at(sender.id()), 1);
}

Test(reliable_store, there_is_a_share_for_each_and_no_more_than_the_bound) {
    // Two senders have a share of 10 each, and 20 belong to all.
    Store store(40, 2);
    cr_assert(store.take(0, 29));
    cr_assert_eq(store.left(), 1);
    cr_assert(!store.take(29, 2), "one more");
    cr_assert(store.take(29, 1), "exactly");
    cr_assert_eq(store.left(), 0);
    cr_assert(!store.take(0, 11));
    cr_assert(store.take(0, 10), "the other's share");
    cr_assert(!store.take(10, 1));
    store.give_back(30, 5);
    cr_assert_eq(store.left(), 5);
    cr_assert(store.take(10, 5));
    store.give_back(25, 25);
    store.give_back(15, 15);
    cr_assert_eq(store.left(), 20);
}

// 64 senders, each with packets ahead of its sequence.
Test(reliable_store, all_senders_together_have_a_bound) {
    constexpr std::size_t kMemory = 1 << 20, kBytes = 1000, kPackets = 200;
    Store store(kMemory, 64);
    std::vector<std::unique_ptr<Incoming>> senders;
    const Packet body(kBytes);
    std::size_t taken = 0, refused = 0;
    for (int i = 0; i < 64; ++i) {
        auto& one = *senders.emplace_back(std::make_unique<Incoming>(2048, kBytes, 0, store));
        std::size_t own = 0;
        for (std::uint64_t number = 1; number <= kPackets; ++number)
            ++(one.put(number, body) == Put::taken ? own : refused);
        cr_assert(own >= kMemory / 2 / 64 / (kBytes + 100), "the last one has its share, too");
        cr_assert(one.has_gap());
        taken += own;
    }
    cr_assert(refused > 0 && taken * kBytes <= kMemory);
    cr_assert(store.left() < kBytes + 100);
    senders.clear();
    cr_assert_eq(store.left(), kMemory / 2);
}

// A packet without room counts as missing, and is accepted when it is sent again.
Test(reliable_store, data_without_room_is_requested) {
    constexpr std::size_t kBytes = 100;
    Store store(600, 1);
    Incoming one(16, kBytes, 0, store);
    const Packet body(kBytes);
    for (std::uint64_t number = 1; number <= 4; ++number) cr_assert_eq(one.put(number, body), Put::taken);
    cr_assert_eq(one.put(5, body), Put::no_room);
    std::array<std::byte, 2> bitmap;
    cr_assert_eq(one.missing(bitmap), 1);
    cr_assert_eq(bitmap[0], std::byte{0b100001});
    for (int i = 0; i < 5; ++i) one.take();
    cr_assert_eq(store.left(), 300);
    cr_assert_eq(one.put(5, body), Put::taken);
    cr_assert(one.ready());
}
