// Whole groups that a seed draws.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "group_world.h"

namespace mcastcoll::sim {
namespace {

using levels::Kind;

template <typename T>
const T& pick(Random& random, std::initializer_list<T> choices) {
    return choices.begin()[random.below(choices.size())];
}

Collective draw_collective(Random& random, std::uint32_t members) {
    Collective what;
    what.kind = static_cast<Kind>(random.below(levels::kKinds));
    what.root = rank_of(random.below(members));
    if (what.kind == Kind::barrier) return what;
    const bool blocks = moves_blocks(what.kind);
    what.bytes = blocks ? pick<std::size_t>(random, {1, 8, 100, 1'500, 6'000})
                        : pick<std::size_t>(random, {1, 8, 100, 1'500, 9'000, 40'000, 120'000});
    return what;
}

// An algorithm for a kind, whatever the sizes.
levels::Row draw_row(Random& random) {
    levels::Row row;
    do {
        row.kind = static_cast<Kind>(random.below(levels::kKinds));
        row.choice.algorithm = static_cast<levels::Algorithm>(random.below(levels::kAlgorithms));
    } while (!levels::allowed(row.kind, row.choice.algorithm));
    const bool chained =
        row.choice.algorithm == levels::Algorithm::chains || row.choice.algorithm == levels::Algorithm::split;
    if (chained) row.choice.chains = static_cast<std::uint16_t>(random.between(1, 4));
    return row;
}

GroupPlan draw_group(Random& random, std::uint32_t processes) {
    GroupPlan plan;
    plan.members.resize(processes);
    std::iota(plan.members.begin(), plan.members.end(), 0U);
    for (std::size_t i = processes - 1; i > 0; --i)
        std::swap(plan.members[i], plan.members[random.below(i + 1)]);
    if (random.chance(0.3)) plan.members.resize(random.between(1, processes));
    for (std::uint64_t i = random.below(8); i > 0; --i)
        plan.script.push_back(draw_collective(random, static_cast<std::uint32_t>(plan.members.size())));
    for (std::uint64_t i = random.below(4); i > 0; --i) plan.selection.push_back(draw_row(random));
    plan.in_flight = random.between(1, 4);
    plan.repair = static_cast<engine::Repair>(random.below(3));
    return plan;
}

GroupOptions::Event draw_event(Random& random, std::uint32_t processes, std::uint64_t operations) {
    GroupOptions::Event event;
    event.process = static_cast<std::uint32_t>(random.below(processes));
    if (random.chance(0.5))
        event.at = random.up_to(pick(random, {Nanoseconds::from_us(500), Nanoseconds::from_ms(20)}));
    else
        event.after = random.below(operations + 1);
    return event;
}

// Troubles of joins. A generator of their own leaves what a seed drew before there were any, which the seeds
// in fabtests/unit/test_groups.cc depend on; the constant gives the older ones of those no trouble here.
void draw_join_troubles(std::uint64_t seed, GroupOptions& options) {
    Random random(seed ^ 0x6a6f696e55);
    const auto processes = static_cast<std::uint32_t>(options.host_of.size());
    options.words_doubled = pick(random, {0.0, 0.0, 0.0, 0.2});
    options.counted = static_cast<std::uint32_t>(random.below(3));
    const auto somebody = [&] { return static_cast<std::uint32_t>(random.below(processes)); };
    if (random.chance(0.15)) options.restart = draw_event(random, processes, 20);
    if (random.chance(0.03)) options.never_calls = somebody();
    if (random.chance(0.05)) options.silent = somebody();
}

GroupOptions draw_groups(std::uint64_t seed) {
    Random random(seed ^ 0x67726f757073);
    GroupOptions options;
    const auto processes = static_cast<std::uint32_t>(random.between(1, random.chance(0.1) ? 24 : 9));
    const auto hosts = static_cast<std::uint32_t>(random.between(1, processes));
    const auto sites =
        random.chance(0.7) ? 1U : static_cast<std::uint32_t>(random.between(1, std::min(hosts, 3U)));
    for (std::uint32_t process = 0; process < processes; ++process)
        options.host_of.push_back(process < hosts ? process
                                                  : static_cast<std::uint32_t>(random.below(hosts)));
    for (std::uint32_t host = 0; host < hosts; ++host) options.site_of.push_back(host % sites);
    for (std::uint64_t i = random.between(1, 3); i > 0; --i)
        options.groups.push_back(draw_group(random, processes));
    options.seed = random.next();
    options.faults.loss = pick(random, {0.0, 0.0, 0.02, 0.2});
    options.faults.duplicate = pick(random, {0.0, 0.1});
    options.faults.jitter = Nanoseconds::from_us(pick<std::int64_t>(random, {5, 100, 3'000}));
    options.model.latency = Nanoseconds::from_us(20);
    options.model.wan.latency = Nanoseconds::from_us(pick<std::int64_t>(random, {200, 20'000}));
    options.messages_at_once = random.between(1, 32);
    options.tells_failed_sends = random.chance(0.5);
    options.watch_delay = Nanoseconds::from_ms(pick<std::int64_t>(random, {1, 100, 1'000}));
    if (random.chance(0.2)) options.no_multicast.insert(static_cast<std::uint32_t>(random.below(processes)));
    options.calls_within = Nanoseconds::from_us(pick<std::int64_t>(random, {1, 1'000, 1'000'000}));
    std::uint64_t operations = 0;
    for (const GroupPlan& plan : options.groups) operations += plan.script.size() * plan.members.size();
    if (random.chance(0.4)) options.death = draw_event(random, processes, operations);
    if (random.chance(0.3)) options.pause = draw_event(random, processes, operations);
    if (random.chance(0.05)) options.gives_up = draw_event(random, processes, 0);
    if (random.chance(0.2)) options.stall_timeout = Nanoseconds::from_ms(1'000);
    if (random.chance(0.05)) options.no_memory = static_cast<std::uint32_t>(random.below(processes));
    options.pause_length = Nanoseconds::from_ms(pick<std::int64_t>(random, {1, 50, 700, 3'000}));
    draw_join_troubles(seed, options);
    return options;
}

std::string describe(const char* what, const std::optional<GroupOptions::Event>& event) {
    if (!event) return {};
    return event->at != kNever
               ? fmt::format(", {} {} at {} us", event->process, what, event->at.value / 1000)
               : fmt::format(", {} {} after {} operations", event->process, what, event->after);
}

}  // namespace

std::string run_groups(std::uint64_t seed) {
    return GroupWorld(draw_groups(seed)).run();
}

std::string summary_of_groups(std::uint64_t seed) {
    const GroupOptions options = draw_groups(seed);
    std::string groups;
    for (const GroupPlan& plan : options.groups) {
        groups += fmt::format("{}{} members", groups.empty() ? "" : ", ", plan.members.size());
        for (const Collective& what : plan.script)
            groups += fmt::format(" {}:{}", levels::name_of(what.kind).data(), what.bytes);
    }
    const auto somebody = [](const std::optional<std::uint32_t>& who, const char* what) {
        return who ? fmt::format(", {} {}", *who, what) : std::string();
    };
    return fmt::format(
        "{} processes on {} hosts in {} sites ({}), loss {}, doubled {}, words {}, jitter {} us, {} joins "
        "before{}{}{}{}{}{}{}",
        options.host_of.size(), options.site_of.size(),
        *std::max_element(options.site_of.begin(), options.site_of.end()) + 1, groups, options.faults.loss,
        options.faults.duplicate, options.words_doubled, options.faults.jitter.value / 1000, options.counted,
        describe("dies", options.death), describe("starts again", options.restart),
        describe("computes", options.pause), describe("gives up", options.gives_up),
        somebody(options.no_memory, "shares no memory"), somebody(options.never_calls, "never calls"),
        somebody(options.silent, "is silent in surveys"));
}

}  // namespace mcastcoll::sim
