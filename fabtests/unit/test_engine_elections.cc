// Elections after the join, message by message: requests, go, probes, votes, reachability maps, and the
// watermarks that wait for the maps.
#include <deque>

#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

engine::GroupConfig election_config(std::uint32_t self, std::uint32_t members) {
    auto config = config_of(self, members);
    config.probes = 2;
    return config;
}

// A member whose parent is rank 0 and which has no children: rank 1 of three.
struct Leaf : Bench {
    explicit Leaf(std::vector<std::uint32_t> deaf = {}, std::vector<std::uint32_t> mute = {})
        : Bench(election_config(1, 3)) {
        join(std::move(deaf), std::move(mute));
    }
    Packet of(Kind kind, std::uint64_t operation = 0, std::uint32_t sender = 0) const {
        return {
            .kind = kind, .sender = sender, .operation = operation, .payload = {}, .key = {}, .epoch = {}};
    }
    Packet later_map(std::uint32_t version, std::uint64_t from, const engine::ReachabilityMap& what) const {
        Packet packet = map_message(what);
        packet.operation = from;
        packet.total |= std::uint64_t{version} << 1;
        return packet;
    }
    // Runs a broadcast from rank 0 that arrives only by message.
    std::vector<Out> silent_broadcast() {
        buffers.emplace_back(8);
        cr_assert(broadcast(0, buffers.back()).ok());
        drain();
        Packet data = fragment(0, next++, 0, content(8));
        data.kind = Kind::data;
        message(data);
        return drain();
    }
    Packet watermark(std::uint64_t number, std::uint32_t version) const {
        Packet packet = of(Kind::watermark_down, number);
        packet.fragment = version;
        return packet;
    }
    std::deque<ByteString> buffers;
    std::uint64_t next = 0;
};

const engine::ReachabilityMap kNoMulticast{};
const engine::ReachabilityMap kMulticast{.works = true, .deaf = {}, .mute = {}};

}  // namespace

TestSuite(elections, .timeout = 300);

Test(elections, eight_silent_operations_cause_a_request) {
    Leaf leaf;
    for (std::uint32_t i = 1; i < engine::kSilentEnough; ++i)
        cr_assert_eq(count(leaf.silent_broadcast(), Kind::election_request), 0U, "operation %u", i);
    const auto out = leaf.silent_broadcast();
    cr_assert_eq(count(out, Kind::election_request), 1U);
    for (std::uint32_t i = 0; i < 20; ++i)
        cr_assert_eq(count(leaf.silent_broadcast(), Kind::election_request), 0U, "one for each election");
}

Test(elections, a_received_multicast_resets_the_count) {
    Leaf leaf;
    for (std::uint32_t i = 0; i < 30; ++i) {
        if (i % engine::kSilentEnough == 5) leaf.datagram(leaf.fragment(0, leaf.next, 0, content(8)));
        cr_assert_eq(count(leaf.silent_broadcast(), Kind::election_request), 0U);
    }
}

Test(elections, after_a_go_it_votes_for_the_received_members) {
    Leaf leaf;
    leaf.message(leaf.of(Kind::go, 1));
    Packet probe = leaf.of(Kind::probe, 1, 2);
    probe.fragment = 1;
    leaf.datagram(probe);
    const auto out = leaf.pass(Nanoseconds::from_ms(60));
    cr_assert_eq(count(out, Kind::probe), 2U);
    cr_assert_eq(count(out, Kind::vote), 1U);
    for (const Out& one : out) {
        if (one.header.kind != Kind::vote) continue;
        cr_assert_eq(number_of(one.header.operation), 1U);
        cr_assert_eq(one.payload.size(), 5U, "its rank and a bitmap: it did not receive rank 0");
        cr_assert_eq(std::to_integer<int>(one.payload[4]), 0b110, "itself and rank 2");
    }
}

// The first probe of an election may arrive before the go; probes of different elections do not count.
Test(elections, probes_count_for_their_own_election) {
    Leaf leaf;
    for (std::uint64_t number : {1, 0, 2})
        for (std::uint32_t sender : {0U, 2U}) {
            Packet probe = leaf.of(Kind::probe, number, sender);
            probe.fragment = 1;
            if (number != 1 || sender == 2) leaf.datagram(probe);
        }
    leaf.message(leaf.of(Kind::go, 1));
    const auto out = leaf.pass(Nanoseconds::from_ms(60));
    for (const Out& one : out)
        if (one.header.kind == Kind::vote) cr_assert_eq(std::to_integer<int>(one.payload.at(4)), 0b110);
    cr_assert_eq(count(out, Kind::vote), 1U);
}

Test(elections, what_is_out_of_order_or_from_the_wrong_member_is_refused) {
    Leaf leaf;
    const Packet refused[] = {
        leaf.of(Kind::go, 2),
        leaf.of(Kind::go, 0),
        leaf.of(Kind::go, 1, 2),
        leaf.of(Kind::vote, 0, 2),
        leaf.of(Kind::election_request, 0, 2),
        leaf.later_map(0, 64, kNoMulticast),
        leaf.later_map(2, 64, kNoMulticast),
        [&] {
            Packet packet = leaf.later_map(1, 64, kNoMulticast);
            packet.sender = 2;
            return packet;
        }(),
    };
    for (const Packet& packet : refused) {
        const engine::Counters before = leaf.engine.counters();
        leaf.message(packet);
        cr_assert(leaf.drain().empty());
        const std::string names = changed(before, leaf.engine.counters());
        cr_assert(names == "messages_received unexpected_kind", "%s", names.c_str());
        cr_assert_eq(leaf.engine.map_version(), 0U);
    }
}

Test(elections, a_reachability_map_is_for_operations_from_its_own_on) {
    Leaf leaf;
    leaf.message(leaf.later_map(1, 64, kNoMulticast));
    cr_assert_eq(leaf.engine.map_version(), 1U);
    cr_assert_eq(leaf.engine.counters().multicast_demotions, 1U);
    for (std::uint32_t i = 0; i < 64; ++i) {
        // The ring predecessor is rank 0 under both reachability maps; the client under the old map is rank
        // 2.
        leaf.buffers.emplace_back(8);
        cr_assert(leaf.broadcast(1, leaf.buffers.back()).ok());
        cr_assert_eq(count(leaf.drain(), Kind::fragment), 1U, "operation %u is multicast", i);
    }
    leaf.message(leaf.watermark(48, 1));
    leaf.buffers.emplace_back(8);
    cr_assert(leaf.broadcast(1, leaf.buffers.back()).ok());
    const auto out = leaf.drain();
    cr_assert_eq(count(out, Kind::fragment), 0U);
    cr_assert_eq(count(out, Kind::data), 2U, "the tree brings it to both");
    cr_assert_eq(count(out, Kind::probe), 0U, "a beacon would only bring up the map that it just had");
}

// No member begins an operation without the reachability map for it, however messages are reordered.
Test(elections, a_watermark_waits_for_its_reachability_map) {
    Leaf leaf;
    for (std::uint32_t i = 0; i < 65; ++i) {
        leaf.buffers.emplace_back(8);
        cr_assert(leaf.broadcast(1, leaf.buffers.back()).ok());
    }
    cr_assert_eq(count(leaf.drain(), Kind::fragment), 64U, "the last has no slot yet");
    leaf.message(leaf.watermark(16, 1));
    cr_assert_eq(count(leaf.drain(), Effect::Kind::complete), 0U);
    // A watermark learned from a member that has moved on has no effect either.
    leaf.datagram(leaf.fragment(0, 70, 0, content(8)));
    cr_assert_eq(count(leaf.drain(), Effect::Kind::complete), 0U);
    leaf.message(leaf.later_map(1, 64, kNoMulticast));
    const auto out = leaf.drain();
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
    cr_assert_eq(count(out, Kind::fragment), 0U);
}

Test(elections, deaf_members_request_an_election_when_they_receive) {
    Leaf leaf({1});
    leaf.datagram(leaf.fragment(0, 0, 0, content(8)));
    cr_assert_eq(count(leaf.drain(), Kind::election_request), 1U);
    leaf.datagram(leaf.fragment(0, 1, 0, content(8)));
    cr_assert_eq(count(leaf.drain(), Kind::election_request), 0U, "once");
}

Test(elections, a_beacon_of_a_mute_root_is_answered_by_a_request) {
    Leaf leaf({}, {2});
    leaf.datagram(leaf.of(Kind::probe, 0, 0));
    cr_assert_eq(count(leaf.drain(), Kind::election_request), 0U, "rank 0 may be received");
    leaf.datagram(leaf.of(Kind::probe, 0, 2));
    cr_assert_eq(count(leaf.drain(), Kind::election_request), 1U);
}

Test(elections, beacons_become_rare) {
    Leaf leaf({}, {1});
    std::size_t beacons = 0;
    ByteString buffer(8);
    for (std::uint32_t i = 0; i < 2000; ++i) {
        cr_assert(leaf.broadcast(1, buffer).ok());
        if (i % 16 == 15) leaf.message(leaf.watermark(i + 1, 0));
        beacons += count(leaf.pass(Nanoseconds::from_ms(1)), Kind::probe);
    }
    cr_assert(beacons >= 5 && beacons <= 12, "%zu in two seconds", beacons);
}

namespace {

// Rank 0 of three, with both other members as children.
struct Leader : Bench {
    Leader() : Bench(election_config(0, 3)) { join(); }
    void request(std::uint32_t sender, std::uint64_t election) {
        message({.kind = Kind::election_request,
                 .sender = sender,
                 .operation = election,
                 .payload = {},
                 .key = {},
                 .epoch = {}});
    }
    void receive_probe(std::uint64_t election, std::uint32_t sender) {
        datagram({.kind = Kind::probe,
                  .sender = sender,
                  .operation = election,
                  .fragment = 1,
                  .payload = {},
                  .key = {},
                  .epoch = {}});
    }
    // Delivers the vote of a member that received the probes of these speakers; without `received`, of every
    // speaker.
    void vote_for(std::uint64_t election, std::uint32_t voter, std::optional<unsigned> received) {
        Packet vote{.kind = Kind::vote,
                    .sender = voter,
                    .operation = election,
                    .payload = {},
                    .key = {},
                    .epoch = {}};
        if (received) {
            vote.payload.assign(5, std::byte{0});
            vote.payload[3] = static_cast<std::byte>(voter);
            vote.payload[4] = static_cast<std::byte>(*received);
        }
        message(vote);
    }
};

}  // namespace

Test(elections, the_leader_holds_an_election_on_request) {
    Leader leader;
    leader.request(2, 0);
    leader.request(1, 0);
    auto out = leader.pass(Nanoseconds{1});
    cr_assert_eq(count(out, Kind::go), 2U);
    leader.receive_probe(1, 1);
    leader.vote_for(1, 1, {});
    leader.vote_for(1, 1, {});  // the repeated vote counts once
    leader.vote_for(1, 2, 0b100U);
    out = leader.pass(Nanoseconds::from_ms(60));
    cr_assert_eq(count(out, Kind::reachability_map), 2U);
    for (const Out& one : out) {
        if (one.header.kind != Kind::reachability_map) continue;
        cr_assert_eq(number_of(one.header.operation), 64U);
        cr_assert_eq(one.header.total, 1U << 1 | 1U);
    }
    cr_assert(leader.engine.graph().deaf(rank_of(2)));
    cr_assert_eq(leader.engine.counters().elections, 1U);
    cr_assert_eq(leader.engine.counters().unexpected_kind, 1U);
}

Test(elections, an_election_that_finds_all_well_changes_nothing_and_the_next_waits) {
    Leader leader;
    for (std::uint64_t election = 1; election <= 3; ++election) {
        leader.request(1, election - 1);
        const Nanoseconds requested_at = leader.now;
        std::vector<Out> out;
        while (count(out = leader.pass(Nanoseconds::from_ms(1)), Kind::go) == 0)
            cr_assert_lt((leader.now - requested_at).value, Nanoseconds::from_ms(500).value);
        if (election > 1)
            cr_assert_gt((leader.now - requested_at).value, Nanoseconds::from_ms(25).value,
                         "too soon after the last");
        for (std::uint32_t r : {1U, 2U}) {
            leader.receive_probe(election, r);
            leader.vote_for(election, r, {});
        }
        cr_assert_eq(count(leader.pass(Nanoseconds::from_ms(5)), Kind::reachability_map), 0U);
    }
    cr_assert_eq(leader.engine.map_version(), 0U);
    cr_assert_eq(leader.engine.counters().elections, 3U);
}

// Requests that name an old election, or a reachability map that is about to be replaced.
Test(elections, late_requests_are_dropped) {
    Leader leader;
    leader.request(1, 0);
    leader.pass(Nanoseconds{1});
    leader.request(2, 0);
    for (std::uint32_t r : {1U, 2U}) leader.vote_for(1, r, 0U);
    leader.pass(Nanoseconds::from_ms(60));
    cr_assert_eq(leader.engine.map_version(), 1U);
    leader.request(2, 1);
    cr_assert_eq(count(leader.pass(Nanoseconds::from_ms(1000)), Kind::go), 0U);
}
