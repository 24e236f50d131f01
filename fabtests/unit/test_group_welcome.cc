// The contents of the welcome with which rank 0 answers the members of a join, and contents that a member
// refuses.
#include <criterion/criterion.h>

#include <algorithm>
#include <functional>

#include "group/arrival.h"
#include "group/welcome.h"
#include "topology_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::group;

namespace {

wire::Welcome good_welcome(std::size_t members = 3) {
    wire::Welcome welcome;
    welcome.fragment_bytes = 1024;
    welcome.window = 64;
    welcome.channels = 16;
    welcome.selection = levels::Selection({}, static_cast<std::uint32_t>(members), members).encode();
    welcome.peers.resize(members);
    return welcome;
}

// Returns a pending hello from each of these places, rank 0 first.
Hellos hellos_at(const std::vector<std::string>& places) {
    Hellos hellos(places.size());
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
        wire::Hello hello;
        hello.rank = rank_of(rank);
        hello.address_family = 4;
        hello.datagram_bytes = 8192;
        hello.window = 100;
        hello.verbs = {.datagram_bytes = 4096, .window = 50, .room = 1, .source = wire::ByteString(7)};
        hello.peer.place = topology::encode(test::place(places[rank]));
        hello.peer.multicast_source = wire::ByteString(7, std::byte{1});
        hellos[rank] = hello;
    }
    return hellos;
}

// Returns the welcome that rank 0 makes from these hellos.
wire::Welcome made(const Hellos& hellos) {
    return make_welcome({}, hellos, GroupSettings{}, topology::Policy{}, {});
}

}  // namespace

Test(welcome, each_bound_one_less_exactly_and_one_more) {
    const auto accepts = [](const std::function<void(wire::Welcome&)>& change) {
        wire::Welcome welcome = good_welcome();
        change(welcome);
        return acceptable(welcome);
    };
    cr_assert(accepts([](wire::Welcome&) {}));
    struct Bound {
        const char* what;
        std::function<void(wire::Welcome&, std::uint32_t)> set;
        std::uint32_t min, max;
    };
    const Bound bounds[] = {
        {"fragment", [](auto& one, auto value) { one.fragment_bytes = value; }, kMinFragment, kMaxFragment},
        {"window", [](auto& one, auto value) { one.window = value; }, kMinWindow, kMaxWindow},
        {"channels", [](auto& one, auto value) { one.channels = value; }, 1, kMaxChannels},
        {"delay", [](auto& one, auto value) { one.root_delay_us = value; }, 0, kMaxRootDelayUs},
        {"repair", [](auto& one, auto value) { one.repair = static_cast<std::uint8_t>(value); }, 0,
         engine::kRepairCount - 1U},
        {"redundancy", [](auto& one, auto value) { one.redundancy = static_cast<std::uint8_t>(value); }, 0,
         engine::kRedundancyCount - 1U},
        {"mac", [](auto& one, auto value) { one.mac = static_cast<std::uint8_t>(value); }, 0,
         wire::kMacKinds - 1U},
        {"sync", [](auto& one, auto value) { one.root_sync = static_cast<std::uint8_t>(value); }, 0,
         engine::kRootSyncCount - 1U},
    };
    for (const Bound& bound : bounds) {
        const auto with = [&](std::uint32_t value) {
            return accepts([&](wire::Welcome& welcome) { bound.set(welcome, value); });
        };
        cr_assert(with(bound.min) && with(bound.max), "%s", bound.what);
        cr_assert_not(with(bound.max + 1), "%s", bound.what);
        if (bound.min > 0) cr_assert_not(with(bound.min - 1), "%s", bound.what);
    }
    cr_assert_not(accepts([](wire::Welcome& welcome) { welcome.selection.clear(); }));
    cr_assert_not(accepts([](wire::Welcome& welcome) { welcome.selection.front() ^= std::byte{0xff}; }));
}

Test(welcome, fragments_and_windows_fit_every_host_s_leader) {
    Hellos hellos = hellos_at({"host=a", "host=a", "host=b", "host=c"});
    hellos[1].datagram_bytes = 600;  // leads no host
    hellos[2].datagram_bytes = 2000;
    hellos[3].window = 20;
    wire::Welcome welcome = made(hellos);
    fit_datagrams(welcome, hellos, placement_of(welcome), false);
    cr_assert_eq(welcome.fragment_bytes, 2000 - wire::kHeaderBytes);
    cr_assert_eq(welcome.window, 20U);
    // A member without multicast, or of another address family, is served in another way.
    hellos[2].datagram_bytes = 0;
    hellos[3].address_family = 6;
    fit_datagrams(welcome, hellos, placement_of(welcome), false);
    cr_assert_eq(welcome.fragment_bytes, 8192 - wire::kHeaderBytes);
    cr_assert_eq(welcome.window, 100U);
    // Hellos may offer any value.
    hellos[0].datagram_bytes = 1;
    hellos[0].window = 1;
    fit_datagrams(welcome, hellos, placement_of(welcome), false);
    cr_assert(acceptable(welcome));
    hellos[0].datagram_bytes = hellos[0].window = UINT32_MAX;
    fit_datagrams(welcome, hellos, placement_of(welcome), false);
    cr_assert(acceptable(welcome));
}

Test(welcome, over_verbs_the_sources_of_hosts_leaders_are_the_devices) {
    const Hellos hellos = hellos_at({"host=a", "host=a", "host=b"});
    wire::Welcome welcome = made(hellos);
    fit_datagrams(welcome, hellos, placement_of(welcome), true);
    cr_assert_eq(welcome.fragment_bytes, 4096 - wire::kHeaderBytes);
    cr_assert_eq(welcome.window, 50U);
    cr_assert(welcome.peers[0].multicast_source == hellos[0].verbs.source);
    cr_assert(welcome.peers[1].multicast_source == hellos[1].peer.multicast_source);
    cr_assert(welcome.peers[2].multicast_source == hellos[2].verbs.source);
}

Test(welcome, a_group_goes_over_verbs_when_every_host_can) {
    const Hellos hellos = hellos_at({"host=a", "host=b", "host=b", "host=c"});
    const auto hindrance = [&](std::uint32_t rank, const std::function<void(wire::VerbsOffer&)>& change) {
        Hellos changed = hellos;
        change(changed[rank].verbs);
        return hindrance_to_verbs(changed, placement_of(made(changed)));
    };
    cr_assert_null(hindrance(0, [](auto&) {}).why);
    cr_assert_null(hindrance(2, [](auto& offer) { offer = {}; }).why, "it leads no host");
    cr_assert_null(hindrance(3, [](auto& offer) { offer.datagram_bytes = kMinDatagram; }).why);
    const Hindrance small = hindrance(3, [](auto& offer) { offer.datagram_bytes = kMinDatagram - 1; });
    cr_assert_str_eq(small.why, "cannot use verbs multicast");
    cr_assert_eq(small.rank, 3U);
    cr_assert_str_eq(hindrance(1, [](auto& offer) { offer.room = 0; }).why,
                     "cannot join another verbs multicast group");
    cr_assert_str_eq(hindrance(3, [](auto& offer) { offer.source.pop_back(); }).why,
                     "is on another type of fabric than rank 0");
}

Test(welcome, places_and_wishes_travel) {
    Hellos hellos = hellos_at({"host=a", "host=b"});
    hellos[1].peer.place.clear();
    const GroupSettings settings{engine::Repair::push, engine::Redundancy::on, 5, engine::RootSync::adaptive,
                                 77};
    const wire::JoinId id{9, 4}, started_again{9, 2};
    hellos[0].id = id;
    hellos[1].id = started_again;
    const wire::Welcome welcome = make_welcome(id, hellos, settings, topology::Policy{}, {});
    cr_assert(welcome.id == id);
    cr_assert(welcome.sequences == (std::vector<std::uint32_t>{4, 2}));
    cr_assert_eq(welcome.repair, static_cast<std::uint8_t>(engine::Repair::push));
    cr_assert_eq(welcome.redundancy, static_cast<std::uint8_t>(engine::Redundancy::on));
    cr_assert_eq(welcome.channels, 5U);
    cr_assert_eq(welcome.root_sync, static_cast<std::uint8_t>(engine::RootSync::adaptive));
    cr_assert_eq(welcome.root_delay_us, 77U);
    cr_assert(welcome.peers[0].place == hellos[0].peer.place && welcome.peers[1].place.empty());
    cr_assert_eq(placement_of(welcome).hosts(), 2U);
    cr_assert(levels::Selection::decode(welcome.selection).has_value());
}

Test(welcome, packets_are_proven_by_gmac_where_all_would_and_they_have_several_hosts) {
    const auto mac = [](const std::array<std::uint8_t, 3>& would, const char* second_host) {
        Hellos hellos = hellos_at({"host=a", "host=a", second_host});
        for (std::size_t rank = 0; rank < would.size(); ++rank) hellos[rank].gmac = would[rank];
        return static_cast<wire::MacKind>(made(hellos).mac);
    };
    cr_assert(mac({1, 1, 1}, "host=b") == wire::MacKind::gmac);
    cr_assert(mac({1, 1, 0}, "host=b") == wire::MacKind::umac64);
    cr_assert(mac({0, 1, 1}, "host=b") == wire::MacKind::umac64);
    cr_assert(mac({1, 1, 1}, "host=a") == wire::MacKind::umac64, "nothing leaves the host");
}

// Each host is informed once, by a host that already has the welcome, and no host informs many.
Test(welcome, it_is_forwarded_down_a_tree_of_hosts) {
    const struct {
        std::uint32_t hosts, ranks;
        bool dealt;  // whether ranks are assigned to the hosts in turn
        std::size_t steps;
    } cases[] = {{1, 1, false, 0},   {1, 2, false, 1},   {1, 17, false, 1},  {1, 18, false, 2},
                 {17, 1, false, 1},  {18, 1, false, 2},  {32, 32, false, 4}, {32, 32, true, 4},
                 {1, 300, false, 3}, {1024, 2, true, 4}, {300, 3, false, 4}};
    for (const auto& [hosts, ranks, dealt, steps] : cases) {
        std::vector<levels::MemberPlace> places;
        for (std::uint32_t rank = 0; rank < hosts * ranks; ++rank)
            places.push_back({0, dealt ? rank % hosts : rank / ranks, 0});
        std::vector<std::size_t> welcomed_at(places.size(), SIZE_MAX);
        std::vector<std::uint32_t> welcomed{0};
        welcomed_at[0] = 0;
        for (std::size_t next = 0; next < welcomed.size(); ++next) {
            const Below below = whom_to_welcome(levels::Placement(welcomed[next], places));
            std::vector<std::uint32_t> whom = below.leaders;
            whom.insert(whom.end(), below.on_host.begin(), below.on_host.end());
            cr_assert_leq(whom.size(), 32U);
            for (const std::uint32_t rank : whom) {
                cr_assert_eq(welcomed_at[rank], SIZE_MAX, "rank %u is welcomed twice", rank);
                welcomed_at[rank] = welcomed_at[welcomed[next]] + 1;
                welcomed.push_back(rank);
            }
        }
        cr_assert_eq(welcomed.size(), places.size());
        cr_assert_eq(*std::max_element(welcomed_at.begin(), welcomed_at.end()), steps, "%u of %u", hosts,
                     ranks);
    }
}

Test(welcome, it_arrives_part_after_part) {
    const wire::MessageHead head{{9, 4}, 4, {}};
    const wire::ByteString whole(2 * wire::kPartBytes + 1, std::byte{5});
    std::vector<wire::WelcomePart> parts;
    for (const wire::ByteString& part : parts_of(whole, head)) parts.push_back(*wire::decode_part(part));
    cr_assert_eq(parts.size(), 3U);
    Arrival arrival;
    const auto add = [&](std::size_t number) { return arrival.add(parts[number], whole.size()); };
    cr_assert_not(add(1), "the first is missing");
    cr_assert_not(add(0) || add(2) || add(0) || add(1) || add(1), "not in order");
    cr_assert(add(2));
    cr_assert(arrival.take() == whole);
    cr_assert_not(arrival.add(parts[0], whole.size() - 1), "longer than it can be");
    cr_assert_not(arrival.add(parts[1], whole.size()), "nothing of that was kept");
}
