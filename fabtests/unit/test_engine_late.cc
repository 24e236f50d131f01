// Large broadcasts that complete before some member has acknowledged all data: the caller continues, and a
// copy serves later repairs.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

constexpr std::uint32_t kBytes = 20'000;
constexpr Nanoseconds kLong = Nanoseconds::from_ms(5);  // many round trips

// Member 1 of 3, which answers the NAKs of member 2.
struct Supplying : Bench {
    explicit Supplying(const engine::GroupConfig& config = config_of(1, 3)) : Bench(config) { join(); }

    // Delivers the next broadcast of member 0, except for these fragments.
    void take(std::uint64_t operation, ByteString& buffer, std::vector<std::uint32_t> missing = {}) {
        cr_assert(broadcast(0, buffer).ok());
        for (std::uint32_t index = 0; index < engine.config().fragments(kBytes); ++index)
            if (std::ranges::count(missing, index) == 0) datagram(fragment(0, operation, index, message_));
        drain_messages();
    }
    // Takes all effects of the engine and counts the completions.
    void drain_messages() {
        for (const Out& out : drain()) completed += out.kind == Effect::Kind::complete;
    }
    std::size_t pass_by(Nanoseconds time) {
        completed += count(pass(time), Effect::Kind::complete);
        return completed;
    }
    Packet from_client(Kind kind, std::uint64_t operation = 0) const {
        Packet packet{
            .kind = kind, .sender = 2, .operation = operation, .payload = {}, .key = {}, .epoch = {}};
        packet.total = kBytes;
        return packet;
    }
    Packet nak(std::uint32_t fragment) const {
        Packet packet = from_client(Kind::nak);
        packet.fragment = fragment;
        packet.payload = {std::byte{1}};
        return packet;
    }

    std::size_t completed = 0;
    const ByteString message_ = content(kBytes);
};

}  // namespace

TestSuite(late, .timeout = 300);

Test(late, a_complete_member_goes_on_and_a_copy_serves_the_rest) {
    Supplying member;
    ByteString buffer(kBytes);
    member.take(0, buffer);
    cr_assert_eq(member.completed, 0U, "it waits for a moment");
    cr_assert_eq(member.pass_by(kLong), 1U);
    cr_assert(buffer == member.message_);
    std::ranges::fill(buffer, std::byte{0});  // the buffer belongs to the caller again
    member.message(member.nak(3));
    const auto answers = member.drain();
    cr_assert_eq(count(answers, Kind::data), 1U);
    const std::size_t size = member.engine.config().fragment_bytes;
    const auto from = member.message_.begin() + static_cast<std::ptrdiff_t>(3 * size);
    for (const Out& out : answers)
        if (out.header.kind == Kind::data)
            cr_assert(std::equal(from, from + static_cast<std::ptrdiff_t>(size), out.payload.begin()));
    member.message(member.from_client(Kind::done));
    cr_assert_eq(member.pass_by(kLong), 1U, "no member is informed twice");
    cr_assert_eq(member.engine.counters().finished_early, 1U);
}

Test(late, a_client_that_says_so_in_time_costs_no_copy) {
    Supplying member;
    ByteString buffer(kBytes);
    member.take(0, buffer);
    member.message(member.from_client(Kind::done));
    cr_assert_eq(member.pass_by(kLong), 1U);
    cr_assert_eq(member.engine.counters().finished_early, 0U);
}

Test(late, a_member_stays_for_naks) {
    Supplying member;
    ByteString buffer(kBytes);
    member.take(0, buffer);
    member.message(member.nak(3));
    cr_assert_eq(member.pass_by(kLong), 0U);
    member.message(member.from_client(Kind::done));
    cr_assert_eq(member.pass_by(kLong), 1U);
}

// After a loss all members wait for acknowledgements, because a NAK is likely and a member that has left
// cannot answer.
Test(late, after_a_loss_all_members_stay) {
    Supplying member;
    ByteString buffer(kBytes);
    member.take(0, buffer, {2});
    Packet repair = member.fragment(0, 0, 2, member.message_);
    repair.kind = Kind::data;
    member.message(repair);
    cr_assert_eq(member.pass_by(kLong), 1U, "the first loss is known at its end");
    ByteString second(kBytes);
    member.take(1, second);
    cr_assert_eq(member.pass_by(kLong), 1U);
    member.message(member.from_client(Kind::done, 1));
    cr_assert_eq(member.pass_by(kLong), 2U);
}

Test(late, copies_are_few_and_come_back) {
    auto config = config_of(1, 3);
    config.late_copies = 2;
    Supplying member(config);
    std::vector<ByteString> buffers(4, ByteString(kBytes));
    for (std::uint64_t i = 0; i < 3; ++i) member.take(i, buffers[i]);
    cr_assert_eq(member.pass_by(kLong), 2U, "the third has to wait");
    for (std::uint64_t i = 0; i < 3; ++i) member.message(member.from_client(Kind::done, i));
    cr_assert_eq(member.pass_by(kLong), 3U);
    member.take(3, buffers[3]);
    cr_assert_eq(member.pass_by(kLong), 4U);
}

Test(late, what_is_longer_than_a_copy_is_waited_for) {
    for (const std::uint32_t room : {kBytes - 1, kBytes}) {
        auto config = config_of(1, 3);
        config.late_bytes = room;
        Supplying member(config);
        ByteString buffer(kBytes);
        member.take(0, buffer);
        cr_assert_eq(member.pass_by(kLong), room < kBytes ? 0U : 1U);
    }
}

Test(late, a_root_goes_on_when_all_is_sent) {
    for (const Nanoseconds round_trip : {Nanoseconds::from_us(200), Nanoseconds{}}) {
        auto config = config_of(0, 3);
        config.initial_rtt = round_trip;
        Bench root(config);
        root.join();
        ByteString buffer = content(kBytes);
        cr_assert(root.broadcast(0, buffer).ok());
        root.drain({.multicast = false, .message = true});
        for (int i = 0; i < 50; ++i) {  // the socket is full
            root.now = std::max(root.now, root.engine.next_deadline());
            root.engine.on_timeout(root.now);
            cr_assert_gt(root.engine.next_deadline().value, root.now.value, "it comes to rest");
            const auto out = root.drain({.multicast = false, .message = true});
            cr_assert_eq(count(out, Effect::Kind::complete), 0U);
        }
        const auto sent = root.drain();
        cr_assert_eq(count(sent, Kind::fragment), config.fragments(kBytes));
        cr_assert_eq(count(root.pass(kLong), Effect::Kind::complete), 1U);
        cr_assert_eq(root.engine.counters().finished_early, 1U);
    }
}

Test(late, a_failure_afterwards_is_not_of_this_broadcast) {
    Supplying member;
    ByteString buffer(kBytes);
    member.take(0, buffer);
    cr_assert_eq(member.pass_by(kLong), 1U);
    member.engine.on_peer_lost(rank_of(2), ECONNRESET, member.now);
    const auto out = member.drain();
    cr_assert_eq(count(out, Effect::Kind::failed), 1U);
    cr_assert_eq(count(out, Effect::Kind::complete), 0U);
}

// The death of the awaited member costs the closed member nothing.
Test(late, a_closed_member_stays_until_no_member_needs_it) {
    for (const bool dies : {false, true}) {
        Supplying member;
        ByteString buffer(kBytes);
        member.take(0, buffer);
        cr_assert_eq(member.pass_by(kLong), 1U);
        member.engine.close(member.now);
        cr_assert_eq(count(member.pass(kLong), Kind::leave_up), 0U);
        if (dies)
            member.engine.on_peer_lost(rank_of(2), ECONNRESET, member.now);
        else
            member.message(member.from_client(Kind::done));
        const auto out = member.pass(kLong);
        cr_assert_eq(count(out, Effect::Kind::failed), 0U);
        cr_assert_eq(count(out, Kind::leave_up), dies ? 0U : 1U);
    }
}
