// The addresses of a group's members: each address is resolved at the first message to the member.
#include <criterion/criterion.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "group/group.h"

using namespace mcastcoll;
using namespace mcastcoll::group;
using PeerList = std::vector<Outbox::Peer>;

namespace {

// An endpoint that resolves an address to its first byte, and cannot resolve an empty address.
struct Endpoint final : JoinPort {
    wire::Hello own_hello() const override { return {}; }
    void send_hello(Rank, std::uint32_t, Bytes) override {}
    void send(Rank, std::uint32_t, Bytes) override {}
    const wire::Hello* miscounted_hello(Rank) override { return nullptr; }
    RoundTrips& round_trips() override { return measured; }
    RoundTrips measured;
    Result<Outbox::Peer> peer(const wire::ByteString& address) override {
        ++inserts;
        if (address.empty()) return Error{EADDRNOTAVAIL, "nowhere"};
        return static_cast<Outbox::Peer>(address.front());
    }
    void queue_message(std::vector<Outbox::Peer>, wire::ByteString) override {}
    void withdraw() override {}
    void explain(std::string_view) override {}
    unsigned inserts = 0;
};

std::vector<std::byte> laid_out(const wire::Welcome& welcome) {
    return MemberTable::lay_out(welcome, levels::Places::lay_out(places_in(make_map(welcome))));
}

MemberTable members_at(std::initializer_list<int> addresses) {
    wire::Welcome welcome;
    for (const int address : addresses) {
        wire::Peer& peer = welcome.peers.emplace_back();
        if (address != 0) peer.private_address = {static_cast<std::byte>(address)};
        peer.watch_point.assign(static_cast<std::size_t>(address), std::byte{1});
        welcome.sequences.push_back(static_cast<std::uint32_t>(address));
    }
    return MemberTable::own(laid_out(welcome));
}

}  // namespace

Test(roster, inserts_the_address_of_addressed_members) {
    Endpoint endpoint;
    Roster roster;
    roster.fill(members_at({7, 8, 9, 8}), rank_of(2));
    cr_assert_eq(roster.size(), 4U);
    cr_assert_eq(endpoint.inserts, 0U);
    cr_assert(roster.ranks_at(8).empty(), "no member has sent to them");
    cr_assert(roster.peer(1, endpoint) == Outbox::Peer{8} && roster.peer(1, endpoint) == Outbox::Peer{8});
    cr_assert_eq(endpoint.inserts, 1U, "once");
    cr_assert(roster.ranks_at(8) == std::vector<Rank>{rank_of(1)});
    cr_assert(roster.peers_of(std::vector<std::uint32_t>{3, 0}, endpoint) == (PeerList{8, 7}));
    cr_assert(roster.ranks_at(8) == (std::vector<Rank>{rank_of(1), rank_of(3)}),
              "several may be at one place");
    cr_assert_not(roster.peer(2, endpoint), "itself");
    cr_assert(roster.ranks_at(9).empty(), "no member is lost to itself");
    cr_assert_eq(endpoint.inserts, 3U);
    cr_assert_not(roster.has_unreached());
}

Test(roster, keeps_every_members_place) {
    Roster roster;
    roster.fill(members_at({7, 0, 9}), rank_of(0));
    cr_assert(roster.address(0) == wire::ByteString{std::byte{7}});
    cr_assert(roster.address(1).empty() && roster.watch_point(1).empty());
    cr_assert(roster.address(2) == wire::ByteString{std::byte{9}});
    cr_assert_eq(roster.watch_point(0).size(), 7U);
    cr_assert_eq(roster.watch_point(2).size(), 9U);
}

// The table that the leader has written to shared memory may be corrupt.
Test(roster, a_table_that_is_spoilt_is_none) {
    wire::Welcome welcome;
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
        welcome.peers.push_back({{std::byte{7}}, {}, wire::ByteString(rank), {}});
        welcome.sequences.push_back(rank * 7);
    }
    const std::vector<std::byte> good = laid_out(welcome);
    const auto table = MemberTable::view({nullptr, good});
    cr_assert(table && table->size() == 5 && table->sequence(4) == 28 && table->watch_point(3).size() == 3);
    for (std::size_t length = 0; length < good.size(); ++length)
        cr_assert(!MemberTable::view({nullptr, Bytes(good).first(length)}), "%zu", length);
    for (std::size_t at = 0; at < good.size(); ++at)
        for (const std::byte value : {std::byte{1}, std::byte{0x7f}, std::byte{0xff}}) {
            std::vector<std::byte> bad = good;
            bad[at] ^= value;
            const auto read = MemberTable::view({nullptr, bad});
            for (std::uint32_t rank = 0; read && rank < read->size(); ++rank) {
                const levels::Placement placement(rank, read->places());
                cr_assert_leq(read->address(rank).size() + read->watch_point(rank).size(), good.size());
                cr_assert_leq(placement.host().size() + placement.segment().size(), 2 * good.size());
            }
        }
}

Test(roster, an_unreachable_member_is_reported_once_and_the_others_are_reachable) {
    Endpoint endpoint;
    Roster roster;
    roster.fill(members_at({7, 8, 0, 9}), rank_of(0));
    cr_assert(roster.peers_of(std::vector<std::uint32_t>{1, 2, 3}, endpoint) == (PeerList{8, 9}));
    cr_assert(roster.has_unreached());
    const auto unreached = roster.take_unreached();
    cr_assert_eq(unreached.size(), 1U);
    cr_assert(unreached[0].rank == rank_of(2) && unreached[0].error == EADDRNOTAVAIL);
    cr_assert_not(roster.peer(2, endpoint));
    cr_assert_not(roster.has_unreached(), "reported again");
    cr_assert_eq(endpoint.inserts, 3U, "nor tried");
}

Test(roster, answers_each_member_once_and_no_other) {
    Roster roster;
    roster.fill(members_at({7, 8, 9}), rank_of(1));
    cr_assert(roster.answer(rank_of(0)) && roster.answer(rank_of(2)));
    cr_assert_not(roster.answer(rank_of(0)), "twice");
    cr_assert_not(roster.answer(rank_of(1)), "itself");
    cr_assert_not(roster.answer(rank_of(3)) || roster.answer(kNoRank), "no such member");
}

Test(roster, is_suspected_once_a_second) {
    Roster roster;
    roster.fill(members_at({7, 8}), rank_of(0));
    cr_assert_not(roster.suspected(rank_of(1)));
    Nanoseconds now = Nanoseconds::from_ms(5);
    cr_assert(roster.suspect(rank_of(1), now));
    cr_assert(roster.suspected(rank_of(1)));
    cr_assert_not(roster.suspect(rank_of(1), now + Nanoseconds::from_ms(999)));
    cr_assert(roster.suspect(rank_of(1), now + Nanoseconds::from_ms(1000)));
}

namespace {

// A host level without any effect.
struct QuietHost final : HostLevel {
    int post(levels::LevelOperation&, Nanoseconds) override { return 0; }
    void advance(levels::LevelOperation&, Nanoseconds) override {}
    bool progress(Nanoseconds) override { return false; }
    Nanoseconds next_deadline() const override { return kNever; }
    void fail(int, Nanoseconds) override {}
    void end_because_of(std::uint32_t, int) override {}
    int failure() const override { return 0; }
    std::uint32_t lost() const override { return 0; }
    std::uint32_t awaited() const override { return 0; }
    std::string explain() const override { return {}; }
    void add_counters(LevelCounters&) const override {}
    SharedBytes table() const override { return {}; }
};

constexpr std::uint32_t kMembers = 200;

// The environment of a group; the member at the address `unreachable` cannot be reached.
struct Process final : Port, Multicast {
    explicit Process(std::uint32_t its_rank = kMembers - 1) : rank(its_rank) {}
    wire::Hello own_hello() const override {
        wire::Hello hello;
        hello.peer.private_address = {static_cast<std::byte>(rank + 1)};
        hello.peer.watch_point = watch_point;
        return hello;
    }
    void send_hello(Rank, std::uint32_t, Bytes) override {}
    void send(Rank, std::uint32_t, Bytes) override {}
    const wire::Hello* miscounted_hello(Rank) override { return nullptr; }
    RoundTrips& round_trips() override { return measured; }
    Result<Outbox::Peer> peer(const wire::ByteString& address) override {
        const auto at = static_cast<Outbox::Peer>(address.front());
        if (at == unreachable) return Error{EADDRNOTAVAIL, "nowhere"};
        inserted.insert(at);
        return at;
    }
    void queue_message(std::vector<Outbox::Peer>, wire::ByteString) override {}
    void withdraw() override {}
    void explain(std::string_view) override {}

    Multicast& multicast() override { return *this; }
    int offer(wire::Welcome&, const Hellos&) override { return 0; }
    void join(const wire::Welcome&, const levels::Placement&) override {
        if (short_of_memory) throw std::bad_alloc();
    }
    bool joined() const override { return false; }
    const std::string& why_not() const override { return nothing; }
    std::string name() const override { return {}; }
    bool can_send() const override { return true; }
    void send(const wire::HeaderBytes&, Bytes, std::uint32_t) override {}
    void flush() override {}
    void forget_payloads() override {}

    void send_message(Outbox::Peer, const wire::HeaderBytes&, Bytes) override {}
    void queue_final_message(std::vector<Outbox::Peer> to, wire::ByteString) override {
        informed.insert(informed.end(), to.begin(), to.end());
    }
    void watch(Outbox::Peer, const wire::ByteString&, Nanoseconds) override {}
    void look_at(Outbox::Peer, const wire::ByteString&, Nanoseconds) override {}
    Result<SharedBytes> find_table(const HostMemoryName&) override { return SharedBytes{nullptr, table}; }
    Result<std::unique_ptr<HostLevel>> open_host(const HostMembers&) override {
        return std::unique_ptr<HostLevel>(std::make_unique<QuietHost>());
    }
    void keyed() override {}
    void changed() override {}
    void join_ended(int error) override { join_error = error; }
    void remember_ended(int) override {}
    void failed(int, Rank) override {}
    void completed(std::uint64_t, int) override {}
    std::string describe_stray_hello() override { return ""; }
    void warn(std::string_view sentence) override { warnings += sentence; }
    std::string address_of(Rank) const override { return "somewhere"; }
    std::string text_of(int error) const override { return std::to_string(error); }

    const std::uint32_t rank;
    std::vector<std::byte> table;  // the host's table of members
    wire::ByteString watch_point;  // where peers watch this process for its death
    bool short_of_memory = false;
    Outbox::Peer unreachable = 0;
    std::set<Outbox::Peer> inserted;
    PeerList informed;
    int join_error = 0;
    std::string warnings, nothing;
    RoundTrips measured;
};

// The address of a member is the rank plus one, and each member has a separate host, except perhaps the last
// two.
wire::Welcome welcome_of_many(bool two_on_a_host) {
    topology::Place place;
    place.set_named(topology::Level::host, "the last host");
    Hellos hellos(kMembers);
    for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
        wire::Hello& hello = hellos[rank];
        hello.rank = rank_of(rank);
        hello.members = kMembers;
        hello.address_family = 4;
        hello.datagram_bytes = 1472;
        hello.window = 64;
        hello.peer.private_address = {static_cast<std::byte>(rank + 1)};
        if (two_on_a_host && rank >= kMembers - 2) hello.peer.place = topology::encode(place);
    }
    wire::Welcome welcome = make_welcome({7, 1}, hellos, {}, topology::Policy(), {});
    welcome.key = GroupKey{99};
    welcome.range_of.assign(kMembers, 0);
    fit_datagrams(welcome, hellos, placement_of(welcome), false);
    return welcome;
}

// The last member of that group, with the welcome (rank 0's message with all members' addresses).
struct Member {
    explicit Member(wire::Security wish = wire::Security::off) : security(wish) {}
    explicit Member(std::uint32_t rank) : process(rank) {}
    void welcome(bool two_on_a_host = false) {
        const wire::Welcome welcome = welcome_of_many(two_on_a_host);
        const wire::MessageHead head{{7, 1}, 1, welcome.peers.front().private_address};
        process.table = laid_out(welcome);
        if (two_on_a_host && process.rank == kMembers - 1)
            return group.on_host_welcome({head, {}, welcome}, Nanoseconds{1});
        for (const wire::ByteString& part : parts_of(wire::encode(welcome), head))
            group.on_part(*wire::decode_part(part), Nanoseconds{1});
    }
    void run() {
        for (std::int64_t ms = 2; ms < 100; ++ms)
            if (group.busy()) group.pump(Nanoseconds::from_ms(ms));
    }
    wire::Security security = wire::Security::off;
    Process process;
    topology::Policy policy;
    Group group{
        {.id = {7, 1},
         .self = rank_of(process.rank),
         .members = kMembers,
         .deadline = Nanoseconds::from_ms(1'000'000),
         .settings = {.security = security},
         .policy = policy,
         .selection = {},
         .means = {.message_bytes = 65536 + 128, .max_open = 16, .memory = {}, .stall_timeout = kNever}},
        process};
};

}  // namespace

Test(reach, unaddressed_members_are_not_inserted) {
    Member member;
    member.welcome();
    member.run();
    cr_assert(member.group.state() == Group::State::forming);
    cr_assert_geq(member.process.inserted.size(), 1U, "no member is addressed");
    cr_assert_leq(member.process.inserted.size(), 8U, "%zu of %u are reached", member.process.inserted.size(),
                  kMembers);
}

Test(reach, an_unreachable_member_is_lost_while_the_group_forms) {
    Member well;
    well.welcome();
    well.run();
    Member member;
    member.process.unreachable = *well.process.inserted.begin();
    member.welcome();
    member.run();
    cr_assert(member.group.state() == Group::State::over);
    cr_assert_eq(member.process.join_error, EADDRNOTAVAIL);
    cr_assert_eq(member.group.ended_message().lost, rank_of(member.process.unreachable - 1));
    cr_assert(member.process.warnings.find("cannot be reached: nowhere") != std::string::npos, "%s",
              member.process.warnings.c_str());
    cr_assert_not(member.group.busy(), "for ever");
}

Test(reach, a_member_that_cannot_follow_a_welcome_informs_rank_0) {
    Member member;
    member.process.short_of_memory = true;
    try {
        member.welcome();
    } catch (const std::bad_alloc&) {
        member.group.break_down(ENOMEM, Nanoseconds{2});
    }
    cr_assert(member.group.state() == Group::State::over);
    cr_assert_eq(member.process.join_error, ENOMEM);
    cr_assert(member.process.informed == PeerList{1});
}

// A welcome for another process may have been recorded when an earlier process of this rank joined.
Test(reach, a_welcome_of_another_process_is_not_taken) {
    for (const bool two_on_a_host : {false, true}) {
        Member member;
        member.process.watch_point = {std::byte{1}};
        member.welcome(two_on_a_host);
        cr_assert(member.group.state() == (two_on_a_host ? Group::State::over : Group::State::hello));
        cr_assert(member.process.inserted.size() <= 1, "only rank 0 may be informed");
    }
}

// Another process may overwrite the table before the leader reads it.
Test(reach, a_table_that_was_spoilt_ends_the_join_of_the_host_s_leader) {
    Member leader(kMembers - 2);
    leader.welcome(true);
    cr_assert(leader.group.state() == Group::State::over);
    cr_assert_eq(leader.process.join_error, EPROTO);
    cr_assert(leader.process.informed == PeerList{1}, "rank 0 is informed");
}

Test(reach, less_security_than_wanted_ends_the_join) {
    for (const bool two_on_a_host : {false, true}) {
        Member member(wire::Security::encrypt);
        member.welcome(two_on_a_host);
        cr_assert(member.group.state() == Group::State::over);
        cr_assert_eq(member.process.join_error, EKEYREJECTED);
        cr_assert(member.process.informed == PeerList{1}, "rank 0 is informed");
    }
}

Test(reach, a_failure_names_the_lost_rank_and_how_it_was_found_out) {
    const struct {
        int error;
        std::string how;
    } rows[] = {{ECONNRESET, "its process has ended, as another rank has detected"},
                {EHOSTDOWN, "its host did not respond, as another rank has detected"}};
    for (const auto& row : rows) {
        Member member;
        member.welcome(true);
        cr_assert(member.group.failure_text().empty());
        member.group.on_abort(static_cast<std::uint32_t>(row.error), rank_of(7), Nanoseconds{3});
        cr_assert_eq(member.group.failure_text(), "lost rank 7 at somewhere: " + row.how);
        cr_assert_neq(member.process.warnings.find(row.how), std::string::npos);
    }
    Member member;
    member.welcome(true);
    member.group.on_abort(ECONNRESET, kNoRank, Nanoseconds{3});
    cr_assert(member.group.failure_text().empty(), "no member is informed yet");
    member.group.on_abort(ECONNRESET, rank_of(7), Nanoseconds{4});
    cr_assert_eq(member.group.failure_text(), "lost rank 7 at somewhere: " + rows[0].how);
}

Test(reach, a_death_named_later_is_forwarded_to_the_members_concerned) {
    Member member;
    member.welcome(true);
    member.group.close(Nanoseconds{2});
    const auto informs_because_of = [&](Rank lost) {
        member.process.informed.clear();
        member.group.on_abort(ECONNRESET, lost, Nanoseconds{3});
        return !member.process.informed.empty();
    };
    cr_assert_not(informs_because_of(kNoRank), "they know");
    cr_assert(informs_because_of(rank_of(kMembers - 2)), "its leader has informed no member");
    cr_assert_not(informs_because_of(rank_of(kMembers - 2)), "twice");
    cr_assert(informs_because_of(rank_of(7)), "two deaths");
    cr_assert_not(informs_because_of(rank_of(9)), "but no more");
}
