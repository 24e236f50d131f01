// Reliable multicast messages: groups of members on a simulated network, and the parts of a member by
// themselves.
#include "reliable_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::reliable;
using namespace mcastcoll::reliable_test;

TestSuite(reliable, .timeout = 120);

Test(reliable, every_member_receives_all_from_every_member) {
    for (const double loss : {0.0, 5.0, 20.0, 40.0}) {
        Network network(3, loss);
        std::vector<Node*> nodes;
        for (int i = 0; i < 4; ++i) nodes.push_back(&network.add(true, true));
        network.run_ms(200);
        constexpr std::uint64_t kCount = 600;
        const auto done = [&] {
            for (const Node* node : nodes) {
                if (node->sent < kCount || node->next.size() < 3) return false;
                for (const auto& [from, next] : node->next)
                    if (next < kCount) return false;
            }
            return true;
        };
        for (int turn = 0; turn < 400'000 && !done(); ++turn) {
            for (Node* node : nodes)
                if (node->sent < kCount && node->protocol().can_send(100)) node->publish(network.now());
            network.step();
        }
        cr_assert(done(), "with %.0f %% lost", loss);
        for (const Node* node : nodes) {
            cr_assert(node->losses.empty());
            for (const auto& [from, first] : node->first) cr_assert_eq(first, 0);
        }
        network.run_ms(1000);
        for (Node* node : nodes) cr_assert(node->protocol().settled());
    }
}

// A late member starts at its join; a member that dies or stalls delays the sender for the peer timeout and
// no longer, and is informed if possible.
Test(reliable, late_stalled_and_killed_members) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        Network network(seed, 5);
        Node& publisher = network.add(true, false);
        std::vector<Node*> living;
        for (int i = 0; i < 4; ++i) living.push_back(&network.add(false, true));
        Node& stalls = network.add(false, true);
        Node& dies = network.add(false, true);
        network.run_ms(200);
        cr_assert_eq(publisher.protocol().receivers(), 6);
        constexpr std::uint64_t kCount = 6000;
        std::uint64_t late_from = 0;
        for (int turn = 0; turn < 400'000 && publisher.sent < kCount; ++turn) {
            if (publisher.protocol().can_send(100)) publisher.publish(network.now());
            if (publisher.sent == 1000) stalls.reading = false;
            if (publisher.sent == 2000) dies.alive = false;
            if (publisher.sent == 3000 && late_from == 0) {
                living.push_back(&network.add(false, true));
                late_from = publisher.sent;
                network.run_ms(100);
            }
            network.step();
        }
        cr_assert_eq(publisher.sent, kCount, "the sender is stuck");
        network.run_ms(200);
        cr_assert(publisher.protocol().settled());
        cr_assert_eq(publisher.protocol().counters().expelled, 2);
        stalls.reading = true;
        network.run_ms(200);
        for (const Node* node : living) {
            const bool late = node == living.back();
            cr_assert_eq(node->first.at(publisher.id()), late ? late_from : 0);
            cr_assert_eq(node->next.at(publisher.id()), kCount);
            cr_assert(node->losses.empty());
        }
        cr_assert(stalls.next.at(publisher.id()) < kCount);
        cr_assert_eq(stalls.losses.size(), 1);
        cr_assert(stalls.losses[0] == Loss::expelled || stalls.losses[0] == Loss::gap);
    }
}

Test(reliable, senders_that_go_after_they_have_settled_are_no_loss) {
    Network network(5, 5);
    Node& dies = network.add(true, false);
    Node& leaves = network.add(true, false);
    Node& receiver = network.add(false, true);
    network.run_ms(200);
    for (int i = 0; i < 20; ++i) dies.publish(network.now()), leaves.publish(network.now());
    network.run_ms(500);
    cr_assert(leaves.protocol().settled() && dies.protocol().settled());
    leaves.protocol().leave(network.now());
    leaves.alive = dies.alive = false;
    network.run_ms(3000);
    cr_assert_eq(receiver.next.at(leaves.id()), 20);
    cr_assert_eq(receiver.next.at(dies.id()), 20);
    cr_assert(receiver.losses.empty());
}

Test(reliable, a_sender_that_dies_with_a_debt_is_reported) {
    for (const bool sleeps : {false, true}) {
        Network network(8, 50);
        Node& dies = network.add(true, false);
        Node& receiver = network.add(false, true);
        receiver.sleeps = sleeps;
        network.run_ms(500);
        for (int i = 0; i < 100; ++i) dies.publish(network.now());
        dies.alive = false;
        network.run_ms(3000);
        cr_assert(receiver.next.count(dies.id()) == 0 || receiver.next.at(dies.id()) < 100);
        cr_assert_eq(receiver.losses.size(), 1, "%zu losses, %lu received, %lu foreign",
                     receiver.losses.size(), receiver.protocol().counters().received,
                     receiver.protocol().counters().foreign);
        cr_assert_eq(receiver.losses[0], Loss::silent);
    }
}

// A sender dies within a message: the receiver has the beginning, and does not know of a missing packet.
Test(reliable, a_sleeping_receiver_detects_a_sender_that_dies_in_a_message) {
    Network network(9, 0);
    Node& dies = network.add(true, false);
    Node& receiver = network.add(false, true);
    receiver.sleeps = true;
    network.run_ms(500);
    dies.sent = 89;  // the longest message, of two packets
    network.lets_through = 1;
    dies.publish(network.now());
    dies.protocol().flush(network.now());
    network.run_ms(1);
    dies.alive = false;
    network.run_ms(3000);
    cr_assert_eq(receiver.losses.size(), 1);
    cr_assert_eq(receiver.losses[0], Loss::silent);
}

Test(reliable, a_sleeping_sender_expels_a_receiver_that_died) {
    Network network(10, 0);
    Node& publisher = network.add(true, false);
    Node& receiver = network.add(false, true);
    Node& dies = network.add(false, true);
    publisher.sleeps = receiver.sleeps = true;
    network.run_ms(500);
    dies.alive = false;
    publisher.publish(network.now());
    publisher.awake = true;
    network.run_ms(3000);
    cr_assert_eq(publisher.protocol().counters().expelled, 1);
    cr_assert(publisher.protocol().settled());
    cr_assert_eq(receiver.next.at(publisher.id()), 1);
}

Test(reliable, a_sender_that_pauses_expels_no_member_and_goes_on) {
    Network network(6, 0);
    Node& publisher = network.add(true, false);
    Node& receiver = network.add(false, true);
    network.run_ms(200);
    for (std::uint64_t round = 1; round <= 3; ++round) {
        publisher.publish(network.now());
        publisher.reading = false;
        network.run_ms(5000);
        publisher.reading = true;
        network.run_ms(200);
        cr_assert_eq(publisher.protocol().counters().expelled, 0);
        cr_assert(publisher.protocol().settled());
        cr_assert_eq(receiver.next.at(publisher.id()), round);
    }
    cr_assert(receiver.losses.empty());
}

Test(reliable, a_packet_has_these_bytes) {
    const std::optional<wire::Key> key(wire::Key{std::byte{1}, std::byte{2}});
    Proof proof(key);
    auto packet = encode({.kind = Kind::report,
                          .flags = 0x21,
                          .size = 0x0102,
                          .group = 0x1112131415161718,
                          .from = MemberId{0x2122232425262728},
                          .to = MemberId{0x3132333435363738},
                          .number = 0x4142434445464748,
                          .oldest = 0x5152535455565758,
                          .serial = 0x6162636465666768});
    proof.stamp(packet);
    const std::array<std::uint8_t, kHeaderBytes> expected = {
        'M',  'C',  'F',  '3',  0x04, 0x21, 0x01, 0x02,   // magic, kind, flags, size
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,   // group
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,   // from
        0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,   // to
        0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,   // number
        0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,   // oldest
        0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,   // serial
        0x37, 0x80, 0x1f, 0x90, 0x84, 0x0f, 0x1f, 0x2f};  // tag
    for (std::size_t i = 0; i < expected.size(); ++i)
        cr_expect_eq(std::to_integer<unsigned>(packet[i]), expected[i], "byte %zu is %02x", i,
                     std::to_integer<unsigned>(packet[i]));
    std::array<std::byte, kPieceHeader> piece;
    put_piece(piece.data(), kFirst | kLast, 0x0123);
    cr_assert_eq(std::to_integer<unsigned>(piece[0]), 0xc1U);
    cr_assert_eq(std::to_integer<unsigned>(piece[1]), 0x23U);
}

Test(reliable, garbage_is_refused) {
    std::mt19937_64 random(9);
    Network network(7, 0);
    Node& node = network.add(true, true);
    Node& peer = network.add(true, true);
    network.run_ms(200);
    std::vector<std::byte> bytes(200);
    for (int i = 0; i < 20'000; ++i) {
        Header header;
        header.kind = static_cast<Kind>(1 + random() % 7);
        header.flags = static_cast<std::uint8_t>(random());
        header.size = static_cast<std::uint16_t>(random());
        header.group = random() % 4 == 0 ? random() : 7;
        header.from = random() % 2 == 0 ? peer.id() : static_cast<MemberId>(random() % 300 + 1);
        header.number = random() % 2 == 0 ? random() : random() % 200;
        header.oldest = random() % 2 == 0 ? random() : random() % 200;
        const auto front = encode(header);
        cr_assert(decode(front).ok());
        std::copy(front.begin(), front.end(), bytes.begin());
        for (std::size_t at = kHeaderBytes; at < bytes.size(); ++at)
            bytes[at] = static_cast<std::byte>(random());
        const std::size_t body = random() % (bytes.size() - kHeaderBytes);
        if (header.kind == Kind::data) continue;  // without a key, forged data cannot be detected
        node.protocol().on_packet(header, Bytes(bytes).first(kHeaderBytes + body), place(header.from),
                                  network.now());
        if (i % 100 == 0) node.protocol().tick(network.now());
        bytes[random() % 8] ^= std::byte{0x5a};
        (void)decode(Bytes(bytes).first(random() % bytes.size()));
    }
    cr_assert(!decode({}).ok());
}

Test(reliable_gap_timer, a_hole_is_reported_again_less_and_less_often) {
    GapTimer gap;
    cr_assert(gap.deadline() == kNever);
    gap.watch(true, ms(10));
    const Nanoseconds first = gap.deadline();
    cr_assert(first > ms(10) && first < ms(11), "what was reordered has time to come");
    gap.watch(true, ms(10) + Nanoseconds::from_us(100));
    cr_assert(gap.deadline() == first, "more packets do not put it off");
    gap.reported(7, ms(11));
    cr_assert(gap.deadline() == ms(13));
    gap.reported(7, ms(13));
    cr_assert(gap.deadline() == ms(17));
    for (int i = 0; i < 10; ++i) gap.reported(7, ms(100));
    cr_assert(gap.deadline() == ms(164), "the longest pause");
    gap.reported(8, ms(200));
    cr_assert(gap.deadline() == ms(202), "what moves is reported soon");
    gap.watch(false, ms(201));
    cr_assert(gap.deadline() == kNever);
}

Test(reliable_members, a_member_that_left_is_not_found) {
    Members members;
    members.add(id(1), {}, ms(0));
    Member& second = members.add(id(2), {}, ms(0));
    cr_assert(members.find(id(2)) == &second);
    second.receives = second.gone = true;
    cr_assert_null(members.find(id(2)));
    cr_assert_eq(members.receivers(), 0);
    members.remove_gone();
    cr_assert_not_null(members.find(id(1)));
    cr_assert_eq(std::distance(members.begin(), members.end()), 1);
}

Test(reliable_members, the_slowest_receiver_is_waited_for) {
    Members members;
    cr_assert_eq(members.acked_by_all(9), 9);
    for (std::uint64_t i = 1; i <= 3; ++i) {
        Member& member = members.add(id(i), {}, ms(0));
        member.answered = true;
        member.receives = i != 1;
        member.acked = 2 * i;
        member.room = 100 * i;
    }
    cr_assert_eq(members.receivers(), 2);
    cr_assert_eq(members.acked_by_all(9), 4, "the first receives nothing");
    cr_assert_eq(members.min_room(512), 200);
    cr_assert_eq(members.min_room(50), 50);
}

Test(reliable_members, the_longest_silent_makes_room_unless_awaited) {
    Members members;
    for (std::uint64_t i = 1; i <= Members::kMaxMembers; ++i) {
        cr_assert(!members.full());
        members.add(id(i), {}, ms(static_cast<std::int64_t>(i))).answered = true;
    }
    cr_assert(members.full());
    cr_assert_null(members.evict(ms(1) + kPeerTimeout, kPeerTimeout), "no member was silent for long enough");
    const auto evicted = members.evict(ms(2) + kPeerTimeout, kPeerTimeout);
    cr_assert(evicted != nullptr && evicted->id == id(1));
    cr_assert(!members.full() && members.find(id(1)) == nullptr);
    members.find(id(2))->receives = true;
    const auto next = members.evict(ms(5000), kPeerTimeout);
    cr_assert(next != nullptr && next->id == id(3), "a receiver is expelled, never forgotten");
    for (const auto& member : members) member->receives = true;
    cr_assert_null(members.evict(ms(5000), kPeerTimeout));
}

Test(reliable_members, a_pause_counts_against_no_member) {
    Members members;
    Member& member = members.add(id(1), {}, ms(10));
    member.moved = ms(95);
    members.forgive(ms(80), ms(100));
    cr_assert(member.last_received == ms(90));
    cr_assert(member.moved == ms(100), "never later than now");
}
