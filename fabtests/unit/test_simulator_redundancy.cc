// Whole groups with redundant multicasts: every byte correct at any loss, less time at high loss, and no
// redundancy once the losses have ended.
#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;
using engine::Redundancy;

TestSuite(redundant, .timeout = 600);

namespace {

Options lossy(std::uint32_t members, std::uint64_t seed, Redundancy redundancy, const std::string& faults) {
    Options options = options_of(members, engine::Repair::pull, seed);
    options.group().redundancy = redundancy;
    options.group().min_silence = options.group().min_tail = options.group().min_gap =
        options.group().lossless_silence = {};
    options.faults = parse_faults(faults).value();
    options.separated = true;
    return options;
}

// Returns the quantile `share` of the steps' durations, each until its last member has finished.
Nanoseconds late_one(const World& world, std::uint64_t from, std::uint64_t to, double share) {
    std::vector<Nanoseconds> times;
    for (std::uint64_t step = from; step < to; ++step) times.push_back(world.duration(step));
    std::ranges::sort(times);
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
}

}  // namespace

Test(redundant, every_byte_is_right_at_any_loss) {
    for (Redundancy redundancy : {Redundancy::automatic, Redundancy::on})
        for (const char* faults :
             {"none", "loss=0.1%", "loss=1%", "loss=5%", "loss=20%", "loss=60%", "burst=2%:20%:100%",
              "fade=5%:60us", "loss=5%,duplicate=5%,reorder=5%:100us"})
            for (std::uint64_t seed : seeds(1, 3)) {
                Options options = options_of(9, policies()[seed % std::size(policies())], seed);
                options.group().redundancy = redundancy;
                options.faults = parse_faults(faults).value();
                expect_success(options, varied_script(seed, 9, 150, 120'000));
            }
}

Test(redundant, members_may_differ) {
    for (std::uint64_t seed : seeds(1, 5)) {
        Options options = options_of(9, engine::Repair::automatic, seed);
        options.faults.loss = 0.1;
        options.each = [](engine::GroupConfig& config) {
            config.redundancy = static_cast<Redundancy>(index_of(config.self) % engine::kRedundancyCount);
        };
        expect_success(options, varied_script(seed, 9, 150, 50'000));
    }
}

// The slowest of a hundred operations takes hardly longer than without loss.
Test(redundant, losses_cost_hardly_any_time) {
    constexpr std::uint64_t kWarm = 400, kCounted = 600;
    for (const Step& step : {broadcast(0, 8), barrier(), allreduce(8)})
        for (std::uint32_t members : {8U, 16U}) {
            const std::vector<Step> script(kWarm + kCounted, step);
            const auto p99 = [&](Redundancy redundancy, const char* faults) {
                const Ran world(lossy(members, 3, redundancy, faults), script);
                return late_one(world, kWarm, kWarm + kCounted, 0.99).value;
            };
            const std::int64_t fair = p99(Redundancy::off, "none");
            cr_assert_leq(2 * p99(Redundancy::automatic, "loss=1%"), 3 * fair, "%u members", members);
            cr_assert_leq(2 * p99(Redundancy::automatic, "loss=5%"), 5 * fair, "%u members", members);
            cr_assert_gt(2 * p99(Redundancy::off, "loss=5%"), 3 * fair, "else it proves nothing");
        }
}

// Losses also cost hardly any time for long messages, whose lost fragments are computed from parity.
Test(redundant, losses_of_long_messages_cost_hardly_any_time) {
    constexpr std::uint64_t kWarm = 60, kCounted = 240;
    for (std::uint32_t members : {8U, 16U}) {
        const std::vector<Step> script(kWarm + kCounted, broadcast(0, 65536));
        const auto p99 = [&](Redundancy redundancy, const char* faults) {
            Options options = lossy(members, 3, redundancy, faults);
            options.model = {};
            const Ran world(options, script);
            cr_assert_eq(world.total().parity_sent > 0,
                         options.faults.loss > 0 && redundancy != Redundancy::off);
            return late_one(world, kWarm, kWarm + kCounted, 0.99).value;
        };
        const std::int64_t fair = p99(Redundancy::off, "none");
        cr_assert_leq(2 * p99(Redundancy::automatic, "loss=1%"), 3 * fair, "%u members", members);
        cr_assert_leq(2 * p99(Redundancy::automatic, "loss=5%"), 5 * fair, "%u members", members);
    }
}

// Redundancy starts with the losses and ends after them: the last operations are sent once.
Test(redundant, nothing_is_sent_twice_when_nothing_is_lost_any_more) {
    constexpr std::uint64_t kLossy = 300, kWell = 1500, kCounted = 200;
    std::vector<Step> script(kLossy + kWell + kCounted, broadcast(0, 8));
    Options options = lossy(8, 1, Redundancy::automatic, "none");
    std::vector<std::uint32_t> sent(script.size()), repeated(script.size());
    std::uint64_t drawn = 0;
    options.faults.drop = [&](const wire::Header& header, Rank) {
        return number_of(header.operation) < kLossy && header.kind == wire::Kind::fragment &&
               ++drawn % 20 == 0;
    };
    World world(options);
    world.tap = [&](Bytes datagram) {
        const auto decoded = wire::decode(datagram);
        if (decoded.header.kind != wire::Kind::fragment) return;
        const std::uint64_t id = number_of(decoded.header.operation);
        ++sent[id];
        repeated[id] += (decoded.header.total & wire::kRepeatFlag) != 0;
    };
    expect_success(world, options, script);
    std::uint64_t bought = 0, max = 0;
    for (std::uint64_t id = 0; id < script.size(); ++id) {
        bought += repeated[id];
        max = std::max<std::uint64_t>(max, sent[id]);
        if (id >= kLossy + kWell) cr_assert_eq(sent[id], 1U, "operation %lu", static_cast<unsigned long>(id));
    }
    cr_assert_gt(bought, kLossy / 2);
    cr_assert_leq(max, 3U, "at most twice as much is sent in addition");
    cr_assert_eq(world.total().copies_sent, bought);
}

Test(redundant, without_a_loss_nothing_is_bought) {
    const Options options = lossy(16, 1, Redundancy::automatic, "none");
    const Ran world(options, mixed_script(1, 16, 200, 60'000));
    cr_assert_eq(world.total().copies_sent + world.total().parity_sent, 0U);
    cr_assert_eq(world.total().redundancy_changes, 0U);
}
