// Joins: whatever the network does to hellos (the members' first messages to rank 0), every member joins the
// same group, or gets an error in bounded time.
#include <criterion/criterion.h>

#include <algorithm>
#include <cerrno>

#include "group/welcome.h"
#include "join_world.h"
#include "peers_fixture.h"
#include "topology_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;

namespace {

constexpr Nanoseconds ms(std::int64_t count) {
    return Nanoseconds::from_ms(count);
}

void expect_all_welcomed(JoinWorld& world, std::uint64_t seed = 0) {
    const std::string wrong = world.why_not_all_welcomed();
    cr_assert(wrong.empty(), "seed %llu: %s", static_cast<unsigned long long>(seed), wrong.c_str());
}

}  // namespace

Test(join, lost_doubled_and_reordered_hellos_make_one_group) {
    for (const std::size_t members : {1, 2, 3, 8, 33, 100})
        for (std::uint64_t seed = 1; seed <= (members > 8 ? 10 : 100); ++seed) {
            JoinNetwork network{.seed = seed};
            network.loss = static_cast<double>(seed % 4) * 0.2;
            network.doubled = static_cast<double>(seed % 3) * 0.4;
            network.jitter = seed % 2 == 0 ? ms(30) : Nanoseconds::from_us(20);
            network.messages_at_once = 1 + seed % 32;
            JoinWorld world(members, network);
            world.call_all(ms(static_cast<std::int64_t>(seed % 5) * 100));
            world.run();
            expect_all_welcomed(world, seed);
        }
}

Test(join, without_loss_a_join_takes_a_hello_and_a_message) {
    JoinWorld world(8);
    world.call_all(Nanoseconds{1});
    world.run();
    expect_all_welcomed(world);
    for (std::uint32_t rank = 1; rank < 8; ++rank) {
        cr_assert_leq(world.process(rank).hellos_sent, 1U);
        cr_assert_leq(world.process(rank).over_at.value, Nanoseconds::from_us(250).value);
    }
}

Test(join, a_member_that_never_calls_costs_the_others_the_time_of_rank_0) {
    JoinWorld world(5, {.seed = 3, .loss = 0.3});
    for (std::uint32_t rank = 0; rank < 4; ++rank)
        world.process(rank).call(world.now() + ms(rank == 0 ? 2'000 : 30'000));
    world.run();
    cr_assert_eq(world.process(0).error, ETIMEDOUT);
    for (std::uint32_t rank = 1; rank < 4; ++rank) {
        cr_assert_eq(world.process(rank).error, ETIMEDOUT, "rank 0 decides");
        cr_assert_leq(world.process(rank).over_at.value, ms(2'010).value);
        // Rank 0 has received the hello, so the member sends only two per second.
        cr_assert_leq(world.process(rank).hellos_sent, 20U);
    }
}

Test(join, without_rank_0_every_member_ends_at_its_own_deadline) {
    JoinWorld world(3, {.seed = 4});
    for (std::uint32_t rank = 1; rank < 3; ++rank) world.process(rank).call(world.now() + ms(1'000 * rank));
    world.run();
    for (std::uint32_t rank = 1; rank < 3; ++rank) {
        cr_assert_eq(world.process(rank).error, ETIMEDOUT);
        cr_assert_eq(world.process(rank).over_at.value, ms(1'000 * rank).value + 1);
        cr_assert_leq(world.process(rank).hellos_sent, 50U * rank + 6);
    }
}

Test(join, rank_0_that_calls_late_finds_the_hellos) {
    JoinWorld world(4, {.seed = 5, .loss = 0.5});
    for (std::uint32_t rank = 1; rank < 4; ++rank) world.process(rank).call(world.now() + ms(10'000));
    world.at(ms(1'500), [&] { world.process(0).call(world.now() + ms(10'000)); });
    world.run();
    expect_all_welcomed(world);
    cr_assert_leq(world.process(3).over_at.value, ms(2'500).value);
}

Test(join, a_process_that_was_started_again_counts_from_zero_and_is_adopted) {
    for (const std::uint32_t again : {0U, 2U})
        for (std::uint64_t seed = 1; seed <= 50; ++seed) {
            JoinWorld world(4, {.seed = seed, .loss = static_cast<double>(seed % 3) * 0.2});
            for (std::uint32_t rank = 0; rank < 4; ++rank) world.start_again(rank, rank == again ? 0 : 3);
            world.call_all(ms(20));
            world.run();
            expect_all_welcomed(world, seed);
            cr_assert_geq(world.process(0).over_at.value, ms(300).value, "it was believed at once");
            cr_assert_eq(world.process(0).sentences.size(), 1U);
        }
}

Test(join, hellos_for_another_join_of_some_are_no_restart) {
    JoinWorld world(3);
    world.start_again(2, 1);  // only this member has called the join before
    world.process(0).call(world.now() + ms(2'000));
    world.process(2).call(world.now() + ms(2'000));
    world.run(ms(1'000));
    cr_assert_not(world.process(0).over(), "rank 1 has sent no hello for any join");
    world.run();
    cr_assert_eq(world.process(0).error, ETIMEDOUT);
}

Test(join, a_hello_of_another_process_for_a_rank_is_recognised) {
    JoinWorld world(3);
    world.call_all(ms(1));
    world.run();
    expect_all_welcomed(world);
    const group::Join& leader = *world.process(0).join;
    const wire::Hello known = world.process(1).hello;
    wire::Hello other = known;
    other.peer.private_address[5] ^= std::byte{1};
    cr_assert_not(leader.hello_is_of_another(known));
    cr_assert(leader.hello_is_of_another(other));
    other.rank = rank_of(3);
    cr_assert_not(leader.hello_is_of_another(other), "there is no such rank");
    cr_assert_not(world.process(2).join->hello_is_of_another(known), "rank 0 knows");
}

Test(join, an_invalid_hello_changes_nothing) {
    JoinWorld world(3);
    JoinProcess& leader = world.process(0);
    leader.call(world.now() + ms(1'000));
    wire::Hello wrong = world.process(1).hello;
    wrong.members = 4;
    leader.join->on_hello(wrong, world.now());
    wrong.members = 3;
    wrong.rank = rank_of(3);
    leader.join->on_hello(wrong, world.now());
    wire::Hello first = world.process(1).hello, second = world.process(2).hello;
    first.gathered = second.gathered = 1;
    leader.join->on_hello(second, world.now());
    leader.join->on_hello(second, world.now());
    leader.join->on_hello(world.process(1).hello, world.now());
    cr_assert_eq(leader.join->state(), group::Join::State::hello, "it has not gathered all of its own");
    leader.join->on_hello(first, world.now());
    cr_assert(leader.join->complete());
}

Test(join, a_welcome_is_accepted_once_and_by_waiting_members) {
    JoinWorld world(2);
    world.call_all(ms(1));
    world.run();
    expect_all_welcomed(world);
    const wire::Welcome good = *world.process(1).welcome;
    cr_assert_not(world.process(1).join->accept(good), "twice");
    cr_assert_not(world.process(0).join->accept(good), "rank 0 makes it");
}

Test(join, a_hello_that_failed_for_lack_of_memory_is_repeated) {
    JoinWorld world(2);
    world.process(1).failing_hellos = 5;
    world.call_all(ms(1));
    world.run();
    expect_all_welcomed(world);
    cr_assert_eq(world.process(1).failing_hellos, 0U);
}

// Rank 0 fails when its welcome has reached some members: these receive the abort after the welcome, the rest
// instead of it.
Test(join, an_abort_follows_the_welcome_or_takes_its_place) {
    for (const std::size_t at_once : {1, 5, 32, 40}) {
        JoinWorld world(40, {.seed = 9, .messages_at_once = at_once});
        world.call_all(ms(1));
        while (!world.process(0).over()) world.run(Nanoseconds::from_us(1));
        world.process(0).fail(EHOSTDOWN);
        world.run();
        std::size_t welcomed = 0;
        for (std::uint32_t rank = 1; rank < 40; ++rank) {
            cr_assert_eq(world.process(rank).error, EHOSTDOWN);
            welcomed += world.process(rank).welcome.has_value();
        }
        cr_assert_eq(welcomed, std::min<std::size_t>(at_once, 39));
    }
}

namespace {

// Spreads the members over three networks: a and b are 200 us apart, c is 20 ms from both.
void spread(JoinWorld& world) {
    const auto network = [&world](Rank rank) { return index_of(rank) * 3 / world.size(); };
    world.distance = [network](Rank one, Rank other) {
        const auto far = [](std::size_t which) { return which == 2; };
        if (network(one) == network(other)) return Nanoseconds{};
        return far(network(one)) != far(network(other)) ? ms(10) : Nanoseconds::from_us(50);
    };
    static constexpr const char* kNames[] = {"a", "b", "c"};
    for (std::uint32_t rank = 0; rank < world.size(); ++rank) {
        const std::string name = kNames[network(rank_of(rank))];
        world.process(rank).hello.peer.place = topology::encode(
            test::place(std::string("site=") + name + " segment=" + name + " host=h" + std::to_string(rank)));
    }
}

std::size_t sites_of(JoinWorld& world) {
    return group::make_map(*world.process(0).welcome).clusters(topology::Level::site);
}

}  // namespace

Test(join, networks_that_are_near_each_other_become_one_site) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        JoinWorld world(6, {.seed = seed, .loss = static_cast<double>(seed % 3) * 0.05});
        spread(world);
        world.call_all(ms(5));
        world.run();
        expect_all_welcomed(world);
        cr_assert_eq(sites_of(world), 2U, "seed %llu: %zu sites", static_cast<unsigned long long>(seed),
                     sites_of(world));
        cr_assert_leq(world.process(5).over_at.value, ms(3'000).value);
    }
}

Test(join, what_was_measured_once_is_not_measured_again) {
    JoinWorld first(6), second(6);
    spread(first);
    first.call_all(ms(1));
    first.run();
    spread(second);
    cr_assert_gt(first.process(0).echoes_sent, 0U);
    second.process(0).measured = first.process(0).measured;
    second.call_all(ms(1));
    second.run();
    expect_all_welcomed(second);
    cr_assert_eq(sites_of(second), 2U);
    for (std::uint32_t rank = 0; rank < 6; ++rank) cr_assert_eq(second.process(rank).echoes_sent, 0U);
}

Test(join, a_network_that_does_not_answer_is_a_site_of_its_own_after_two_seconds) {
    JoinWorld world(6);
    spread(world);
    world.process(2).silent = true;  // b's representative
    world.call_all(ms(1));
    world.run();
    expect_all_welcomed(world);
    cr_assert_eq(sites_of(world), 3U);
    cr_assert_leq(world.process(0).over_at.value, ms(2'100).value);
    cr_assert_geq(world.process(0).over_at.value, ms(1'400).value);
}

Test(join, a_survey_ends_before_the_join_has_to) {
    JoinWorld world(6);
    spread(world);
    world.process(2).silent = true;
    world.call_all(ms(1), ms(1'000));
    world.run();
    cr_assert(world.process(0).welcome.has_value());
    cr_assert_lt(world.process(0).over_at.value, ms(1'002).value);
}

Test(join, echoes_are_answered_up_to_a_bound) {
    JoinWorld world(2);
    JoinProcess& member = world.process(1);
    member.call(world.now() + ms(1'000));
    const wire::Echo echo{{member.hello.id, 0, rank_of(0)}, 1, false};
    for (std::size_t i = 0; i + 1 < group::SurveyRound::kMaxEchoes; ++i)
        member.join->on_echo(echo, world.now());
    cr_assert_eq(member.echoes_sent, group::SurveyRound::kMaxEchoes - 1);
    member.join->on_echo(echo, world.now());
    cr_assert_eq(member.echoes_sent, group::SurveyRound::kMaxEchoes);
    member.join->on_echo(echo, world.now());
    cr_assert_eq(member.echoes_sent, group::SurveyRound::kMaxEchoes);
}

Test(join, only_rank_0_requests_a_survey) {
    JoinWorld world(3);
    JoinProcess& member = world.process(1);
    member.call(world.now() + ms(1'000));
    const auto survey_by = [&](std::uint32_t rank, std::uint32_t target) {
        return wire::Survey{{member.hello.id, 0, rank_of(rank)}, {{rank_of(target), 0}}};
    };
    member.join->on_survey(survey_by(2, 0), world.now());
    member.join->on_survey(survey_by(0, 1), world.now());  // the target is the member itself
    member.join->on_survey(survey_by(0, 3), world.now());  // the target does not exist
    cr_assert_eq(member.echoes_sent, 0U);
    member.join->on_survey(survey_by(0, 2), world.now());
    cr_assert_eq(member.echoes_sent, 1U);
}

namespace {

void give_addresses(JoinWorld& world, const std::vector<wire::Peer>& peers) {
    for (std::uint32_t rank = 0; rank < world.size(); ++rank) {
        wire::Peer& peer = world.process(rank).hello.peer;
        const wire::ByteString known = peer.private_address;
        peer = peers[rank];
        peer.private_address = known;
    }
}

}  // namespace

// Each member receives from few others: of 1,060 members rank 0 receives from 31 of the first 32, from 31
// members with 32 gathered hellos each, and from a member with the remaining hellos.
Test(join, a_welcome_of_many_travels_in_parts) {
    constexpr std::uint32_t kMembers = 1060;
    JoinWorld world(kMembers);
    give_addresses(world, PeerMaker({kMembers, 1, Order::shuffled, true}).make());
    world.call_all(Nanoseconds{1});
    world.run();
    cr_assert(world.wrong().empty(), "%s", world.wrong().c_str());
    for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
        const JoinProcess& one = world.process(rank);
        cr_assert(one.error == 0 && one.welcome && one.welcome->key == world.process(0).welcome->key,
                  "rank %u", rank);
    }
    cr_assert(world.process(kMembers - 1).welcome->peers == world.process(0).welcome->peers);
    constexpr std::size_t kJoinMessages = 64;
    cr_assert_leq(world.process(0).received, 4 * 64 + kJoinMessages, "%zu", world.process(0).received);
}

Test(join, a_gathering_member_may_have_been_started_again) {
    for (const std::uint32_t again : {0U, 32U, 33U, 64U})
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            JoinWorld world(70, {.seed = seed, .loss = static_cast<double>(seed % 3) * 0.2});
            for (std::uint32_t rank = 0; rank < 70; ++rank) world.start_again(rank, rank == again ? 0 : 3);
            world.call_all(ms(20));
            world.run();
            expect_all_welcomed(world, seed);
        }
}

Test(join, a_member_that_gives_up_informs_the_senders_of_hellos) {
    JoinWorld world(40);
    for (std::uint32_t rank = 1; rank < 40; ++rank) world.process(rank).call(world.now() + ms(10'000));
    world.at(ms(100), [&] { world.process(32).fail(ECANCELED); });
    world.at(ms(200), [&] { world.process(0).call(world.now() + ms(1'000)); });
    world.run();
    for (std::uint32_t rank = 0; rank < 40; ++rank) {
        cr_assert_eq(world.process(rank).error, rank < 32 ? ETIMEDOUT : ECANCELED, "rank %u", rank);
        cr_assert_leq(world.process(rank).over_at.value, ms(rank < 32 ? 1'210 : 110).value);
    }
}
