#include "scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "group_world.h"
#include "text.h"
#include "world.h"

namespace mcastcoll::sim {
namespace {

// Limit for all members of a scenario together, so that a campaign stays fast.
constexpr std::uint64_t kMaxBytes = 6ULL << 20;
constexpr std::uint64_t kMaxCompletions = 1200;

using levels::Kind;

template <typename T, std::size_t N>
T pick(Random& random, const T (&choices)[N]) {
    return choices[random.below(N)];
}

std::uint32_t one_of(Random& random, std::uint32_t count) {
    return static_cast<std::uint32_t>(random.below(count));
}

std::uint32_t number(Random& random, std::uint64_t min, std::uint64_t max) {
    return static_cast<std::uint32_t>(random.between(min, max));
}

Nanoseconds us_between(Random& random, std::uint64_t min, std::uint64_t max) {
    return Nanoseconds::from_us(static_cast<std::int64_t>(random.between(min, max)));
}

std::uint32_t draw_hosts(Random& random) {
    const std::uint64_t sort = random.below(100);
    if (sort < 70) return number(random, 2, 12);
    if (sort < 97) return number(random, 13, 40);
    return number(random, 41, 120);
}

engine::GroupConfig draw_config(Random& random) {
    engine::GroupConfig config;
    config.repair = static_cast<engine::Repair>(random.below(engine::kRepairCount));
    if (random.chance(0.3)) {
        config.root_sync = static_cast<engine::RootSync>(random.below(engine::kRootSyncCount));
        config.root_delay = us_between(random, 0, 200);
    }
    config.fragment_bytes = pick(random, {512U, 1424U, 1424U, 1424U, 4096U});
    config.window = pick(random, {16U, 64U, 256U});
    config.retransmit_bytes = config.fragment_bytes * number(random, 1, 6);
    config.operation_slots = pick(random, {8U, 16U, 64U, 64U});
    config.checkpoint_every = pick(random, {config.operation_slots / 4, config.operation_slots / 2});
    config.channels = number(random, 1, config.operation_slots);
    config.tree_arity = number(random, 1, engine::kMaxArity);
    config.large_tree_arity = number(random, 1, 3);
    config.early_buffers = number(random, 0, 4);
    config.pending_operations = 64;
    config.probes = number(random, 1, 6);
    // Derived rather than drawn, so that existing seeds keep the same scenarios.
    config.gather_bytes = config.channels % 2 == 0 ? 16384 : 1024;
    config.redundancy = static_cast<engine::Redundancy>(config.channels % engine::kRedundancyCount);
    if (config.channels % 5 < 3) config.lossless_silence = {};
    config.late_copies = config.channels % 4;
    // Room for messages of many fragments in the retransmit buffer, as in the provider.
    if (config.channels % 3 == 1)
        config.retransmit_bytes =
            std::min(4 * config.retransmit_bytes, config.window * config.fragment_bytes);
    config.epoch = Epoch{1};
    return config;
}

// Draws groups with several multicast addresses: runs of ranks, each with its own address.
void draw_ranges(Random& random, engine::GroupConfig& config) {
    if (!random.chance(0.2)) return;
    config.ranges = number(random, 1, std::min(config.members, 4U));
    config.relay = random.chance(0.5);
    for (std::uint32_t rank = 0; rank < config.members; ++rank)
        config.range_of.push_back(static_cast<std::uint8_t>(rank * config.ranges / config.members));
}

std::vector<std::uint32_t> in_any_order(Random& random, std::uint32_t count) {
    std::vector<std::uint32_t> members = first_numbers(count);
    for (std::uint32_t i = count - 1; i > 0; --i) std::swap(members[i], members[random.below(i + 1)]);
    return members;
}

// Draws some hosts in any order; with `all` returns all hosts, as for the first group, so that every host
// takes part.
std::vector<std::uint32_t> draw_members(Random& random, std::uint32_t hosts, bool all) {
    if (all) return first_numbers(hosts);
    std::vector<std::uint32_t> members = in_any_order(random, hosts);
    members.resize(random.between(2, hosts));
    return members;
}

void draw_setups(Random& random, std::uint32_t hosts, Options& options) {
    const std::uint32_t groups = hosts > 40 || random.chance(0.75) ? 1 : number(random, 2, 3);
    options.setups.resize(groups);
    for (std::uint32_t group = 0; group < groups; ++group) {
        EngineSetup& setup = options.setups[group];
        setup.hosts = draw_members(random, hosts, group == 0);
        setup.config = draw_config(random);
        setup.config.members = static_cast<std::uint32_t>(setup.hosts.size());
        setup.config.key = GroupKey{random.next()};
        draw_ranges(random, setup.config);
        const std::uint64_t max_steps = kMaxCompletions / groups / setup.config.members + 2;
        const auto count = number(random, 2, std::min<std::uint64_t>(max_steps, 120));
        const std::uint64_t max_bytes = kMaxBytes / groups / setup.config.members / 4;
        const std::uint64_t large = random.chance(0.3) ? max_bytes : std::uint64_t{20'000};
        setup.script = varied_script(random.next(), setup.config.members, count, std::min(large, max_bytes));
        if (random.chance(0.1)) {
            setup.no_socket.resize(setup.config.members);
            for (std::uint64_t i = random.between(1, 3); i > 0; --i)
                setup.no_socket[random.below(setup.config.members)] = true;
        }
    }
}

void draw_model(Random& random, std::uint32_t hosts, Model& model) {
    model.latency = us_between(random, 1, 60);
    model.send_overhead = Nanoseconds{static_cast<std::int64_t>(random.between(0, 3000))};
    model.receive_overhead = Nanoseconds{static_cast<std::int64_t>(random.between(0, 3000))};
    model.ns_per_byte = pick(random, {0.08, 0.8, 8.0});
    model.port_buffer = pick(random, {16U * 1024, 128U * 1024, 512U * 1024});
    model.socket_buffer = pick(random, {64U, 256U, 1024U});
    model.send_buffer = pick(random, {16U * 1024, 128U * 1024});
    model.own_copies = random.chance(0.3);
    model.shared_address = random.chance(0.3);
    if (!random.chance(0.1)) return;
    model.read_every.resize(hosts);
    model.read_every[random.below(hosts)] = us_between(random, 20, 3000);
}

Faults::Window draw_window(Random& random) {
    const Nanoseconds from = us_between(random, 0, 12'000);
    return {from, from + us_between(random, 500, 20'000)};
}

void draw_losses(Random& random, std::uint32_t hosts, Faults& faults) {
    if (random.chance(0.5)) faults.loss = pick(random, {0.001, 0.01, 0.05, 0.2, 0.6, 1.0});
    if (random.chance(0.1)) faults.switch_loss = pick(random, {0.01, 0.1, 0.5});
    if (random.chance(0.15)) {
        faults.burst_begin = pick(random, {0.001, 0.01, 0.1});
        faults.burst_end = pick(random, {0.02, 0.2, 0.5});
        faults.burst_loss = pick(random, {0.5, 1.0});
    }
    if (random.chance(0.05)) faults.nth = number(random, 2, 50);
    if (random.chance(0.1))
        faults.receiver_loss.push_back({one_of(random, hosts), pick(random, {0.1, 0.5, 1.0})});
    if (random.chance(0.15)) faults.duplicate = pick(random, {0.01, 0.2});
    if (random.chance(0.15)) faults.corrupt = pick(random, {0.005, 0.05});
    if (random.chance(0.15)) {
        faults.reorder = pick(random, {0.01, 0.2});
        faults.reorder_delay = us_between(random, 5, 500);
    }
}

void draw_late_messages(Random& random, Faults& faults) {
    if (random.chance(0.15)) faults.message_loss = pick(random, {0.001, 0.02, 0.1});
    if (random.chance(0.15)) {
        faults.spike = pick(random, {0.005, 0.05});
        faults.spike_delay = us_between(random, 100, 10'000);
    }
}

void draw_busy_hosts(Random& random, std::uint32_t host, Faults& faults) {
    if (random.chance(0.1)) faults.slow.push_back({host, pick(random, {3.0F, 20.0F})});
    if (random.chance(0.1)) faults.backpressure = pick(random, {0.1, 0.6});
}

void draw_faults(Random& random, std::uint32_t hosts, Faults& faults) {
    if (random.chance(0.1)) return;  // no faults
    draw_losses(random, hosts, faults);
    const auto host = one_of(random, hosts);
    if (random.chance(0.08)) faults.dead.push_back({draw_window(random)});
    if (random.chance(0.08)) faults.deaf.push_back({draw_window(random), host});
    if (random.chance(0.08)) faults.mute.push_back({draw_window(random), host});
    if (random.chance(0.08)) {
        const Faults::Outage cut{draw_window(random), number(random, 1, hosts - 1)};
        (random.chance(0.5) ? faults.splits : faults.partitions).push_back(cut);
    }
    draw_late_messages(random, faults);
    faults.messages_overtake = random.chance(0.4);
    if (random.chance(0.3)) faults.jitter = us_between(random, 1, 400);
    draw_busy_hosts(random, host, faults);
    if (random.chance(0.2)) faults.heal_at = us_between(random, 2000, 40'000);
}

void draw_timing(Random& random, Options& options) {
    options.separated = random.chance(0.3);
    options.arrival.pattern = static_cast<Arrival::Pattern>(random.below(5));
    options.arrival.by = us_between(random, 1, 2000);
    options.settle = us_between(random, 0, 100);
    options.in_flight = number(random, 1, 12);
    if (random.chance(0.5)) options.think = us_between(random, 1, 500);
    if (random.chance(0.5)) options.start_skew = us_between(random, 1, 3000);
    options.stream_pace = us_between(random, 1, pick(random, {20U, 300U, 3000U}));
    Random own(options.seed ^ 0x7475726e);  // separate, so that existing seeds keep the same scenarios
    options.turn = Nanoseconds::from_us(pick<std::int64_t>(own, {0, 0, 20, 300}));
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

// Draws a row of the table of algorithms: an algorithm for a kind of operation, for all sizes. One draw more
// than there are algorithms gives a row for a size that no operation has, so that the rows below decide.
levels::Row draw_row(Random& random) {
    levels::Row row;
    do {
        row.kind = static_cast<Kind>(random.below(levels::kKinds));
        const std::uint64_t drawn = random.below(levels::kAlgorithms + 1);
        if (drawn == levels::kAlgorithms) {
            row.bytes = {UINT64_MAX, UINT64_MAX};
            row.choice.algorithm =
                moves_blocks(row.kind) ? levels::Algorithm::messages : levels::Algorithm::levels;
            return row;
        }
        row.choice.algorithm = static_cast<levels::Algorithm>(drawn);
    } while (!levels::allowed(row.kind, row.choice.algorithm));
    const bool chained =
        row.choice.algorithm == levels::Algorithm::chains || row.choice.algorithm == levels::Algorithm::split;
    if (chained) row.choice.chains = static_cast<std::uint16_t>(random.between(1, 4));
    return row;
}

GroupSetup draw_group(Random& random, std::uint32_t processes) {
    GroupSetup setup;
    setup.members = in_any_order(random, processes);
    if (random.chance(0.3)) setup.members.resize(random.between(1, processes));
    for (std::uint64_t i = random.below(8); i > 0; --i)
        setup.script.push_back(draw_collective(random, static_cast<std::uint32_t>(setup.members.size())));
    for (std::uint64_t i = random.below(4); i > 0; --i) setup.selection.push_back(draw_row(random));
    setup.in_flight = random.between(1, 4);
    setup.repair = static_cast<engine::Repair>(random.below(3));
    return setup;
}

HostEvent draw_event(Random& random, std::uint32_t processes, std::uint64_t operations) {
    HostEvent event;
    event.host = one_of(random, processes);
    if (random.chance(0.5))
        event.at = random.up_to(pick(random, {Nanoseconds::from_us(500), Nanoseconds::from_ms(20)}));
    else
        event.after = random.below(operations + 1);
    return event;
}

// Faults of joins. A separate generator keeps earlier draws of each seed unchanged, as the seeds in
// fabtests/unit/test_groups.cc require; with this constant, the older of those seeds draw no faults here.
void draw_join_faults(std::uint64_t seed, GroupOptions& options) {
    Random random(seed ^ 0x6a6f696e55);
    const auto processes = static_cast<std::uint32_t>(options.host_of.size());
    options.messages_doubled = pick(random, {0.0, 0.0, 0.0, 0.2});
    options.counted = one_of(random, 3);
    const auto any_process = [&] { return one_of(random, processes); };
    if (random.chance(0.15)) options.restart = draw_event(random, processes, 20);
    if (random.chance(0.03)) options.never_calls = any_process();
    if (random.chance(0.05)) options.silent = any_process();
}

// Draws no number, only looks at the seed, so that the earlier draws of each seed stay unchanged.
void draw_security(std::uint64_t seed, GroupOptions& options) {
    if (seed % 2 == 0) return;
    options.key = wire::Key{std::byte{1}};
    options.security = seed % 4 == 1 ? wire::Security::authenticate : wire::Security::encrypt;
    options.forged = 0.2;
}

GroupOptions draw_groups(std::uint64_t seed) {
    Random random(seed ^ 0x67726f757073);
    GroupOptions options;
    const auto processes = number(random, 1, random.chance(0.1) ? 24 : 9);
    const auto hosts = number(random, 1, processes);
    const auto sites = random.chance(0.7) ? 1U : number(random, 1, std::min(hosts, 3U));
    for (std::uint32_t process = 0; process < processes; ++process)
        options.host_of.push_back(process < hosts ? process : one_of(random, hosts));
    for (std::uint32_t host = 0; host < hosts; ++host) options.site_of.push_back(host % sites);
    for (std::uint64_t i = random.between(1, 3); i > 0; --i)
        options.groups.push_back(draw_group(random, processes));
    options.seed = random.next();
    options.faults.loss = pick(random, {0.0, 0.0, 0.02, 0.2});
    options.faults.duplicate = pick(random, {0.0, 0.1});
    options.faults.jitter = Nanoseconds::from_us(pick<std::int64_t>(random, {5, 100, 3'000}));
    Random own(seed ^ 0x6d6f64656c);  // separate, so that earlier draws stay unchanged
    draw_model(own, processes, options.model);
    draw_late_messages(own, options.faults);
    draw_busy_hosts(own, one_of(own, processes), options.faults);
    options.model.wan.latency = Nanoseconds::from_us(pick<std::int64_t>(random, {200, 20'000}));
    options.messages_at_once = random.between(1, 32);
    options.reports_failed_sends = random.chance(0.5);
    options.watch_delay = Nanoseconds::from_ms(pick<std::int64_t>(random, {1, 100, 1'000}));
    if (random.chance(0.2)) options.no_multicast = one_of(random, processes);
    options.calls_within = Nanoseconds::from_us(pick<std::int64_t>(random, {1, 1'000, 1'000'000}));
    std::uint64_t operations = 0;
    for (const GroupSetup& setup : options.groups) operations += setup.script.size() * setup.members.size();
    if (random.chance(0.4)) options.death = draw_event(random, processes, operations);
    if (random.chance(0.3)) options.pause = draw_event(random, processes, operations);
    if (random.chance(0.05)) options.gives_up = draw_event(random, processes, 0);
    if (random.chance(0.2)) options.stall_timeout = Nanoseconds::from_ms(1'000);
    if (random.chance(0.05)) options.no_memory = one_of(random, processes);
    options.pause_length = Nanoseconds::from_ms(pick<std::int64_t>(random, {1, 50, 700, 3'000}));
    draw_join_faults(seed, options);
    draw_security(seed, options);
    return options;
}

std::string describe(const char* what, const std::optional<HostEvent>& event) {
    if (!event) return {};
    return event->at != kNever ? fmt::format(", {} {} at {}", event->host, what, to_string(event->at))
                               : fmt::format(", {} {} after {} operations", event->host, what, event->after);
}

Options draw_scenario(std::uint64_t seed) {
    Random random(Random(seed).next());  // decorrelates neighbouring seeds
    Options options;
    options.seed = random.next();
    const std::uint32_t hosts = draw_hosts(random);
    draw_setups(random, hosts, options);
    draw_model(random, hosts, options.model);
    draw_faults(random, hosts, options.faults);
    draw_timing(random, options);
    if (random.chance(0.15)) {
        HostEvent& death = options.deaths.emplace_back();
        death.host = one_of(random, hosts);
        if (random.chance(0.5))
            death.at = us_between(random, 1, 20'000);
        else
            death.after = random.below(options.setups[0].script.size() + 1);
    }
    return options;
}

std::string summary_of(const Options& options) {
    std::string text;
    for (const EngineSetup& setup : options.setups)
        text += fmt::format(
            "group of {}, {} ops, {}, root sync {}, window {}, slots {}, fragment {}, {} ranges{}; ",
            setup.config.members, setup.script.size(), engine::name_of(setup.config.repair),
            engine::name_of(setup.config.root_sync), setup.config.window, setup.config.operation_slots,
            setup.config.fragment_bytes, setup.config.ranges, setup.config.relay ? ", relayed" : "");
    text += fmt::format("{}, latency {}, faults {}", options.separated ? "separated" : "pipelined",
                        to_string(options.model.latency), to_string(options.faults));
    for (const HostEvent& death : options.deaths) text += describe("dies", death);
    return text;
}

std::string summary_of_groups(std::uint64_t seed) {
    const GroupOptions options = draw_groups(seed);
    std::string groups;
    for (const GroupSetup& setup : options.groups) {
        groups += fmt::format("{}{} members", groups.empty() ? "" : ", ", setup.members.size());
        for (const Collective& what : setup.script)
            groups += fmt::format(" {}:{}", levels::name_of(what.kind).data(), what.bytes);
    }
    const auto named = [](const std::optional<std::uint32_t>& who, const char* what) {
        return who ? fmt::format(", {} {}", *who, what) : std::string();
    };
    return fmt::format(
        "{} processes on {} hosts in {} sites ({}), latency {}, faults {}, messages doubled {}, {} joins "
        "before{}{}{}{}{}{}{}{}",
        options.host_of.size(), options.site_of.size(),
        *std::max_element(options.site_of.begin(), options.site_of.end()) + 1, groups,
        to_string(options.model.latency), to_string(options.faults), options.messages_doubled,
        options.counted, describe("dies", options.death), describe("starts again", options.restart),
        describe("computes", options.pause), describe("gives up", options.gives_up),
        named(options.no_multicast, "has no multicast"), named(options.no_memory, "shares no memory"),
        named(options.never_calls, "never calls"), named(options.silent, "is silent in surveys"));
}

}  // namespace

std::string run_groups(std::uint64_t seed) {
    return GroupWorld(draw_groups(seed)).run();
}

SeedRun run_seed(std::uint64_t seed) {
    GroupWorld groups(draw_groups(seed));
    if (std::string wrong = groups.run(); !wrong.empty()) return {"groups: " + wrong, {}};
    World world(draw_scenario(seed));
    std::string wrong = world.run();
    return {std::move(wrong), groups.network().digest() ^ world.network().digest()};
}

std::string summary_of_seed(std::uint64_t seed) {
    return fmt::format("{}; {}", summary_of_groups(seed), summary_of(draw_scenario(seed)));
}

}  // namespace mcastcoll::sim
