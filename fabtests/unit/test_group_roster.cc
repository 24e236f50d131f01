// The members of a group as one of them reaches them.
#include <criterion/criterion.h>

#include <cerrno>
#include <vector>

#include "group/members.h"

using namespace mcastcoll;
using namespace mcastcoll::group;

namespace {

// Reaches everybody whose address is not empty, at its first byte.
struct Endpoint final : JoinPort {
    wire::Hello own_hello() const override { return {}; }
    void greet(std::uint32_t, Bytes) override {}
    void send(Rank, std::uint32_t, Bytes) override {}
    const wire::Hello* miscounted_hello(Rank) override { return nullptr; }
    RoundTrips& round_trips() override { return measured; }
    RoundTrips measured;
    Result<Outbox::Peer> peer(const wire::ByteString& address) override {
        if (address.empty()) return Error{EADDRNOTAVAIL, "nowhere"};
        return static_cast<Outbox::Peer>(address.front());
    }
    int tell(std::vector<Outbox::Peer>, wire::ByteString) override { return 0; }
    void withdraw() override {}
    void explain(std::string_view) override {}
};

std::vector<wire::Peer> peers_at(std::initializer_list<int> addresses) {
    std::vector<wire::Peer> peers;
    for (const int address : addresses) {
        wire::Peer& peer = peers.emplace_back();
        if (address != 0) peer.private_address = {static_cast<std::byte>(address)};
    }
    return peers;
}

}  // namespace

Test(roster, reaches_all_but_itself) {
    Endpoint endpoint;
    Roster roster;
    cr_assert_eq(roster.fill(peers_at({7, 8, 9, 8}), rank_of(2), endpoint), 0);
    cr_assert_eq(roster.size(), 4U);
    cr_assert(roster.all_peers() == (std::vector<Outbox::Peer>{7, 8, 8}));
    cr_assert(roster.ranks_at(8) == (std::vector<Rank>{rank_of(1), rank_of(3)}),
              "several may be at one place");
    cr_assert(roster.ranks_at(9).empty(), "nobody is lost to itself");
    cr_assert(roster.peers_of(std::vector<std::uint32_t>{3, 0}) == (std::vector<Outbox::Peer>{8, 7}));
}

Test(roster, who_cannot_be_reached_is_an_error_and_the_others_can_be_told) {
    Endpoint endpoint;
    Roster roster;
    cr_assert_eq(roster.fill(peers_at({7, 8, 0, 9}), rank_of(0), endpoint), EADDRNOTAVAIL);
    cr_assert(roster.all_peers() == (std::vector<Outbox::Peer>{8}));
}

Test(roster, answers_each_member_once_and_nobody_else) {
    Endpoint endpoint;
    Roster roster;
    roster.fill(peers_at({7, 8, 9}), rank_of(1), endpoint);
    cr_assert(roster.answer(rank_of(0)) && roster.answer(rank_of(2)));
    cr_assert_not(roster.answer(rank_of(0)), "twice");
    cr_assert_not(roster.answer(rank_of(1)), "itself");
    cr_assert_not(roster.answer(rank_of(3)) || roster.answer(kNoRank), "nobody");
}

Test(roster, is_doubted_once_a_second) {
    Endpoint endpoint;
    Roster roster;
    roster.fill(peers_at({7, 8}), rank_of(0), endpoint);
    cr_assert_not(roster.doubted(rank_of(1)));
    Nanoseconds now = Nanoseconds::from_ms(5);
    cr_assert(roster.doubt(rank_of(1), now));
    cr_assert(roster.doubted(rank_of(1)));
    cr_assert_not(roster.doubt(rank_of(1), now + Nanoseconds::from_ms(999)));
    cr_assert(roster.doubt(rank_of(1), now + Nanoseconds::from_ms(1000)));
}
