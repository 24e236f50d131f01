// The level of messages between all members: every algorithm and number of members, small windows,
// contradictory members, and the messages sent.
#include <algorithm>

#include "levels_fixture.h"

namespace mcastcoll::levels {

TestSuite(exchange_level, .timeout = 300);

namespace {

using enum ExchangeAlgorithm;

struct Case {
    Kind kind;
    ExchangeAlgorithm algorithm;
};
constexpr Case kCases[] = {
    {Kind::gather, linear},           {Kind::gather, binomial}, {Kind::scatter, linear},
    {Kind::scatter, binomial},        {Kind::alltoall, linear}, {Kind::alltoall, pairwise},
    {Kind::alltoall, bruck},          {Kind::allgather, ring},  {Kind::allgather, bruck},
    {Kind::reduce_scatter, pairwise},
};
bool quick() {
    return std::getenv("MCC_QUICK") != nullptr;
}

// With windows of this size members borrow credit for longer messages, two at a time.
constexpr std::uint32_t kSmallWindow = 512;

// Runs a script in a group of members with a host each, and returns the first error.
std::string run(std::uint32_t members, std::uint64_t seed, const std::vector<Work>& script,
                std::uint32_t message_bytes = 2048, std::uint32_t window = 0) {
    Group group(on_hosts(members, 1), seed, "flat", message_bytes, "", nullptr, window);
    const std::string wrong = group.exchange(script);
    return wrong.empty()
               ? wrong
               : fmt::format("{} ({} members, seed {}, windows of {})", wrong, members, seed, window);
}

LevelOperation level_operation_of(Kind kind, std::vector<std::byte>& input, std::vector<std::byte>& buffer,
                                  std::size_t bytes, std::uint64_t number = 0) {
    LevelOperation level_operation;
    level_operation.kind = kind;
    level_operation.number = number;
    level_operation.input = input.data();
    level_operation.buffer = buffer.data();
    level_operation.bytes = bytes;
    return level_operation;
}

// Returns a message as another member sends it, in a group without a key.
std::vector<std::byte> sent_by(std::uint32_t sender, wire::Header header, Bytes payload) {
    header.sender = rank_of(sender);
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    Outgoing message{.payload = payload};
    wire::encode(header, payload, message.header);
    return letter(message);
}
std::vector<std::byte> grant_from(std::uint32_t sender, std::uint64_t total) {
    return sent_by(sender, {.kind = wire::Kind::block_grant, .total = total}, {});
}
std::vector<std::byte> block_from(std::uint32_t sender, std::uint64_t operation, std::size_t bytes,
                                  std::byte value) {
    const std::vector<std::byte> payload(bytes, value);
    return sent_by(
        sender,
        {.kind = wire::Kind::block, .operation = operation_of(operation), .fragment = fragment_of(bytes)},
        payload);
}

constexpr std::uint64_t kPiece = 64;  // cost of a piece in addition to its bytes
// Returns the cost of these bytes in a window of this size, as FORMAT.md defines.
std::uint64_t cost_of(std::uint64_t bytes, std::uint64_t window) {
    const std::uint64_t unit = (window / 2 - kPiece) / 32 * 32;
    return bytes + std::max<std::uint64_t>(1, (bytes + unit - 1) / unit) * kPiece;
}

ExchangeLevel member(std::uint32_t self, std::uint32_t members = 2) {
    ExchangeConfig config;
    config.self = self;
    config.members = members;
    return ExchangeLevel(config);
}

}  // namespace

// Runs sizes below, at and above a piece and a window, and all kinds in sequence, so that early pieces and
// several open operations occur.
Test(exchange_level, every_algorithm_with_every_number_of_members) {
    std::uint64_t seed = 1;
    for (std::uint32_t members = 1; members <= (quick() ? 6 : 13); ++members)
        for (const std::size_t elements : {1, 7, 250, 3000}) {
            std::vector<Work> script;
            for (const Case& one : kCases)
                for (const bool in_place : {false, true})
                    script.push_back({one.kind, static_cast<std::uint32_t>(seed % members), elements,
                                      in_place, one.algorithm});
            std::mt19937_64 random(++seed);
            std::shuffle(script.begin(), script.end(), random);
            const std::string wrong = run(members, seed, script, 2048, seed % 2 == 0 ? kSmallWindow : 0);
            cr_assert(wrong.empty(), "%s", wrong.c_str());
        }
}

Test(exchange_level, random_scripts) {
    for (std::uint64_t seed = 1; seed <= (quick() ? 20 : 150); ++seed) {
        std::mt19937_64 random(seed);
        const auto members = static_cast<std::uint32_t>(1 + random() % 9);
        constexpr std::size_t kElements[] = {0, 1, 3, 8, 100, 513, 3000};
        std::vector<Work> script(15);
        for (Work& one : script) {
            const Case& drawn = kCases[random() % std::size(kCases)];
            one = {drawn.kind, static_cast<std::uint32_t>(random() % members),
                   kElements[random() % std::size(kElements)], random() % 3 == 0,
                   random() % 2 == 0 ? std::optional(drawn.algorithm) : std::nullopt};
        }
        const std::string wrong = run(members, seed, script, 2048, seed % 2 == 0 ? kSmallWindow : 0);
        cr_assert(wrong.empty(), "%s", wrong.c_str());
    }
}

Test(exchange_level, large_groups) {
    for (const std::uint32_t members : quick() ? std::vector{64U} : std::vector{256U, 257U, 1024U}) {
        std::vector<Work> script{{Kind::alltoall, 0, 3, true, bruck},
                                 {Kind::gather, 17, 5, false, binomial},
                                 {Kind::scatter, 3, 5, false, binomial},
                                 {Kind::allgather, 0, 2, false, bruck}};
        if (members < 1024)
            script.insert(script.end(), {{Kind::alltoall, 0, 2, false, pairwise},
                                         {Kind::reduce_scatter, 0, members + 5, false},
                                         {Kind::allgather, 0, 2, false, ring}});
        const std::string wrong = run(members, 1, script, 32768, kSmallWindow);
        cr_assert(wrong.empty(), "%s", wrong.c_str());
    }
}

// Every message of a long ring has its own number, and the operation and kind of its collective: this test
// decodes the messages. In the test's ring of one real member, the left neighbour's messages are copies of
// the member's messages to its right neighbour.
Test(exchange_level, every_round_of_a_ring_has_its_number) {
    constexpr std::uint64_t kOperation = 5, kSort = static_cast<std::uint64_t>(Kind::allgather);
    const struct {
        std::uint32_t members;
        unsigned bits;
    } rows[] = {{255, 8},   {256, 8},   {257, 9},    {512, 9},    {513, 10},
                {1024, 10}, {1026, 11}, {65536, 16}, {65537, 17}, {65538, 17}};
    for (const auto& [members, bits] : rows) {
        ExchangeLevel level = member(0, members);
        std::vector<std::byte> input(1), buffer(members);
        LevelOperation level_operation = level_operation_of(Kind::allgather, input, buffer, 1, kOperation);
        cr_assert_eq(level.post(level_operation, ring, {}), 0);
        level.on_message(grant_from(1, UINT64_MAX), {});
        const std::uint64_t first = (kOperation << 4 | kSort) << bits;
        std::uint64_t round = 0;
        for (Outgoing message; level.poll_outgoing(message);) {
            const wire::Header header = wire::decode(letter(message)).header;
            if (header.kind != wire::Kind::block) continue;
            cr_assert_eq(number_of(header.operation), first + round, "%u members, round %zu", members,
                         static_cast<std::size_t>(round));
            level.on_message(block_from(members - 1, number_of(header.operation), 1, std::byte{7}), {});
            ++round;
        }
        level.progress({});
        cr_assert(level_operation.done && level_operation.error == 0);
        cr_assert_eq(round, members - 1);
    }
}

// A late round that arrives before the first must not be mistaken for the first.
Test(exchange_level, rounds_of_a_ring_may_overtake_each_other) {
    for (const std::uint32_t members : {257, 258, 1024, 1026, 1100}) {
        const auto value = [](std::uint32_t round) { return static_cast<std::byte>(round % 251); };
        ExchangeLevel level = member(0, members);
        std::vector<std::byte> input(1), buffer(members);
        LevelOperation level_operation = level_operation_of(Kind::allgather, input, buffer, 1);
        const std::uint64_t first = static_cast<std::uint64_t>(Kind::allgather)
                                    << std::bit_width(members - 1);
        cr_assert_eq(level.post(level_operation, ring, {}), 0);
        level.on_message(grant_from(1, UINT64_MAX), {});
        const std::uint32_t last = members - 2;
        std::vector<std::uint32_t> order{last, last / 2};
        for (std::uint32_t round = 0; round < last; ++round)
            if (round != last / 2) order.push_back(round);
        for (const std::uint32_t round : order) {
            level.on_message(block_from(members - 1, first + round, 1, value(round)), {});
            level.progress({});
            for (Outgoing message; level.poll_outgoing(message);) continue;
        }
        level.progress({});
        cr_assert(level_operation.done && level_operation.error == 0, "%u members", members);
        for (std::uint32_t round = 0; round <= last; ++round)
            cr_assert(buffer[members - 1 - round] == value(round), "%u members, round %u", members, round);
    }
}

// A number that does not fit into the header is refused rather than truncated.
Test(exchange_level, numbers_that_are_too_large) {
    for (const auto& [members, max] : {std::pair{256U, UINT64_MAX >> 12}, {65536U, UINT64_MAX >> 20}}) {
        std::vector<std::byte> input(members), buffer(members);
        ExchangeLevel level = member(0, members);
        LevelOperation last = level_operation_of(Kind::alltoall, input, buffer, 1, max);
        LevelOperation beyond = level_operation_of(Kind::alltoall, input, buffer, 1, max + 1);
        cr_assert_eq(level.post(beyond, {}), EOVERFLOW);
        cr_assert_eq(level.post(last, {}), 0);
    }
}

// Sums have the same bits for every order of arrival: the bits of a sum in rank order, with which the fixture
// compares.
Test(exchange_level, sums_are_in_the_order_of_ranks) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const std::string wrong = run(
            5, seed, {{Kind::reduce_scatter, 0, 4099, seed % 2 == 0}, {Kind::reduce_scatter, 0, 3, false}});
        cr_assert(wrong.empty(), "%s", wrong.c_str());
    }
}

// Each algorithm sends as many messages as it needs, and no hellos (first messages between sites).
Test(exchange_level, messages_are_as_many_as_the_algorithm_says) {
    const struct {
        Work work;
        std::uint64_t pieces;
    } expected[] = {
        {{Kind::gather, 3, 4, false, linear}, 15},      {{Kind::gather, 3, 4, false, binomial}, 15},
        {{Kind::scatter, 3, 4, false, linear}, 15},     {{Kind::scatter, 3, 4, false, binomial}, 15},
        {{Kind::alltoall, 0, 4, false, pairwise}, 240}, {{Kind::alltoall, 0, 4, false, bruck}, 64},
        {{Kind::allgather, 0, 4, false, ring}, 240},    {{Kind::allgather, 0, 4, false, bruck}, 64},
        {{Kind::reduce_scatter, 0, 3, false}, 45},      {{Kind::alltoall, 0, 0, false}, 0},
    };
    for (const auto& one : expected) {
        Group group(on_hosts(16, 1), 5, "flat", 2048);
        cr_assert(group.exchange({one.work}).empty());
        cr_assert_eq(group.pieces_exchanged(), one.pieces, "kind %d, algorithm %d: %zu pieces",
                     static_cast<int>(one.work.kind),
                     one.work.algorithm ? static_cast<int>(*one.work.algorithm) : -1,
                     static_cast<std::size_t>(group.pieces_exchanged()));
    }
}

Test(exchange_level, members_that_contradict_each_other_fail) {
    std::vector<std::byte> input(400), buffer(400);
    const struct {
        Kind kind;
        std::size_t bytes;
        std::uint64_t number;
    } others[] = {{Kind::alltoall, 50, 0}, {Kind::allgather, 100, 0}, {Kind::alltoall, 100, 1}};
    for (const auto& other : others)
        for (const bool early : {false, true}) {
            ExchangeLevel sender = member(0), receiver = member(1);
            LevelOperation out = level_operation_of(Kind::alltoall, input, buffer, 100);
            LevelOperation in = level_operation_of(other.kind, input, buffer, other.bytes, other.number);
            cr_assert_eq(sender.post(out, {}), 0);
            Outgoing message;
            cr_assert(sender.poll_outgoing(message));
            if (!early) cr_assert_eq(receiver.post(in, {}), 0);
            receiver.on_message(letter(message), {});
            if (early) cr_assert_eq(receiver.post(in, {}), 0);
            receiver.progress({});
            cr_assert(in.done);
            cr_assert_eq(in.error, EMSGSIZE);
        }
}

// One member has no data to exchange, and is done before the other's block arrives.
Test(exchange_level, a_contradiction_with_nothing_open_is_a_failure) {
    std::vector<std::byte> input(400), buffer(400);
    for (const bool early : {false, true}) {
        ExchangeLevel sender = member(0), receiver = member(1);
        LevelOperation out = level_operation_of(Kind::alltoall, input, buffer, 100),
                       in = level_operation_of(Kind::alltoall, input, buffer, 0);
        cr_assert_eq(sender.post(out, {}), 0);
        Outgoing message;
        cr_assert(sender.poll_outgoing(message));
        if (early) receiver.on_message(letter(message), {});
        cr_assert_eq(receiver.post(in, {}), 0);
        receiver.progress({});
        cr_assert(in.done);
        if (!early) receiver.on_message(letter(message), {});
        receiver.progress({});
        cr_assert_eq(receiver.own_failure(), EMSGSIZE);
    }
}

// Unexpected pieces are kept up to the window, to its last byte, and no further: the window covers the pieces
// of all members together.
Test(exchange_level, unposted_pieces_are_bounded) {
    constexpr std::uint64_t kMiB = 1 << 20, kMembers = 65536;
    const struct {
        std::uint64_t members, window;
    } rows[] = {{2, kMiB},
                {32, kMiB},
                {33, 32 * kMiB / 33},
                {256, kMiB / 8},
                {257, 32 * kMiB / 257},
                {1024, kMiB / 32},
                {kMembers - 1, 512},
                {kMembers, 512},
                {kMembers + 1, 512}};
    for (const auto& row : rows) {
        const auto members = static_cast<std::uint32_t>(row.members);
        ExchangeLevel sender = member(1, members), receiver = member(0, members);
        std::vector<std::byte> input(2 << 20), buffer;
        LevelOperation out = level_operation_of(Kind::gather, input, buffer, input.size());
        cr_assert_eq(sender.post(out, {}), 0);
        std::uint64_t cost = 0;
        for (Outgoing message; sender.poll_outgoing(message);) {
            cost += cost_of(message.payload.size(), row.window);
            receiver.on_message(letter(message), {});
        }
        cr_assert_leq(cost, row.window);
        cr_assert_gt(cost, row.window / 2);
        cr_assert_eq(receiver.counters().bad_pieces, 0);
        cr_assert_not(out.done);
        // Empty pieces of the next operation, until the window is full.
        for (; cost + kPiece <= row.window; cost += kPiece)
            receiver.on_message(block_from(1, 1U << 28, 0, {}), {});
        cr_assert_eq(receiver.counters().bad_pieces, 0, "%u members", members);
        receiver.on_message(block_from(1, 1U << 28, 0, {}), {});
        cr_assert_eq(receiver.counters().bad_pieces, 1, "%u members", members);
    }
}

// For data beyond the window a member may borrow credit, and returns the credit with the data: the sum over
// all members never exceeds the windows and the borrowed credit. A member without borrowed credit still makes
// progress.
Test(exchange_level, borrowed_credit_is_bounded_and_returned) {
    constexpr std::uint32_t kMembers = 300, kWindow = 4096, kBlock = 40000;
    ExchangeConfig config;
    config.members = kMembers;
    config.memory_bytes = kMembers * kWindow;
    config.long_window_bytes = 16384;
    config.borrowed_credit_bytes = 100000;
    std::vector<ExchangeLevel> levels;
    levels.reserve(kMembers);
    for (config.self = 0; config.self < kMembers; ++config.self) levels.emplace_back(config);
    std::vector<std::byte> input(kBlock), buffer(kMembers * kBlock);
    std::vector<std::uint64_t> promised(kMembers, kWindow);  // and not sent yet
    std::uint64_t granted[kMembers] = {};
    std::mt19937_64 random(1);
    for (std::uint64_t operation = 0; operation < 3; ++operation) {
        std::vector<LevelOperation> level_operations(
            kMembers, level_operation_of(Kind::gather, input, buffer, kBlock, operation));
        for (std::uint32_t rank = 0; rank < kMembers; ++rank)
            cr_assert_eq(levels[rank].post(level_operations[rank], linear, {}), 0);
        std::uint64_t max = 0, longest = 0;
        while (!level_operations[0].done) {
            for (Outgoing message; levels[0].poll_outgoing(message);) {
                const std::uint64_t total = wire::decode(letter(message)).header.total;
                promised[message.to] += total - std::max<std::uint64_t>(granted[message.to], kWindow);
                granted[message.to] = total;
                levels[message.to].on_message(letter(message), {});
            }
            const std::uint64_t all = std::accumulate(promised.begin() + 1, promised.end(), std::uint64_t{0});
            cr_assert_leq(all, (kMembers - 1) * kWindow + config.borrowed_credit_bytes);
            max = std::max(max, all);
            longest = std::max(longest, *std::max_element(promised.begin(), promised.end()));
            const auto sender = static_cast<std::uint32_t>(1 + random() % (kMembers - 1));
            Outgoing message;
            for (auto pieces = random() % 3; pieces > 0 && levels[sender].poll_outgoing(message); --pieces) {
                promised[sender] -= cost_of(message.payload.size(), kWindow);
                levels[0].on_message(letter(message), {});
            }
            levels[0].progress({});
        }
        cr_assert_eq(longest, config.long_window_bytes);
        cr_assert_gt(max, (kMembers - 1) * kWindow + config.borrowed_credit_bytes - 16384, "all is borrowed");
        cr_assert_eq(levels[0].counters().bad_pieces, 0);
        for (std::uint32_t rank = 1; rank < kMembers; ++rank) cr_assert_leq(promised[rank], kWindow);
    }
}

// A member may leave after sending its share: no further message goes to this member.
Test(exchange_level, no_grant_to_a_member_that_has_sent_all) {
    ExchangeLevel root = member(0, 3), done = member(1, 3);
    const std::size_t bytes = 900 << 10;
    std::vector<std::byte> input(bytes), buffer(3 * bytes);
    LevelOperation out = level_operation_of(Kind::gather, input, buffer, bytes),
                   in = level_operation_of(Kind::gather, input, buffer, bytes);
    cr_assert_eq(root.post(in, {}), 0);
    cr_assert_eq(done.post(out, {}), 0);
    for (Outgoing message; done.poll_outgoing(message);) root.on_message(letter(message), {});
    done.progress({});
    root.progress({});
    cr_assert(out.done);
    cr_assert_not(in.done);
    cr_assert_not(root.needs(1));
    cr_assert(root.needs(2));
    Outgoing message;
    cr_assert_not(root.poll_outgoing(message));
    root.lose(1);
    cr_assert_not(root.needs(1));
}

// A member that has left is reported as lost when a message to it fails, even if no operation waits for it.
Test(exchange_level, a_lost_member_is_missed_when_something_is_sent_to_it) {
    ExchangeLevel root = member(0, 2);
    std::vector<std::byte> input(16), buffer(8);
    LevelOperation level_operation = level_operation_of(Kind::scatter, input, buffer, 8);
    root.lose(1);
    cr_assert_not(root.needs(1));
    cr_assert_eq(root.post(level_operation, {}), 0);
    Outgoing message;
    cr_assert(root.poll_outgoing(message));
    root.progress({});
    cr_assert(level_operation.done);
    cr_assert(root.needs(1));
}

Test(exchange_level, a_late_member_is_watched) {
    ExchangeLevel root = member(0, 3);
    std::vector<std::byte> input(8), buffer(24);
    LevelOperation level_operation = level_operation_of(Kind::gather, input, buffer, 8);
    cr_assert_eq(root.post(level_operation, {}), 0);
    root.progress({});
    std::uint32_t rank = 0;
    cr_assert_not(root.poll_watch(rank));
    const Nanoseconds deadline = root.next_deadline();
    cr_assert_neq(deadline, kNever);
    cr_assert_eq(root.awaited(), 1U);
    root.progress(deadline);
    cr_assert(root.poll_watch(rank));
    cr_assert(root.poll_watch(rank));
    cr_assert_not(root.poll_watch(rank));
    cr_assert_eq(root.next_deadline(), kNever);
    root.fail(ECONNRESET, {});
    cr_assert(level_operation.done);
    cr_assert_eq(level_operation.error, ECONNRESET);
    cr_assert_eq(root.post(level_operation, {}), ECONNRESET);
}

}  // namespace mcastcoll::levels
