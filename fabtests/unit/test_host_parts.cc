// The parts of a host::Team, each by itself: no clock, and the other members exist only as their data in
// memory.
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "host/backoff.h"
#include "host/collectives.h"
#include "host/failure_detector.h"
#include "host/team.h"
#include "host_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::host;

namespace {

constexpr Nanoseconds ms(std::int64_t count) {
    return Nanoseconds::from_ms(count);
}

// Returns the number of turns until the first turn that yields, or that checks the other members; at most
// 1000.
int turns_until(Backoff& backoff, bool Backoff::Turn::*does) {
    for (int turn = 1; turn <= 1000; ++turn)
        if (backoff.next().*does) return turn;
    return 1001;
}

// A team's memory, and every member's view of it.
class Board {
  public:
    Board(std::uint32_t members, std::uint32_t slots, std::uint32_t slot_bytes) {
        const Shape shape{members, slots, slot_bytes};
        const std::size_t bytes = Rings::bytes_for(shape);
        memory_.reset(std::aligned_alloc(4096, bytes));
        std::memset(memory_.get(), 0, bytes);
        auto& header = *static_cast<Header*>(memory_.get());
        header.size = members;
        header.slots = slots;
        header.slot_bytes = slot_bytes;
        for (std::uint32_t self = 0; self < members; ++self) {
            views_.push_back(std::make_unique<Context>(header, shape, self));
            views_.back()->rings.enter();
            views_.back()->bounds.share_from = slot_bytes + 1;
        }
    }
    Context& operator[](std::uint32_t member) { return *views_[member]; }

  private:
    std::unique_ptr<void, decltype(&std::free)> memory_{nullptr, &std::free};
    std::vector<std::unique_ptr<Context>> views_;
};

}  // namespace

Test(host_parts, what_is_open_keeps_its_order_and_its_bound) {
    Ring<Operation*> open(Team::kMaxOpen);
    std::vector<Operation> operations(3 * Team::kMaxOpen);
    std::size_t added = 0, taken = 0;
    for (int round = 0; round < 4; ++round) {
        while (open.push(&operations[added])) ++added;
        cr_assert_eq(added - taken, Team::kMaxOpen);
        for (int i = 0; i < 50; ++i, open.pop()) cr_assert_eq(open.front(), &operations[taken++]);
    }
    for (; !open.empty(); open.pop()) cr_assert_eq(open.front(), &operations[taken++]);
    cr_assert_eq(taken, added);
}

Test(host_parts, the_clock_is_read_after_sixteen_polls_or_a_pause) {
    FailureDetector detector;
    for (int poll = 1; poll < 16; ++poll) cr_assert_eq(detector.on_idle(), false, "poll %d", poll);
    cr_assert(detector.on_idle());
    detector.is_due(ms(1));
    cr_assert_eq(detector.on_idle(), false);
    detector.expect_pause();
    cr_assert(detector.on_idle());
    cr_assert(detector.on_idle(), "until the clock was read");
    detector.is_due(ms(2));
    cr_assert_eq(detector.on_idle(), false);
    detector.on_progress();
    for (int poll = 1; poll < 16; ++poll) cr_assert_eq(detector.on_idle(), false, "counted anew");
}

Test(host_parts, a_member_silent_for_50_ms_is_examined) {
    FailureDetector detector;
    const struct {
        std::int64_t at_ms;
        bool moves_before, due;
    } table[] = {{1000, false, false},  // the first call only records the time
                 {1049, false, false}, {1050, false, true},  {1051, false, false}, {1100, false, true},
                 {1140, true, false},  {1189, false, false}, {1190, false, true},  {9000, false, true},
                 {9001, true, false},  {9050, true, false},  {9099, false, false}, {9100, false, true}};
    for (const auto& row : table) {
        if (row.moves_before) detector.on_progress();
        cr_assert_eq(detector.is_due(ms(row.at_ms)), row.due, "at %ld ms", static_cast<long>(row.at_ms));
    }
}

Test(host_parts, deadlines_are_a_quarter_of_the_silence) {
    FailureDetector detector;
    cr_assert_eq(detector.next_deadline(ms(7)).value, ms(7).value, "at once, to learn since when");
    cr_assert(detector.on_idle(), "and by the clock");
    detector.is_due(ms(10));
    cr_assert_eq((detector.next_deadline(ms(10)) - ms(10)).value, 20'000);
    cr_assert_eq((detector.next_deadline(ms(11)) - ms(11)).value, 250'000);
    cr_assert_eq((detector.next_deadline(ms(99)) - ms(99)).value, 1'000'000);
    detector.on_progress();
    cr_assert_eq(detector.next_deadline(ms(100)).value, ms(100).value);
}

Test(host_parts, with_a_core_each_members_spin_then_yield_then_sleep) {
    Backoff backoff;
    backoff.use(false);
    cr_assert_eq(backoff.looks(), 64);
    cr_assert_eq(turns_until(backoff, &Backoff::Turn::yields), 1001);
    backoff.on_progress();
    cr_assert_eq(turns_until(backoff, &Backoff::Turn::looks_around), 64);
    const struct {
        std::int64_t at_us, nap_us;
        bool then_yields;
    } table[] = {{5000, 0, false}, {6000, 0, false}, {6001, 0, true}, {24'999, 0, true}, {25'000, 500, true}};
    for (const auto& row : table) {
        const Nanoseconds nap = backoff.nap(Nanoseconds::from_us(row.at_us));
        cr_assert_eq(nap.value, row.nap_us * 1000, "at %ld us", static_cast<long>(row.at_us));
        cr_assert_eq(backoff.next().yields, row.then_yields, "at %ld us", static_cast<long>(row.at_us));
    }
    backoff.on_other_progress();
    cr_assert_eq(backoff.next().yields, false, "the caller's work counts as progress");
    cr_assert_eq(backoff.nap(ms(100)).value, 0);
}

Test(host_parts, sleeps_double_up_to_10_ms_and_begin_anew) {
    Backoff backoff;
    backoff.use(true);
    cr_assert_eq(backoff.looks(), 1);
    cr_assert_eq(turns_until(backoff, &Backoff::Turn::yields), 1);
    cr_assert_leq(turns_until(backoff, &Backoff::Turn::looks_around), 4);
    Nanoseconds now = ms(1);
    cr_assert_eq(backoff.nap(now).value, 0);
    now = ms(2);
    for (const std::int64_t us : {500, 2000, 8000, 10'000, 10'000}) {
        const Nanoseconds nap = backoff.nap(now);
        cr_assert_eq(nap.value, us * 1000);
        now = now + nap;
        backoff.on_woken(now, false);
        cr_assert_gt(backoff.nap(now).value, 0, "no ring: sleeps on");
        backoff.on_woken(now, true);
        cr_assert_eq(backoff.nap(now + Nanoseconds::from_us(99)).value, 0, "woken in vain, looks for 100 us");
        now = now + Nanoseconds::from_us(100);
    }
    backoff.on_progress();
    cr_assert_eq(turns_until(backoff, &Backoff::Turn::yields), 1);
    cr_assert_eq(backoff.nap(now).value, 0);
    cr_assert_eq(backoff.nap(now + ms(1)).value, 500'000);
}

Test(host_parts, a_process_on_a_shared_core_yields_and_moves_on_ever_more_rarely) {
    Backoff backoff;
    backoff.use(false);
    cr_assert_eq(backoff.next().yields, false);
    for (const int looks : {64, 128, 256}) {
        for (int look = 1; look < looks; ++look) cr_assert_eq(backoff.on_core(true), false, "look %d", look);
        cr_assert(backoff.on_core(true));
    }
    cr_assert(backoff.next().yields);
    cr_assert_eq(backoff.looks(), 1);
    backoff.on_progress();
    cr_assert_eq(backoff.next().yields, false, "forgotten when something has come");
    cr_assert_leq(turns_until(backoff, &Backoff::Turn::looks_around), 3, "but looked at soon");
    cr_assert_eq(turns_until(backoff, &Backoff::Turn::looks_around), 60, "once");
    for (int look = 1; look < 511; ++look) cr_assert_eq(backoff.on_core(true), false);
    cr_assert_eq(backoff.on_core(false), false);
    cr_assert_eq(backoff.on_core(true), false, "not in a row");
}

Test(host_parts, a_ring_is_written_until_a_reader_falls_behind) {
    Board board(3, 4, 128);
    Rings &own = board[0].rings, &second = board[1].rings, &third = board[2].rings;
    for (const bool in_line : {true, false}) {
        const Step ring = in_line ? kLines : 4;
        cr_assert(own.may_write(ring, in_line), "a whole ring ahead of the first step, 1");
        cr_assert_eq(own.may_write(ring + 1, in_line), false);
    }
    own.leave(1);
    second.leave(1);
    cr_assert_eq(own.may_write_slot(5), false);
    cr_assert_eq(own.awaited(), 2, "the one that is behind");
    third.leave(1);
    cr_assert(own.may_write_slot(5));
    cr_assert_eq(own.may_write_slot(6), false);
    own.all_are_in(7);
    own.all_are_in(3);
    cr_assert(own.may_write_slot(10), "who is in step 7 has left 6, and that stays");
    cr_assert_eq(own.has_left(1, 1), true);
    cr_assert_eq(own.has_left(1, 2), false);
    cr_assert_eq(own.awaited(), 1);
}

// A waiter polls a single member, and its last reading of each other member is a lower bound, however old. Up
// to 64 members, every member waits for all members; in larger groups the first member waits for all, and the
// rest for the first.
Test(host_parts, of_many_members_the_first_one_meets_all) {
    const auto add = test::add;
    for (const std::uint32_t members : {kMaxFlat - 1, kMaxFlat, kMaxFlat + 1, 2 * kMaxFlat})
        for (const std::size_t bytes : {0UL, 8UL, 112UL, 120UL, 2000UL}) {
            Board board(members, 4, 512);
            std::vector<std::vector<std::uint64_t>> data(members);
            std::vector<Operation> operations(members);
            std::vector<bool> over(members);
            for (int round = 0; round < 9; ++round) {
                for (std::uint32_t self = 0; self < members; ++self) {
                    data[self].assign(250, self + 1);
                    auto* buffer = reinterpret_cast<std::byte*>(data[self].data());
                    operations[self] = {.kind = bytes == 0 ? Kind::barrier : Kind::allreduce,
                                        .buffer = buffer,
                                        .input = buffer,
                                        .bytes = bytes,
                                        .combiner = {add, 8}};
                    over[self] = false;
                }
                const auto turn = [&](std::uint32_t self) {
                    if (!over[self]) over[self] = advance(board[self], operations[self]) == Advance::finished;
                };
                for (std::uint32_t self = 0; self + 1 < members; ++self) turn(self);
                for (std::uint32_t self = 0; self < members; ++self) cr_assert(!over[self]);
                const bool through_first = members > kMaxFlat && bytes <= 512;
                if (bytes <= 512) {
                    turn(1);
                    cr_assert_eq(board[1].rings.awaited(), through_first ? 0 : members - 1);
                    turn(0);
                    cr_assert_eq(board[0].rings.awaited(), members - 1);
                }
                for (int turns = 0; turns < 100; ++turns)
                    for (std::uint32_t self = members; self-- > 0;) turn(self);
                for (std::uint32_t self = 0; self < members; ++self) {
                    cr_assert(over[self], "%u members, %zu bytes, member %u", members, bytes, self);
                    const std::uint64_t sum = bytes == 0 ? self + 1 : members * (members + 1UL) / 2;
                    for (std::size_t i = 0; i < 250; ++i)
                        cr_assert_eq(data[self][i], i < bytes / 8 ? sum : self + 1);
                }
                cr_assert_eq(board[0].rings.failure(), 0);
            }
        }
}

// A block of 512 bytes has eight lines: of nine members one has none to combine.
Test(host_parts, a_member_without_a_share_does_not_wait_for_the_combination) {
    Board board(9, 2, 512);
    std::vector<std::uint64_t> data(64, 1);
    auto* buffer = reinterpret_cast<std::byte*>(data.data());
    for (const std::uint32_t member : {0U, 1U}) {
        Operation operation{.kind = Kind::allreduce, .buffer = buffer, .input = buffer, .bytes = 512};
        operation.combiner = {[](void*, const void*, const void*, std::size_t) {}, 8};
        board[member].bounds.share_from = 1;
        cr_assert(advance(board[member], operation) == Advance::moved);
        const bool done = Word::final(board[member].rings.look(member, 1, Kind::allreduce));
        cr_assert_eq(done, member == 0);
    }
}

namespace {

// A root's announcement of a broadcast: in the word, and beside the word.
struct Said {
    std::uint64_t count, extent;
};

// Publishes the announcements one after the other to member 1, which has room for this many bytes; returns
// the resulting failure of the team.
int failure_after(Board& board, std::size_t bytes, std::initializer_list<Said> said) {
    std::vector<std::byte> sent(bytes), received(bytes);
    const std::uint64_t nonce = 1;
    MemberRecord& record = board[1].rings.record(0);
    record.pid = static_cast<std::uint32_t>(::getpid());
    record.nonce = nonce;
    record.nonce_address = reinterpret_cast<std::uintptr_t>(&nonce);
    Operation operation{.kind = Kind::broadcast, .buffer = received.data(), .bytes = bytes};
    for (const Said& one : said) {
        const Offer offer{reinterpret_cast<std::uintptr_t>(sent.data()), bytes};
        std::memcpy(board[0].rings.line(0, 1).payload.data(), &offer, sizeof offer);
        board[0].rings.publish(1, Kind::broadcast, true, one.count, one.extent);
        (void)advance(board[1], operation);
        cr_assert_leq(operation.arrived, bytes);
    }
    return board[1].rings.failure();
}

}  // namespace

Test(host_parts, what_has_arrived_of_a_broadcast_never_becomes_less) {
    for (const bool less : {false, true}) {
        Board through_slots(2, 2, 256), straight(2, 2, 256);
        cr_assert_eq(failure_after(through_slots, 300, {{200, 300}, {less ? 100U : 250U, 300}}),
                     less ? EMSGSIZE : 0);
        straight[1].bounds.single_copy_from = kInlineBytes + 1;
        cr_assert_eq(failure_after(straight, 300, {{0, 200}, {0, less ? 100U : 250U}}), less ? EMSGSIZE : 0);
    }
}

Test(host_parts, whatever_is_agreed_on_what_goes_through_one_slot_fits_in_it) {
    for (const std::uint64_t from : {UINT64_C(0), UINT64_C(1), UINT64_C(300), UINT64_MAX})
        for (const std::uint32_t shares : {0U, 1U}) {
            Agreement agreement{};
            agreement.reduce_by_shares = shares;
            agreement.thresholds.share_from = from;
            const Bounds bounds = bounds_of(agreement, 3, 256);
            cr_assert_leq(bounds.reduce_whole, 256);
            cr_assert_leq(bounds.share_from, 257);
        }
}

Test(host_parts, an_address_that_is_none_ends_a_copy_and_no_process) {
    const std::uint64_t nonce = 1;
    const RemoteMemory own{static_cast<std::uint32_t>(::getpid()), reinterpret_cast<std::uintptr_t>(&nonce),
                           nonce};
    std::array<std::byte, 8> bytes{};
    cr_assert_eq(copy_from(own, reinterpret_cast<std::uintptr_t>(&nonce), bytes.data(), bytes.size()), 0);
    cr_assert_eq(copy_from(own, 8, bytes.data(), bytes.size()), EFAULT);
    cr_assert_eq(copy_to(own, 8, bytes.data(), bytes.size()), EFAULT);
    const RemoteMemory other{own.pid, own.nonce_address, nonce + 1};
    cr_assert_eq(copy_from(other, own.nonce_address, bytes.data(), bytes.size()), ESRCH);
}

Test(host_parts, places_are_free_when_the_last_member_has_left) {
    Board board(4, 4, 128);
    Rings& own = board[0].rings;
    own.leave(1);
    for (const std::uint32_t behind : {1U, 2U, 3U}) {
        for (int look = 0; look < 2; ++look) {
            cr_assert_eq(own.may_write_slot(5), false);
            cr_assert_eq(own.awaited(), behind);
        }
        board[behind].rings.leave(behind == 3 ? 9 : 1);
    }
    cr_assert(own.may_write_slot(5));
    cr_assert_eq(own.may_write_slot(6), false, "the others have left step 1 only");
    for (const std::uint32_t member : {0U, 1U, 2U}) board[member].rings.leave(9);
    cr_assert(own.may_write_slot(13));
    cr_assert_eq(own.may_write_slot(14), false);
    // While this member waits for a slot of step 14, it also needs a line far ahead.
    own.leave(10);
    cr_assert_eq(own.may_write_slot(14), false);
    cr_assert_eq(own.awaited(), 1);
    cr_assert_eq(own.may_write_line(50), false);
    cr_assert_eq(own.awaited(), 0);
    for (const std::uint32_t member : {0U, 1U, 2U}) board[member].rings.leave(18);
    cr_assert_eq(own.may_write_line(50), false);
    cr_assert_eq(own.awaited(), 3);
    board[3].rings.leave(17);
    cr_assert_eq(own.may_write_line(50), false);
    board[3].rings.leave(18);
    cr_assert(own.may_write_line(50));
}

Test(host_parts, only_waiters_for_a_member_are_woken_by_it) {
    Board board(3, 4, 128);
    Alarm& alarm = board[0].rings.alarm;
    const auto is_woken = [&](auto&& publish) {
        const Nap nap = alarm.prepare_sleep(1);
        publish();
        const bool rung = Alarm::sleep(nap, ms(1));
        Alarm::end_sleep(nap);
        return rung;
    };
    cr_assert_eq(is_woken([] {}), false);
    cr_assert_eq(is_woken([&] { board[2].rings.publish(1, Kind::barrier, true, 0); }), false);
    cr_assert_eq(is_woken([&] { board[2].rings.leave(1); }), false);
    cr_assert(is_woken([&] { board[1].rings.publish(1, Kind::barrier, true, 0); }));
    cr_assert(is_woken([&] { board[1].rings.leave(1); }));
    cr_assert(is_woken([&] { board[2].rings.alarm.ring_all(); }));
    cr_assert(is_woken([&] { board[2].rings.alarm.fail(EIO); }));
}

Test(host_parts, what_is_looked_at_is_of_the_step_kind_and_length) {
    const struct {
        Step step;
        Kind kind;
        std::uint64_t extent;
        bool found;
        int failure;
    } table[] = {{5, Kind::gather, 100, true, 0},
                 {6, Kind::gather, 100, false, 0},
                 {5 + kLines, Kind::gather, 100, false, 0},  // uses the same line again
                 {5, Kind::scatter, 100, false, EMSGSIZE},
                 {5, Kind::gather, 101, false, EMSGSIZE}};
    for (const auto& row : table) {
        Board board(2, 2, 128);
        board[1].rings.publish(5, Kind::gather, true, 7, 100);
        const std::uint64_t word = board[0].rings.look(1, row.step, row.kind, row.extent);
        cr_assert_eq(word != 0, row.found);
        if (row.found) cr_assert(Word::count(word) == 7 && Word::final(word));
        cr_assert_eq(board[0].rings.failure(), row.failure);
        cr_assert_eq(board[1].rings.failure(), row.failure, "every member gets the error");
        if (!row.found && row.failure == 0) cr_assert_eq(board[0].rings.awaited(), 1);
    }
}

Test(host_parts, leaders_are_chosen_where_they_read_less) {
    using Ids = Clusters::Ids;
    const struct {
        std::vector<Ids> ids;
        std::uint32_t members;
        Ids leader_of;
    } table[] = {
        {{}, 3, {0, 1, 2}},
        {{{0}, {0}, {1}, {1}}, 4, {0, 1, 2, 3}},  // two lines and two leaders cost as much as four lines
        {{{0}, {1}, {0}, {1}, {0}, {1}}, 6, {0, 1, 0, 1, 0, 1}},
        {{{0, 0}, {0, 1}, {0, 0}, {0, 1}, {0, 0}, {0, 1}}, 6, {0, 1, 0, 1, 0, 1}},  // the inner level
        {{{0}, {0}, {0}, {0}, {0}, {0}}, 6, {0, 1, 2, 3, 4, 5}}};
    for (const auto& row : table)
        cr_assert(Clusters::choose_leaders(row.ids, row.members) == row.leader_of, "%zu members",
                  row.ids.size());
    const Clusters first = Clusters::of(0, {0, 1, 0, 1, 0}), last = Clusters::of(4, {0, 1, 0, 1, 0});
    cr_assert(first.leads && first.led == Ids({2, 4}) && first.leaders == Ids({0, 1}));
    cr_assert(!last.leads && last.led.empty() && last.leaders == Ids({0, 1}));
    cr_assert(Clusters::of(1, {0, 1, 2}).leaders.empty(), "flat");
}

Test(host_parts, bounds_keep_what_a_line_and_a_slot_hold) {
    Agreement agreement{};
    agreement.thresholds = {.single_copy_from = 1,
                            .both_copy_from = 50'000,
                            .share_from = 1'000'000,
                            .blocks_direct_from = 80'000,
                            .reduce_direct_from = 90'000};
    Bounds bounds = bounds_of(agreement, 2, 4096);
    cr_assert_eq(bounds.single_copy_from, SIZE_MAX, "the kernel does not let us");
    cr_assert_eq(bounds.from(Kind::alltoall), SIZE_MAX);
    cr_assert_eq(bounds.share_from, 4097UL);
    cr_assert_eq(bounds.reduce_whole, 4096UL);
    agreement.single_copy = agreement.reduce_by_shares = agreement.crowded = 1;
    agreement.thresholds.share_from = 100;
    bounds = bounds_of(agreement, 2, 4096);
    cr_assert(bounds.crowded);
    cr_assert_eq(bounds.single_copy_from, kInlineBytes + 1);
    cr_assert_eq(bounds.both_copy_from, 50'000UL);
    cr_assert_eq(bounds.reduce_whole, 99UL);
    cr_assert_eq(bounds.from(Kind::scatter), 80'000UL);
    cr_assert_eq(bounds.from(Kind::gather), 80'000UL);
    cr_assert_eq(bounds.from(Kind::allreduce), 90'000UL);
    for (const Kind kind : {Kind::broadcast, Kind::barrier, Kind::reduce})
        cr_assert_eq(bounds.from(kind), SIZE_MAX, "they go other ways");
    cr_assert_eq(bounds_of(agreement, 3, 4096).both_copy_from, SIZE_MAX, "only two");
    cr_assert_eq(bounds_of(agreement, 1, 4096).from(Kind::allreduce), SIZE_MAX, "no member to copy from");
}

Test(host_parts, a_death_while_its_memory_is_read_is_a_loss_for_all) {
    Board board(2, 2, 128);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    board[0].rings.record(1).pid = static_cast<std::uint32_t>(child);
    cr_assert_eq(board[0].memories.can_read_all(0, 2), false);
    std::uint64_t from = 1, to = 2;
    cr_assert_eq(board[0].memories.read(1, reinterpret_cast<std::uintptr_t>(&from),
                                        reinterpret_cast<std::byte*>(&to), sizeof to),
                 false);
    cr_assert_eq(board[1].rings.failure(), ECONNRESET);
    cr_assert_eq(board[1].rings.alarm.lost(), 1);
}

Test(host_parts, a_member_of_another_host_that_is_lost_is_named_to_all) {
    Board board(2, 2, 128);
    cr_assert_eq(board[1].rings.alarm.lost_elsewhere(), Alarm::kNoMember);
    board[0].rings.alarm.name_lost_elsewhere(7);
    cr_assert_eq(board[1].rings.alarm.lost_elsewhere(), 7);
    cr_assert_eq(board[1].rings.failure(), 0, "that is for fail() to do");
}

Test(host_parts, members_with_equal_credentials_try_few_memories) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    const struct {
        std::uint64_t credentials, of_first;  // 0: not published
        std::uint32_t away;  // the member with unreadable memory; 0: all memories are readable
        bool can;
    } table[] = {{7, 7, 0, true},   {7, 7, 1, false}, {7, 7, 2, false}, {7, 7, 3, true},
                 {7, 7, 64, false}, {7, 7, 65, true}, {0, 0, 0, true},  {0, 0, 3, false},
                 {0, 0, 99, false}, {7, 8, 0, false}, {0, 8, 0, false}, {7, 0, 0, false}};
    for (const auto& row : table) {
        Board board(100, 2, 128);
        const std::uint64_t nonce = 0;  // as in an unused MemberRecord
        for (std::uint32_t member = 0; member < 100; ++member) {
            MemberRecord& record = board[0].rings.record(member);
            record.nonce_address = reinterpret_cast<std::uintptr_t>(&nonce);
            record.pid = static_cast<std::uint32_t>(
                member == (50 + row.away) % 100 && row.away > 0 ? child : ::getpid());
            record.credentials = member == 0 ? row.of_first : row.credentials;
        }
        cr_assert_eq(board[50].memories.can_read_all(50, 100), row.can, "%lu of %lu, %u away",
                     row.credentials, row.of_first, row.away);
    }
    const std::uint64_t own = own_credentials();
    cr_assert_eq(own_credentials(), own);
    if (own == 0 || ::geteuid() != 0) return;
    const pid_t other = ::fork();
    if (other == 0) {
        if (::setresgid(65'534, 65'534, 65'534) != 0) ::_exit(1);
        const std::uint64_t group_differs = own_credentials();
        ::_exit(group_differs != own ? 0 : 2);
    }
    int status = 0;
    ::waitpid(other, &status, 0);
    cr_assert_eq(status, 0, "another group is other credentials");
}

// Between two pieces of a message only the root's death matters, whichever member was waited for before.
Test(host_parts, a_member_with_part_of_a_broadcast_awaits_the_root) {
    Board board(3, 2, 128);
    std::vector<std::byte> sent(1000, std::byte{7}), got(1000);
    Operation out{.kind = Kind::broadcast, .root = 1, .buffer = sent.data(), .bytes = sent.size()};
    Operation in{.kind = Kind::broadcast, .root = 1, .buffer = got.data(), .bytes = got.size()};
    out.ready = 200;
    cr_assert(advance(board[1], out) == Advance::moved);
    cr_assert(advance(board[1], out) == Advance::idle);
    cr_assert(advance(board[0], in) == Advance::moved);
    cr_assert_eq(in.arrived, 200);
    cr_assert_eq(got[199], std::byte{7});
    board[0].rings.await(2);
    cr_assert(advance(board[0], in) == Advance::idle);
    cr_assert_eq(board[0].rings.awaited(), 1);
}

// Members take turns in one thread; each turn continues as far as possible.
Test(host_parts, every_kind_ends_in_any_order_of_arrival) {
    const auto add = test::add;
    for (const std::uint32_t first : {0U, 1U, 2U})
        for (const std::size_t bytes : {8UL, 120UL, 2000UL}) {
            Board board(3, 2, 128);
            std::uint64_t ended = 0;
            for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
                std::vector<std::vector<std::uint64_t>> in(3, std::vector<std::uint64_t>(750, 1)), out = in;
                std::vector<Operation> operations(3);
                for (std::uint32_t self = 0; self < 3; ++self) {
                    Operation& operation = operations[self];
                    operation.kind = static_cast<Kind>(kind);
                    operation.root = 2;
                    operation.buffer = reinterpret_cast<std::byte*>(out[self].data());
                    operation.input = reinterpret_cast<const std::byte*>(in[self].data());
                    operation.bytes = operation.ready = operation.kind == Kind::barrier ? 0 : bytes;
                    operation.combiner = {add, 8};
                }
                bool over[3] = {};
                for (std::uint32_t turn = 0; turn < 3000; ++turn) {
                    const std::uint32_t self = (first + turn) % 3;
                    if (!over[self]) over[self] = advance(board[self], operations[self]) == Advance::finished;
                }
                for (std::uint32_t self = 0; self < 3; ++self)
                    cr_assert(over[self], "kind %zu, %zu bytes, member %u", kind, bytes, self);
                cr_assert(board[0].step == board[1].step && board[1].step == board[2].step, "one clock");
                const bool sums = is_reduction(static_cast<Kind>(kind));
                // With one element, reduce_scatter gives the last member none.
                const std::size_t who = static_cast<Kind>(kind) == Kind::reduce_scatter ? 0 : 2;
                cr_assert_eq(out[who][0], sums ? 3UL : 1UL, "kind %zu", kind);
                cr_assert_eq(board[0].rings.failure(), 0);
                ended = board[0].step;
            }
            cr_assert_geq(ended, kCollectiveKinds);
        }
}
