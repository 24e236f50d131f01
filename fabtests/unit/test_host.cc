// host::Team with real processes: the memory contents that each operation leaves. test_host_failures.cc and
// test_host_memory.cc cover dying members and invalid memory; fi_mcc_host_stress covers contents under load.
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "host_cases.h"
#include "host_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using host::Kind;
using host::Operation;
using host::Team;
using host::TeamConfig;

TestSuite(host, .timeout = 600);

namespace {

// Sizes around the room beside the flag, of one slot, and of several slots; the last is copied directly
// between the processes' memories.
const std::vector<std::size_t> kSizes{0, 1, 2, 7, 14, 15, 127, 500, 1024, 1025, 5000, 30'000};

int post_and_wait(Team& team, Operation& operation) {
    if (const int code = team.post(operation); code != 0) return code;
    while (!operation.done)
        if (!team.progress()) team.wait_turn();
    return operation.error;
}

}  // namespace

Test(host, every_kind_size_and_root) {
    for (const std::uint32_t count : {1U, 2U, 3U, 5U, 9U})
        expect(members(count), [](Team& team) { return all_cases(team, kSizes); });
}

Test(host, every_kind_without_single_copy) {
    MembersOptions options = members(4);
    options.config.single_copy = false;
    expect(options, [](Team& team) { return all_cases(team, kSizes); });
}

Test(host, every_kind_straight_between_memories) {
    for (const std::uint32_t count : {2U, 4U, 5U}) {
        MembersOptions options = members(count);
        options.config.thresholds = {.single_copy_from = 1, .blocks_direct_from = 1, .reduce_direct_from = 1};
        expect(options, [](Team& team) {
            if (const int code = all_cases(team, {15, 16, 1001, 40'000}); code != 0) return code;
            return team.counters().single_copies > 0 || team.counters().both_copies > 0 ? 0 : 9;
        });
    }
}

Test(host, every_kind_with_tiny_slots) {
    MembersOptions options = members(3);
    options.config.slots = 2;
    options.config.slot_bytes = 128;
    options.config.thresholds = {
        .single_copy_from = 1, .share_from = 1, .blocks_direct_from = 1, .reduce_direct_from = 1};
    expect(options, [](Team& team) { return all_cases(team, {0, 1, 15, 16, 17, 1000}); });
}

Test(host, every_kind_with_threads) {
    MembersOptions options = members(3);
    options.threads = true;
    expect(options, [](Team& team) { return all_cases(team, kSizes); });
}

Test(host, every_kind_crowded_and_roomy) {
    for (const auto crowding : {TeamConfig::Crowding::crowded, TeamConfig::Crowding::roomy}) {
        MembersOptions options = members(2);
        options.config.crowding = crowding;
        expect(options, [](Team& team) { return all_cases(team, {0, 1, 100, 5000}); });
    }
}

Test(host, barriers_by_clusters) {
    auto* entered = static_cast<std::atomic<int>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    MembersOptions options = members(6);
    options.config.crowding = TeamConfig::Crowding::roomy;
    options.config.clusters = {{0, 1}, {1, 2}, {0, 1}, {1, 3}, {0, 1}, {1, 3}};
    expect(options, [&](Team& team) {
        for (int round = 1; round <= 30; ++round) {
            if ((static_cast<std::uint32_t>(round) + team.self()) % 6 == 0) ::usleep(1000);
            entered->fetch_add(1);
            if (barrier(team) != 0) return 1;
            if (entered->load() < 6 * round) return 2;
        }
        return team.explain().find("2 leaders") == std::string::npos ? 3 : all_cases(team, {1, 2000});
    });
}

Test(host, megabytes_that_both_copy) {
    for (const bool threads : {false, true}) {
        MembersOptions options = members(2);
        options.threads = threads;
        options.config.crowding = TeamConfig::Crowding::roomy;
        expect(options, [](Team& team) {
            for (int round = 0; round < 2; ++round)
                if (const int code = all_cases(team, {100'000, 400'001}); code != 0) return code;
            return team.counters().both_copies > 0 || team.counters().single_copies == 0 ? 0 : 9;
        });
    }
}

Test(host, megabytes) {
    expect(members(3), [](Team& team) { return all_cases(team, {700'001}); });
}

Test(host, a_prefix_is_forwarded_before_the_rest_is_there) {
    for (const bool single_copy : {true, false}) {
        MembersOptions options = members(3);
        options.config.single_copy = single_copy;
        int reports[2];
        cr_assert_eq(::pipe(reports), 0);
        expect(options, [&](Team& team) {
            constexpr std::size_t kBytes = 400'000, kFragment = 1400;
            std::vector<std::byte> buffer(kBytes, std::byte{0});
            if (team.self() == 1) std::memset(buffer.data(), 7, kBytes);
            Operation op{.kind = Kind::broadcast, .root = 1, .buffer = buffer.data()};
            op.bytes = kBytes;
            if (team.post(op) != 0) return 1;
            if (team.self() == 1) {
                // The root adds the second half only when both others have reported the first.
                while (op.ready < kBytes / 2) {
                    op.ready += kFragment;
                    team.progress();
                }
                char words[2];
                ::fcntl(reports[0], F_SETFL, O_NONBLOCK);
                for (int reported = 0; reported < 2; reported += ::read(reports[0], words, 1) == 1)
                    if (!team.progress()) team.wait_turn(nullptr, nullptr, Nanoseconds::from_us(100));
                op.ready = kBytes;
                while (!op.done)
                    if (!team.progress()) team.wait_turn();
                return op.error;
            }
            std::size_t seen = 0;
            while (!op.done) {
                if (!team.progress()) team.wait_turn();
                const std::size_t before = seen;
                for (; seen < op.arrived; ++seen)
                    if (buffer[seen] != std::byte{7}) return 3;
                if (before < kBytes / 2 && seen >= kBytes / 2 && ::write(reports[1], "x", 1) != 1) return 4;
            }
            return op.error != 0 ? 5 : seen != kBytes ? 6 : 0;
        });
        ::close(reports[0]);
        ::close(reports[1]);
    }
}

Test(host, many_open_operations_end_in_order) {
    expect(members(3), [](Team& team) {
        std::vector<std::uint64_t> values(Team::kMaxOpen);
        std::vector<Operation> ops(Team::kMaxOpen);
        // The last member arrives late, so that the other members' slots fill up.
        if (team.self() == 2) ::usleep(20'000);
        for (std::size_t i = 0; i < ops.size(); ++i) {
            values[i] = team.self() == 2 ? i : 0;
            ops[i] = {.kind = Kind::broadcast, .root = 2, .buffer = reinterpret_cast<std::byte*>(&values[i])};
            ops[i].bytes = ops[i].ready = sizeof values[i];
            if (team.post(ops[i]) != 0) return 1;
        }
        if (team.self() != 2) {
            Operation more;
            if (!ops.back().done && team.post(more) != EAGAIN) return 2;
        }
        while (!ops.back().done)
            if (!team.progress()) team.wait_turn();
        for (std::size_t i = 0; i < ops.size(); ++i)
            if (!ops[i].done || values[i] != i) return 3;
        return 0;
    });
}

// Some members complete an operation before the other members have posted it, in a different pattern for each
// operation.
Test(host, running_beside_posting) {
    for (const std::uint32_t count : {1U, 2U, 3U, 5U}) {
        expect(members(count), [count](Team& team) {
            constexpr std::size_t kLengths[] = {8, 0, host::kInlineBytes, host::kInlineBytes + 8, 5000};
            std::vector<std::byte> data(5000);
            for (std::uint32_t i = 0; i < 4000; ++i) {
                const bool is_barrier = i % 4 == 0, is_sum = i % 4 == 3;
                const std::uint32_t root = i % count;
                const std::size_t bytes = is_barrier ? 0 : kLengths[i % 5];
                const auto value = static_cast<std::byte>(i);
                std::memset(data.data(), root == team.self() ? static_cast<int>(value) : 0, data.size());
                // Every member but the root adds zeros, so that a sum equals a broadcast.
                const Kind kind = is_sum ? Kind::allreduce : Kind::broadcast;
                Operation op{.kind = is_barrier ? Kind::barrier : kind, .root = root};
                if (is_sum) op.combiner = {add, 8};
                op.input = op.buffer = data.data();
                op.bytes = op.ready = bytes;
                const bool at_once = (i >> team.self() % 8 & 1) != 0;
                if ((at_once ? team.run(op) : post_and_wait(team, op)) != 0) return 1;
                if (bytes > 0 && (data[0] != value || data[bytes - 1] != value)) return 2;
                if (root != team.self() && data.back() != (bytes == data.size() ? value : std::byte{}))
                    return 3;
            }
            return team.counters().operations == 4000 ? 0 : 4;
        });
    }
}

Test(host, a_process_on_a_shared_core_keeps_all_of_its_cores) {
    MembersOptions options = members(2);
    options.config.crowding = TeamConfig::Crowding::roomy;
    expect(options, [](Team& team) {
        cpu_set_t before, one, after;
        if (::sched_getaffinity(0, sizeof before, &before) != 0) return 1;
        CPU_ZERO(&one);
        for (int core = 0; CPU_COUNT(&one) == 0; ++core)
            if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
        if (::sched_setaffinity(0, sizeof one, &one) != 0) return 2;
        // First with a single core, then with others.
        for (int i = 0; i < 1000; ++i)
            if (barrier(team) != 0) return 3;
        if (::sched_setaffinity(0, sizeof before, &before) != 0) return 4;
        for (int i = 0; i < 20'000; ++i)
            if (barrier(team) != 0) return 5;
        if (::sched_getaffinity(0, sizeof after, &after) != 0) return 6;
        return CPU_EQUAL(&before, &after) ? 0 : 7;
    });
}

Test(host, tiny_lengths_that_differ_end_with_an_error) {
    expect(members(2), [](Team& team) {
        std::uint64_t data[2] = {};
        const std::size_t bytes = team.self() == 0 ? 8 : 16;
        Operation op{.kind = Kind::broadcast, .buffer = reinterpret_cast<std::byte*>(data)};
        op.bytes = op.ready = bytes;
        const int code = team.run(op);
        if (team.self() == 1) return code == EMSGSIZE ? 0 : 1;
        // The root completed after writing its data, and gets the error from its next call.
        int later = 0;
        for (int i = 0; later == 0 && i < 100; ++i) later = barrier(team);
        return later == EMSGSIZE ? 0 : 2;
    });
}

Test(host, nonsense_is_refused) {
    TeamConfig config = fresh_config(members(2));
    auto team = Team::open(config);
    cr_assert(team.ok());
    std::uint64_t value = 0;
    Operation op{.kind = Kind::broadcast, .root = 2};
    cr_assert_eq(team.value()->post(op), EINVAL, "no such root");
    op = {.kind = Kind::allreduce, .buffer = reinterpret_cast<std::byte*>(&value)};
    op.input = op.buffer;
    op.bytes = 8;
    cr_assert_eq(team.value()->post(op), EINVAL, "no combiner");
    op.combiner = {add, 3};
    cr_assert_eq(team.value()->post(op), EINVAL, "no whole elements");
    for (const auto& [key, value_of] : std::vector<std::pair<std::string, TeamConfig>>{
             {"members", {.name = "/x", .size = 0}},
             {"member", {.name = "/x", .self = 5, .size = 5}},
             {"slots", {.name = "/x", .slots = 1}},
             {"slot", {.name = "/x", .slot_bytes = 100}},
             {"clusters", {.name = "/x", .size = 2, .clusters = {{1}}}}}) {
        auto refused = Team::open(value_of);
        cr_assert_eq(refused.ok(), false);
        cr_assert_eq(refused.error().code, EINVAL);
        cr_assert(refused.error().message.find(key) != std::string::npos, "%s",
                  refused.error().message.c_str());
    }
}

Test(host, different_lengths_end_with_an_error) {
    expect(members(2), [](Team& team) {
        std::vector<std::byte> data(500'000);
        for (const std::size_t bytes : {8UL, 64UL, 5000UL, 300'000UL}) {
            Operation op{.kind = Kind::broadcast, .buffer = data.data()};
            op.bytes = op.ready = bytes + (bytes == 300'000 ? 8 * team.self() : 0);
            const int code = team.run(op);
            if (bytes != 300'000 && code != 0) return 1;
            // A root that only publishes gets the error from the next operation.
            if (bytes == 300'000 && code != EMSGSIZE && (code != 0 || team.self() != 0)) return 2;
        }
        return barrier(team) == EMSGSIZE ? 0 : 3;
    });
}

Test(host, different_lengths_of_every_kind_end_with_an_error) {
    const std::pair<std::size_t, std::size_t> lengths[] = {
        {8, 16}, {64, 5000}, {5000, 5008}, {300'000, 300'008}};
    for (const Kind kind : {Kind::allreduce, Kind::allgather, Kind::gather, Kind::scatter, Kind::alltoall,
                            Kind::reduce_scatter})
        for (const auto& [first, second] : lengths) {
            const int failures = run_members(members(2), [&, a = first, b = second](Team& team) {
                const std::size_t bytes = team.self() == 0 ? a : b;
                std::vector<std::byte> buffer(2 * b), input(2 * b);
                Operation op{.kind = kind, .buffer = buffer.data(), .input = input.data(), .bytes = bytes};
                op.combiner = {add, 8};
                // A member that only publishes gets the error from the next operation.
                if (const int code = team.run(op); code != 0 && code != EMSGSIZE) return 1;
                return barrier(team) == EMSGSIZE ? 0 : 2;
            });
            cr_assert_eq(failures, 0, "%s, %zu and %zu bytes", name_of(kind).data(), first, second);
        }
}

Test(host, slots_are_as_large_as_memory_allows) {
    constexpr std::uint64_t kPlenty = std::uint64_t{24} << 30, kContainer = 64 << 20;
    const auto kib = [](std::uint32_t members, std::uint64_t spare_bytes) {
        return host::slot_bytes_for(members, 8, spare_bytes) >> 10;
    };
    cr_assert_eq(kib(2, kPlenty), 32);
    cr_assert_eq(kib(64, kPlenty), 32, "16 MiB");
    cr_assert_eq(kib(65, kPlenty), 16);
    cr_assert_eq(kib(128, kPlenty), 16);
    cr_assert_eq(kib(1024, kPlenty), 4);
    cr_assert_eq(kib(8, kContainer), 32, "2 MiB of 64");
    cr_assert_eq(kib(9, kContainer), 16);
    cr_assert_eq(kib(2, kContainer - 1), 32);
    cr_assert_eq(kib(8, kContainer - 1), 16);
    cr_assert_eq(kib(2, 0), 4, "unknown");
}

Test(host, bounds_follow_what_copies_cost) {
    const auto bounds = [](bool crowded, double call_ns, double direct_ns, double slot_ns) {
        return host::thresholds(2, crowded, 8192, {true, call_ns, direct_ns, slot_ns, slot_ns});
    };
    const auto usual = bounds(false, 2000, 80, 100), slow = bounds(false, 50'000, 80, 100);
    cr_assert_eq(usual.single_copy_from, 8192UL, "a call costs as much as slots lose in less");
    cr_assert_gt(slow.single_copy_from, usual.single_copy_from);
    cr_assert_gt(slow.blocks_direct_from, usual.blocks_direct_from);
    cr_assert_eq(bounds(false, 2000, 100, 80).blocks_direct_from, 16UL << 20, "slots are always ahead");
    cr_assert_eq(bounds(false, 0, 10, 500).blocks_direct_from, 64UL << 10, "straight always is");
    cr_assert_eq(bounds(false, 2000, 100, 67).single_copy_from, 8UL << 10, "slots are ahead");
    cr_assert_eq(bounds(false, 2000, 100, 66).single_copy_from, 4UL << 20, "far ahead");
    cr_assert_eq(bounds(true, 0, 10, 500).reduce_direct_from, 4UL << 20, "by rule");
    cr_assert_eq(host::thresholds(2, false, 8192, {}).single_copy_from, 16UL << 10, "not measured");
    for (const auto crowding : {TeamConfig::Crowding::crowded, TeamConfig::Crowding::roomy}) {
        MembersOptions options = members(2);
        options.config.crowding = crowding;
        const bool by_rule = crowding == TeamConfig::Crowding::crowded;
        expect(options, [&](Team& team) {
            if (barrier(team) != 0) return 1;
            const std::string text = team.explain();
            if (text.find("forbid") != std::string::npos) return 0;
            const bool says_rule = text.find("by rule") != std::string::npos;
            return says_rule || (!by_rule && text.find("from measurement") != std::string::npos) ? 0 : 2;
        });
    }
}
