// Elections: the speakers in groups of any size, ballots on their way up the tree, and malicious ballots.
#include <criterion/criterion.h>

#include <algorithm>
#include <vector>

#include "engine/ballots.h"
#include "engine/speakers.h"

using namespace mcastcoll;
using engine::Ballots;
using engine::ReachabilityMap;
using engine::Speakers;

namespace {

using ByteString = std::vector<std::byte>;

ByteString copy(const Ballots& ballots) {
    return {ballots.bytes().begin(), ballots.bytes().end()};
}

std::vector<bool> all_but(std::uint32_t members, std::vector<std::uint32_t> speakers) {
    std::vector<bool> received(Speakers::max(members), true);
    for (std::uint32_t speaker : speakers) received[speaker] = false;
    return received;
}

bool all(const std::vector<bool>& bits) {
    return std::find(bits.begin(), bits.end(), false) == bits.end();
}

constexpr std::size_t kMuch = 1 << 16;

}  // namespace

TestSuite(election, .timeout = 300);

Test(election, speakers_are_ranks_each_once_and_in_turn) {
    for (std::uint32_t n : {2U, 5U, 255U, 256U, 257U, 1000U, 1024U, 65536U}) {
        const std::uint32_t regular = n <= engine::kAllProbeUpTo ? n : engine::kSpeakersOfMany;
        const std::uint32_t round = (n + regular - 1) / regular;
        for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{n} * 7 - 3}) {
            std::vector<bool> spoke(n);
            for (std::uint64_t election = begin; election < begin + round; ++election) {
                const Speakers speakers(n, election);
                cr_assert_eq(speakers.count(), regular);
                std::uint32_t found = 0;
                for (std::uint32_t r = 0; r < n; ++r) {
                    const std::uint32_t place = speakers.place(rank_of(r));
                    if (place == engine::kNoSpeaker) continue;
                    cr_assert(place < regular && speakers.rank(place) == rank_of(r));
                    spoke[r] = true;
                    ++found;
                }
                cr_assert_eq(found, regular, "n=%u", n);
            }
            cr_assert(all(spoke), "n=%u", n);
        }
    }
}

Test(election, a_suspected_member_probes_once) {
    for (std::uint32_t n : {2U, 255U, 256U, 257U, 1024U})
        for (std::uint64_t election : {0U, 1U, 2000U})
            for (std::uint32_t suspected : {1U, n / 2, n - 1}) {
                const Speakers usual(n, election), speakers(n, election, rank_of(suspected));
                const bool extra = usual.place(rank_of(suspected)) == engine::kNoSpeaker;
                cr_assert(!extra || n > engine::kAllProbeUpTo);
                cr_assert_eq(speakers.count(), usual.count() + extra);
                cr_assert_leq(speakers.count(), Speakers::max(n));
                const std::uint32_t place = speakers.place(rank_of(suspected));
                cr_assert(place < speakers.count() && speakers.rank(place) == rank_of(suspected));
            }
    for (const Rank absent : {rank_of(1024), kNoRank}) cr_assert_eq(Speakers(1024, 1, absent).count(), 16U);
}

Test(election, a_member_that_received_all_casts_no_ballot) {
    Ballots ballots(1000, 1000, kMuch);
    for (std::uint32_t r = 0; r < 1000; ++r) ballots.cast(rank_of(r), all_but(1000, {}), true);
    cr_assert(ballots.bytes().empty());
    const ReachabilityMap map = ballots.judge({});
    cr_assert(map.works && map.deaf.empty() && map.mute.empty());
}

Test(election, large_groups_are_judged_by_their_speakers) {
    const std::uint32_t n = 1600;  // speakers are ranks 0, 100, 200 ...
    Ballots ballots(n, n, kMuch);
    for (std::uint32_t r = 0; r < n; ++r) {
        if (r == 7)
            ballots.cast(rank_of(r), std::vector<bool>(16), true);  // receives from no member
        else if (r == 8)
            ballots.cast(rank_of(r), std::vector<bool>(16), false);  // has no multicast at all
        else if (r % 3 != 0 && r != 300)
            ballots.cast(rank_of(r), all_but(n, {3}), true);  // a third of the members receive from rank 300
    }
    const ReachabilityMap map = ballots.judge({});
    cr_assert(map.works);
    cr_assert(map.deaf == (std::vector<Rank>{rank_of(7), rank_of(8)}));
    cr_assert(map.mute == (std::vector<Rank>{rank_of(8), rank_of(300)}));
}

// Rank 300 does not speak in election 1 unless it is suspected; rank 401 does.
Test(election, in_large_groups_the_mute_are_mute_until_they_are_received) {
    const std::uint32_t n = 1600, regular = engine::kSpeakersOfMany;
    const ReachabilityMap so_far{.works = true, .deaf = {}, .mute = {rank_of(300), rank_of(401)}};
    Ballots ballots(n, n, kMuch);
    ballots.begin(Speakers(n, 1));
    cr_assert(ballots.judge(so_far).mute == std::vector<Rank>{rank_of(300)}, "all received 401");
    ballots.begin(Speakers(n, 2, rank_of(300)));
    cr_assert(ballots.judge(so_far).mute == std::vector<Rank>{rank_of(401)}, "all received 300");
    for (std::uint32_t r = 0; r < n; ++r)
        if (r != 300) ballots.cast(rank_of(r), all_but(n, {regular}), true);
    cr_assert(ballots.judge({}).mute == std::vector<Rank>{rank_of(300)});
    cr_assert(ballots.judge(so_far).mute == so_far.mute);
    cr_assert(ballots.judge(so_far).deaf.empty());
}

Test(election, without_a_received_speaker_there_is_no_multicast) {
    const std::uint32_t n = 300;
    Ballots ballots(n, n, kMuch);
    for (std::uint32_t r = 0; r < n; ++r) ballots.cast(rank_of(r), std::vector<bool>(16), true);
    cr_assert(!ballots.judge({}).works);
}

Test(election, a_ballot_says_nothing_about_the_last_election) {
    Ballots ballots(5, 5, kMuch);
    for (std::uint32_t mute : {1U, 2U}) {
        ballots.begin(Speakers(5, mute));
        for (std::uint32_t r = 0; r < 5; ++r)
            if (r != mute) ballots.cast(rank_of(r), all_but(5, {mute}), true);
        cr_assert(ballots.judge({}).mute == std::vector<Rank>{rank_of(mute)});
    }
}

Test(election, more_ballots_than_fit_mean_no_multicast_and_are_reported_upwards) {
    Ballots child(300, 300, 60), parent(300, 300, kMuch);  // 60 bytes: eight ballots of seven
    for (std::uint32_t r = 0; r < 9; ++r) child.cast(rank_of(r), all_but(300, {1}), true);
    cr_assert(child.too_many());
    cr_assert_eq(child.bytes().size() % 7, 0U);
    cr_assert(parent.merge(copy(child), child.too_many()));
    cr_assert(parent.too_many());
    cr_assert(!parent.judge({}).works);
}

Test(election, merging_is_the_same_as_casting) {
    Ballots one(40, 40, kMuch), left(40, 40, kMuch), right(40, 40, kMuch), top(40, 40, kMuch);
    for (std::uint32_t r = 0; r < 40; ++r) {
        const auto received = r % 4 == 0 ? all_but(40, {r, 1, 2, 3})
                              : r == 39  ? std::vector<bool>(40)
                                         : all_but(40, {});
        one.cast(rank_of(r), received, true);
        (r % 2 == 0 ? left : right).cast(rank_of(r), received, true);
    }
    cr_assert(top.merge(copy(left), false) && top.merge(copy(right), false));
    const ReachabilityMap a = one.judge({}), b = top.judge({});
    cr_assert(a.works == b.works && a.deaf == b.deaf && a.mute == b.mute);
    cr_assert(a.deaf == std::vector<Rank>{rank_of(39)});
}

Test(election, ballots_that_make_no_sense_change_nothing) {
    Ballots ballots(5, 5, kMuch);
    cr_assert(!ballots.merge(ByteString(4), false), "half a ballot");
    ByteString no_member(5);
    no_member[3] = std::byte{5};
    cr_assert(!ballots.merge(no_member, false), "the ranks end at 4");
    cr_assert(ballots.bytes().empty() && !ballots.too_many());
    // Too many copies of one ballot are detected, and cause no crash.
    ByteString again(5);
    for (int i = 0; i < 6; ++i) cr_assert(ballots.merge(again, false));
    cr_assert(ballots.too_many());
}

Test(election, a_reachability_map_survives_its_message) {
    const ReachabilityMap map{.works = true, .deaf = {rank_of(3), rank_of(70000)}, .mute = {rank_of(0)}};
    ByteString bytes;
    engine::encode(map, bytes);
    cr_assert_eq(bytes.size(), 12U);
    ReachabilityMap back;
    cr_assert(engine::decode(bytes, 2, 70001, back));
    cr_assert(back.deaf == map.deaf && back.mute == map.mute);
    ReachabilityMap other;
    cr_assert(!engine::decode(bytes, 2, 70000, other));
    cr_assert(!engine::decode(bytes, 4, 70001, other));
}
