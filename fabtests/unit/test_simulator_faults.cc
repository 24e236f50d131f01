// Faults by table: exactly this datagram is lost for exactly this member. Canaries: the protocol cannot
// survive these faults, and the simulator must detect each fault.
#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <utility>

#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

TestSuite(faults, .timeout = 600);

// Warms up, runs one operation with the given losses, and returns the additional time caused by the losses.
static Nanoseconds cost_of(Options options, Step step,
                           const std::function<bool(const wire::Header&, Rank)>& drop) {
    constexpr std::uint64_t kAt = 40;
    std::vector<Step> script(kAt, broadcast(0, 8));
    script.push_back(step);
    script.resize(kAt + 10, broadcast(0, 8));
    options.in_flight = 1;
    // As in a group that has lost datagrams, whose timeouts are shorter.
    options.group().lossless_silence = {};
    const Ran clean(options, script);
    // Drops each chosen fragment once per receiver: the root's second multicast of it arrives.
    std::set<std::pair<FragmentIndex, Rank>> dropped;
    options.faults.drop = [&](const wire::Header& header, Rank to) {
        const bool carries = header.kind == wire::Kind::fragment || header.kind == wire::Kind::release;
        return carries && number_of(header.operation) == kAt && drop(header, to) &&
               dropped.emplace(header.fragment, to).second;
    };
    const Ran lossy(options, script);
    cr_assert(!dropped.empty(), "nothing was dropped");
    return lossy.duration(kAt) - clean.duration(kAt);
}

Test(faults, one_lost_fragment_costs_about_a_round_trip) {
    for (std::uint32_t members : {2U, 8U})
        for (std::uint32_t receiver = 1; receiver < members; receiver += 3)
            for (std::uint32_t fragment : {0U, 1U, 17U, 69U, 70U}) {
                const Options options = options_of(members, engine::Repair::pull, 1);
                const Nanoseconds cost =
                    cost_of(options, broadcast(0, 100000), [=](const wire::Header& header, Rank to) {
                        return to == rank_of(receiver) && index_of(header.fragment) == fragment;
                    });
                // No packet follows the last fragment, so only a timeout detects its loss.
                const std::int64_t max = fragment == 70 ? 10 : 3;
                cr_assert_leq(cost.value, max * 2 * options.model.latency.value,
                              "%u lost fragment %u: %ld us", receiver, fragment, us(cost));
            }
}

Test(faults, one_lost_small_broadcast_costs_about_a_round_trip) {
    for (engine::Repair repair : policies())
        for (std::uint32_t receiver : {1U, 4U, 7U}) {
            const Options options = options_of(8, repair, 1);
            const Nanoseconds cost = cost_of(options, broadcast(0, 8), [=](const wire::Header&, Rank to) {
                return to == rank_of(receiver);
            });
            cr_assert_leq(cost.value, 3 * 2 * options.model.latency.value, "%ld us", us(cost));
        }
}

// Returns the time until the last member has the data, median over broadcasts. A barrier follows each
// broadcast, so that only a timeout detects a loss.
static Nanoseconds last_member(engine::Repair repair, std::uint32_t members, std::uint64_t bytes,
                               double loss) {
    Options options = options_of(members, repair, 1);
    options.group().min_silence = options.group().min_tail = options.group().min_gap =
        options.group().lossless_silence = {};
    options.in_flight = 1;
    std::mt19937_64 random(members);
    options.faults.drop = [&](const wire::Header& header, Rank) {
        return header.kind != wire::Kind::probe && std::uniform_real_distribution<>(0, 1)(random) < loss;
    };
    std::vector<Step> script;
    for (int i = 0; i < 60; ++i) {
        script.push_back(broadcast(0, bytes));
        script.push_back(barrier());
    }
    const Ran world(options, script);
    std::vector<Nanoseconds> times;
    for (std::uint64_t i = 20; i < script.size(); i += 2) times.push_back(world.duration(i));
    std::nth_element(times.begin(), times.begin() + 25, times.end());
    return times[25];
}

Test(faults, at_one_percent_loss_the_last_member_is_a_few_round_trips_late) {
    const Nanoseconds rtt = Nanoseconds::from_us(40);
    for (engine::Repair repair : policies())
        for (std::uint32_t members : {16U, 64U, 116U}) {
            const Nanoseconds late =
                last_member(repair, members, 8, 0.01) - last_member(repair, members, 8, 0);
            cr_assert_leq(late.value, 4 * rtt.value, "%s, %u members: %ld us", engine::name_of(repair).data(),
                          members, us(late));
        }
}

Test(faults, at_one_percent_loss_64_kib_are_a_few_round_trips_late) {
    const Nanoseconds rtt = Nanoseconds::from_us(40);
    for (engine::Repair repair : policies()) {
        const Nanoseconds late = last_member(repair, 16, 65536, 0.01) - last_member(repair, 16, 65536, 0);
        cr_assert_leq(late.value, 4 * rtt.value, "%s: %ld us", engine::name_of(repair).data(), us(late));
    }
}

Test(faults, a_lost_release_costs_about_a_round_trip) {
    for (engine::Repair repair : policies())
        for (std::uint32_t receiver : {1U, 5U, 7U}) {
            const Options options = options_of(8, repair, 1);
            const Nanoseconds cost = cost_of(options, barrier(), [=](const wire::Header& header, Rank to) {
                return header.kind == wire::Kind::release && to == rank_of(receiver);
            });
            cr_assert_leq(cost.value, 3 * 2 * options.model.latency.value, "%ld us", us(cost));
        }
}

// While a job starts, all processes are busy and messages take long. A loss that only a timeout detects must
// not cost as much later. With a single ping right after the join it cost 1.9 ms.
Test(faults, what_messages_took_at_the_start_is_not_what_a_loss_costs) {
    constexpr std::uint64_t kAt = 100;
    Options options = options_of(8, engine::Repair::pull, 1);
    options.in_flight = 1;
    options.group().lossless_silence = {};
    options.faults.spike = 1;
    options.faults.spike_delay = Nanoseconds::from_us(600);
    options.faults.spikes.to = Nanoseconds::from_ms(15);
    std::vector<Step> script;
    for (std::uint64_t i = 0; i < kAt; ++i) {
        script.push_back(broadcast(0, 8));
        script.push_back(barrier());
    }
    const Ran clean(options, script);
    options.faults.drop = [](const wire::Header& header, Rank to) {
        return header.kind == wire::Kind::fragment && number_of(header.operation) == kAt && to == rank_of(4);
    };
    const Ran lossy(options, script);
    const Nanoseconds cost = lossy.duration(kAt) - clean.duration(kAt);
    const Nanoseconds silence = options.group().min_silence;
    cr_assert(cost >= silence && cost <= Nanoseconds{2 * silence.value}, "%ld us", us(cost));
}

// A late member looks like a loss to the members that wait for it. Without losses, no member sends a NAK.
Test(faults, no_naks_without_loss) {
    for (std::uint64_t seed : seeds(1, 4)) {
        Options options = options_of(8, engine::Repair::pull, seed);
        options.in_flight = 1;
        options.think = Nanoseconds::from_ms(1);
        const std::vector<Step> script = mixed_script(seed, 8, 300, 200000);
        cr_assert_eq(Ran(options, script).total().naks_sent, 0U, "%s", replay(options).c_str());
        options.group().lossless_silence = {};
        cr_assert_gt(Ran(options, script).total().naks_sent, 0U, "%s", replay(options).c_str());
    }
}

// The first loss after a long time costs the long timeout, the next one does not.
Test(faults, the_first_loss_ends_the_long_timeout) {
    constexpr std::uint64_t kFirst = 40, kNext = 42;
    Options options = options_of(8, engine::Repair::pull, 1);
    options.in_flight = 1;
    options.faults.drop = [](const wire::Header& header, Rank to) {
        const std::uint64_t at = number_of(header.operation);
        return header.kind == wire::Kind::fragment && (at == kFirst || at == kNext) && to == rank_of(4);
    };
    std::vector<Step> script;
    for (std::uint64_t i = 0; i < kNext; ++i) script.push_back(i % 2 == 0 ? broadcast(0, 8) : barrier());
    script.push_back(broadcast(0, 8));
    const Ran ran(options, script);
    const Nanoseconds timeout = options.group().lossless_silence, few{20 * options.model.latency.value};
    cr_assert(ran.duration(kFirst) >= timeout && ran.duration(kFirst) <= timeout + few, "%ld us",
              us(ran.duration(kFirst)));
    cr_assert_leq(ran.duration(kNext).value, options.group().min_silence.value + few.value, "%ld us",
                  us(ran.duration(kNext)));
}

Test(faults, each_fragment_for_each_receiver) {
    for (engine::Repair repair : policies())
        for (std::uint32_t receiver = 1; receiver < 4; ++receiver)
            for (std::uint32_t fragment = 0; fragment < 9; ++fragment) {
                Options options = options_of(4, repair, 1);
                options.group().retransmit_bytes = 4 * options.group().fragment_bytes;
                options.faults.drop = [=](const wire::Header& header, Rank to) {
                    return header.kind == wire::Kind::fragment && index_of(header.fragment) == fragment &&
                           to == rank_of(receiver);
                };
                expect_success(options, {broadcast(0, 9ULL * options.group().fragment_bytes), barrier(),
                                         broadcast(0, 3ULL * options.group().fragment_bytes)});
            }
}

Test(faults, one_member_receives_nothing_after_the_join) {
    for (engine::Repair repair : policies())
        for (std::uint32_t receiver = 0; receiver < 5; ++receiver)
            for (std::uint64_t seed : seeds(1, 2)) {
                Options options = options_of(5, repair, seed);
                options.faults.drop = [=](const wire::Header& header, Rank to) {
                    return header.kind != wire::Kind::probe && to == rank_of(receiver);
                };
                const Ran world(options, mixed_script(seed, 5, 60, 100000));
                cr_assert(!world.engine(0).graph().deaf(rank_of(receiver)));
                cr_assert_eq(world.engine(receiver).counters().fragments_by_multicast, 0U);
            }
}

Test(faults, one_direction_is_dead) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 4)) {
            Options options = options_of(5, repair, seed);
            options.faults.drop = [seed](const wire::Header& header, Rank to) {
                return index_of(header.sender) == seed % 5 && index_of(to) == (seed + 2) % 5;
            };
            expect_success(options, mixed_script(seed, 5, 60, 100000));
        }
}

Test(faults, the_multicast_dies_and_comes_back) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 4)) {
            Options options = options_of(6, repair, seed);
            options.think = Nanoseconds::from_us(300);
            options.group().lossless_silence = {};
            const Faults::Window dead{Nanoseconds::from_ms(8),
                                      seed % 2 == 0 ? Nanoseconds::from_ms(14) : kNever};
            options.faults.dead.push_back({dead});
            const Ran world(options, mixed_script(seed, 6, 150, 60000));
            cr_assert_gt(world.now().value, dead.from.value, "it was over before");
            cr_assert_gt(world.total().fragments_repaired, 0U);
        }
}

Test(faults, messages_that_take_very_long) {
    for (engine::Repair repair : policies())
        for (bool overtake : {false, true})
            for (std::uint64_t seed : seeds(1, 5)) {
                Options options = options_of(7, repair, seed);
                options.faults.spike = 0.05;
                options.faults.spike_delay = Nanoseconds::from_ms(10);
                options.faults.messages_overtake = overtake;
                options.faults.loss = 0.1;
                expect_success(options, mixed_script(seed, 7, 60, 60000));
            }
}

Test(faults, a_network_that_takes_nothing_now_and_then) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 5)) {
            Options options = options_of(5, repair, seed);
            options.faults.backpressure = 0.6;
            options.faults.loss = seed % 2 == 0 ? 0.1 : 0;
            expect_success(options, mixed_script(seed, 5, 60, 100000));
        }
}

// Recorded datagrams are replayed to every member, late, damaged and with different keys.
Test(faults, replayed_and_forged_datagrams_change_nothing) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 3)) {
            const Options options = options_of(4, repair, seed);
            const auto script = mixed_script(seed, 4, 80, 60000);
            World world(options);
            std::vector<std::vector<std::byte>> recorded;
            std::mt19937_64 random(seed);
            world.tap = [&](Bytes datagram) {
                recorded.emplace_back(datagram.begin(), datagram.end());
                for (int i = 0; i < 3; ++i) {
                    std::vector<std::byte> copy = recorded[random() % recorded.size()];
                    const auto victim = static_cast<std::uint32_t>(random() % 4);
                    if (i == 1) copy[random() % copy.size()] ^= std::byte{0x40};
                    if (i == 2) copy.resize(random() % copy.size());
                    // A sender never receives its own datagram from inside the send.
                    if (wire::decode(datagram).header.sender != rank_of(victim)) world.inject(victim, copy);
                }
            };
            expect_success(world, options, script);
            const engine::Counters total = world.total();
            cr_assert_gt(total.bad_packet, 0U);
            cr_assert_gt(total.bad_checksum, 0U);
            cr_assert_gt(total.duplicates + total.stale_operation, 0U);
        }
}

TestSuite(canary, .timeout = 300);

// A wrong byte at the root must be detected: otherwise the tests above prove nothing.
Test(canary, a_wrong_byte_is_noticed) {
    Options options = options_of(3, engine::Repair::pull, 1);
    options.tamper = [](Rank rank, std::uint64_t step, Collective& operation) {
        if (rank == operation.root && step == 2) operation.buffer[17] ^= std::byte{1};
    };
    World world(options);
    const std::string wrong = world.run({broadcast(0, 100), barrier(), broadcast(1, 100), barrier()});
    cr_assert(wrong.find("wrong byte 17 in step 2") != std::string::npos, "%s", wrong.c_str());
}

Test(canary, a_lost_reliable_message_is_noticed) {
    for (wire::Kind kind :
         {wire::Kind::data, wire::Kind::gather, wire::Kind::reachability_map, wire::Kind::leave_up}) {
        Options options = options_of(3, engine::Repair::pull, 1);
        options.faults.drop = [](const wire::Header& header, Rank) {
            return header.kind != wire::Kind::probe;
        };
        bool once = true;
        options.faults.lose_message = [&once, kind](const wire::Header& header, Rank) {
            return header.kind == kind && std::exchange(once, false);
        };
        options.time_limit = Nanoseconds::from_ms(3000);
        World world(options);
        cr_assert(!world.run({broadcast(0, 100), barrier(), broadcast(1, 20000)}).empty(), "kind %d",
                  static_cast<int>(kind));
    }
}

Test(canary, members_that_disagree_get_an_error) {
    for (engine::Repair repair : policies()) {
        Options options = options_of(3, repair, 1);
        options.time_limit = Nanoseconds::from_ms(3000);
        options.tamper = [](Rank rank, std::uint64_t step, Collective& operation) {
            if (rank == rank_of(2) && step == 1) operation.bytes = 50;
        };
        World world(options);
        cr_assert(!world.run({broadcast(0, 100), broadcast(0, 100), barrier()}).empty());
        cr_assert_eq(world.status(2), EMSGSIZE);
    }
}
