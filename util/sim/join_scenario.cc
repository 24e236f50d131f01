// Joins that a seed draws, and what must hold whatever happens in them.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "group/places.h"
#include "joins.h"

namespace mcastcoll::sim {
namespace {

constexpr Nanoseconds kTimeout = Nanoseconds::from_ms(10'000);

enum class Trouble : std::uint8_t {
    none,
    never_calls,    // somebody does not come
    dies,           // somebody, at a moment
    started_again,  // the same, and comes back; it counts its joins anew
    gives_up,       // rank 0, at a moment
};

struct JoinScenario {
    std::size_t members = 1;
    JoinNetwork network;
    std::size_t networks = 1;
    Nanoseconds apart;    // of networks from the first, one more for each
    bool silent = false;  // somebody does not take part in surveys
    Nanoseconds calls_within;
    Trouble trouble = Trouble::none;
    std::uint32_t whom = 0;
    Nanoseconds when;
    std::uint32_t sequence = 0;  // that those have counted to who were not started again
};

template <std::size_t N>
double pick(Random& random, const double (&choices)[N]) {
    return choices[random.below(N)];
}

Nanoseconds pick_us(Random& random, std::initializer_list<std::int64_t> choices) {
    return Nanoseconds::from_us(choices.begin()[random.below(choices.size())]);
}

JoinScenario draw(std::uint64_t seed) {
    Random random(seed ^ 0x6a6f696e);
    JoinScenario scenario;
    const std::uint64_t sort = random.below(10);
    scenario.members = sort < 6   ? random.between(1, 8)
                       : sort < 9 ? random.between(9, 40)
                                  : random.between(41, 130);
    JoinNetwork& network = scenario.network;
    network.seed = random.next();
    network.loss = pick(random, {0, 0, 0.05, 0.2, 0.5});
    network.doubled = pick(random, {0, 0.1, 0.5});
    network.words_doubled = pick(random, {0, 0, 0.2});
    network.jitter = pick_us(random, {20, 1'000, 30'000});
    network.words_at_once = random.between(1, 32);
    scenario.networks = random.between(1, 4);
    scenario.apart = pick_us(random, {50, 500, 5'000, 40'000});
    scenario.silent = random.chance(0.1);
    scenario.calls_within = pick_us(random, {1, 1'000, 100'000, 3'000'000});
    scenario.trouble = random.chance(0.5) ? Trouble::none : static_cast<Trouble>(random.between(1, 4));
    scenario.whom = static_cast<std::uint32_t>(random.below(scenario.members));
    scenario.when = random.up_to(random.chance(0.5) ? Nanoseconds::from_ms(5) : Nanoseconds::from_ms(4'000));
    scenario.sequence = static_cast<std::uint32_t>(random.below(3));
    return scenario;
}

// Networks one behind the other, members spread over them in blocks.
void spread(JoinWorld& world, const JoinScenario& scenario) {
    const auto network = [&scenario](std::size_t rank) {
        return rank * scenario.networks / scenario.members;
    };
    world.distance = [&scenario, network](Rank one, Rank other) {
        const auto far = static_cast<std::int64_t>(network(index_of(one))) -
                         static_cast<std::int64_t>(network(index_of(other)));
        return Nanoseconds{scenario.apart.value * (far < 0 ? -far : far)};
    };
    for (std::uint32_t rank = 0; rank < scenario.members; ++rank) {
        topology::Place place;
        const std::string name = fmt::format("net{}", network(rank));
        place.set_named(topology::Level::site, name);
        place.set_named(topology::Level::segment, name);
        place.set_named(topology::Level::host, fmt::format("host{}", rank));
        world.process(rank).hello.peer.place = group::encode_place(place);
    }
    world.process(scenario.whom).silent = scenario.silent;
}

void make_trouble(JoinWorld& world, const JoinScenario& scenario) {
    const std::uint32_t whom = scenario.whom;
    const Nanoseconds when = world.now() + scenario.when;
    switch (scenario.trouble) {
        case Trouble::none:
            return;
        case Trouble::never_calls:
            return world.kill(whom);
        case Trouble::dies:
            return world.at(when, [&world, whom] { world.kill(whom); });
        case Trouble::started_again:
            return world.at(when, [&world, whom] {
                const wire::ByteString place = world.process(whom).hello.peer.place;
                JoinProcess& again = world.start_again(whom, 0);
                again.hello.peer.place = place;
                again.call(world.now() + kTimeout);
            });
        case Trouble::gives_up:
            return world.at(when, [&world] {
                JoinProcess& leader = world.process(0);
                if (leader.join && leader.error == 0) leader.fail(EHOSTDOWN);
            });
    }
}

// Within which rank 0's word reaches whoever has greeted it: the longest delay, for as many rounds as it
// takes to tell everybody, and one more for what was under way.
Nanoseconds told_within(const JoinScenario& scenario) {
    const JoinNetwork& network = scenario.network;
    const auto rounds = static_cast<std::int64_t>(scenario.members / network.words_at_once + 2);
    return Nanoseconds{rounds * (network.delay + network.jitter).value};
}

// Who is in a group is in the same one, nobody waits beyond its deadline, and a rank 0 that has failed has
// told whoever it knew.
std::string judge(JoinWorld& world, const JoinScenario& scenario) {
    if (!world.wrong().empty()) return world.wrong();
    if (scenario.trouble == Trouble::none) return world.why_not_all_welcomed();
    std::optional<GroupKey> key;
    const JoinProcess* leader = world.exists(0) ? &world.process(0) : nullptr;
    for (std::uint32_t rank = 0; rank < scenario.members; ++rank) {
        if (!world.exists(rank) || !world.process(rank).join) continue;
        const JoinProcess& one = world.process(rank);
        // Whose rank 0 has died since finds that out when the levels form.
        const bool in_group =
            one.welcome && one.error == 0 && leader != nullptr &&
            one.welcome->peers.front().private_address == leader->hello.peer.private_address;
        if (in_group && key.value_or(one.welcome->key) != one.welcome->key)
            return fmt::format("rank {} is in another group", rank);
        if (in_group) key = one.welcome->key;
        if (one.waits()) return fmt::format("rank {} waits for ever", rank);
        if (one.first_over_at > one.deadline) return fmt::format("rank {} waits beyond its deadline", rank);
        if (leader == nullptr || !leader->join || leader->error == 0 || rank == 0) continue;
        const auto& guest = leader->join->guests()[rank];
        const bool known = guest && guest->peer.private_address == one.hello.peer.private_address;
        if (known && one.error == 0) return fmt::format("rank {} is not told that the join has failed", rank);
        if (known && one.over_at > leader->over_at + told_within(scenario))
            return fmt::format("rank {} hears late that the join has failed", rank);
    }
    return {};
}

}  // namespace

std::string run_join(std::uint64_t seed) {
    const JoinScenario scenario = draw(seed);
    JoinWorld world(scenario.members, scenario.network);
    for (std::uint32_t rank = 0; rank < scenario.members; ++rank) world.start_again(rank, scenario.sequence);
    spread(world, scenario);
    world.call_all(scenario.calls_within, kTimeout);
    make_trouble(world, scenario);
    world.run();
    return judge(world, scenario);
}

std::string summary_of_join(std::uint64_t seed) {
    static constexpr const char* kTroubles[] = {"", ", rank {} never calls", ", rank {} dies after {} us",
                                                ", rank {} is started again after {} us",
                                                ", rank 0 gives up after {1} us"};
    const JoinScenario scenario = draw(seed);
    const std::string trouble =
        fmt::format(fmt::runtime(kTroubles[static_cast<std::size_t>(scenario.trouble)]), scenario.whom,
                    scenario.when.value / 1000);
    return fmt::format(
        "join of {} on {} networks {} us apart, loss {}, doubled {}, jitter {} us, calls within {} us{}",
        scenario.members, scenario.networks, scenario.apart.value / 1000, scenario.network.loss,
        scenario.network.doubled, scenario.network.jitter.value / 1000, scenario.calls_within.value / 1000,
        trouble);
}

}  // namespace mcastcoll::sim
