#include "group/welcome.h"

namespace mcastcoll::group {

topology::Place decode_place(const wire::ByteString& place) {
    return topology::decode_place(place).value_or(topology::Place{});
}

topology::Map make_map(const wire::Welcome& welcome) {
    std::vector<topology::Place> places;
    places.reserve(welcome.peers.size());
    for (const wire::Peer& peer : welcome.peers) places.push_back(decode_place(peer.place));
    return {places, topology::decode_policy(welcome.policy).value_or(topology::Policy{})};
}

std::vector<levels::MemberPlace> places_in(const topology::Map& map) {
    std::vector<levels::MemberPlace> result;
    result.reserve(map.members());
    // What multicasts among each other is a segment; a site is one or several.
    for (std::uint32_t rank = 0; rank < map.members(); ++rank)
        result.push_back({map.cluster(rank_of(rank), topology::Level::segment),
                          map.cluster(rank_of(rank), topology::Level::host),
                          map.cluster(rank_of(rank), topology::Level::site)});
    return result;
}

std::vector<std::vector<std::uint32_t>> clusters_in_host(const topology::Map& map,
                                                         const std::vector<std::uint32_t>& members) {
    std::vector<std::vector<std::uint32_t>> result;
    for (const std::uint32_t rank : members) {
        std::vector<std::uint32_t>& clusters = result.emplace_back();
        for (const topology::Level level : map.levels())
            if (topology::is_inside_host(level)) clusters.push_back(map.cluster(rank_of(rank), level));
    }
    return result;
}

wire::Welcome make_welcome(const wire::JoinId& id, const Guests& guests, const GroupSettings& settings,
                           const topology::Policy& policy, std::span<const levels::Row> selection) {
    wire::Welcome welcome;
    welcome.id = id;
    welcome.repair = static_cast<std::uint8_t>(settings.repair);
    welcome.channels = settings.channels;
    welcome.root_sync = static_cast<std::uint8_t>(settings.root_sync);
    welcome.root_delay_us = settings.root_delay_us;
    const auto encoded = topology::encode(policy);
    welcome.policy.assign(encoded.begin(), encoded.end());
    welcome.peers.reserve(guests.size());
    for (const auto& guest : guests) {
        welcome.peers.push_back(guest->peer);
        welcome.sequences.push_back(guest->id.sequence);
    }
    const levels::Placement placement = placement_of(welcome);
    welcome.selection = levels::Selection(selection, placement.members(), placement.hosts()).encode();
    return welcome;
}

bool welcomes(const wire::Welcome& welcome, Rank rank, const wire::JoinId& join) {
    return welcome.id.list_hash == join.list_hash && index_of(rank) < welcome.sequences.size() &&
           welcome.sequences[index_of(rank)] == join.sequence;
}

std::vector<std::uint32_t> whom_to_welcome(const levels::Placement& placement) {
    constexpr std::size_t kArity = 16;
    std::vector<std::uint32_t> whom;
    const auto add_below = [&](const std::vector<std::uint32_t>& ranks, std::size_t place) {
        for (std::size_t child = kArity * place + 1; child <= kArity * (place + 1) && child < ranks.size();
             ++child)
            whom.push_back(ranks[child]);
    };
    if (placement.leads_host()) add_below(placement.host_leaders(), placement.host_of(placement.self()));
    add_below(placement.host(), placement.host_self());
    return whom;
}

levels::Placement placement_of(const wire::Welcome& welcome) {
    return {0, places_in(make_map(welcome))};
}

Hindrance hindrance_to_verbs(const Guests& guests, const levels::Placement& placement) {
    const wire::VerbsOffer& own = guests.front()->verbs;
    for (std::uint32_t rank = 0; rank < guests.size(); ++rank) {
        if (placement.host_leader(rank) != rank) continue;
        const wire::VerbsOffer& offer = guests[rank]->verbs;
        const char* why = offer.datagram_bytes < kLeastDatagram      ? "has none"
                          : offer.room == 0                          ? "can join no further group"
                          : offer.source.size() != own.source.size() ? "is on another kind of fabric"
                                                                     : nullptr;
        if (why != nullptr) return {why, rank};
    }
    return {};
}

void fit_datagrams(wire::Welcome& welcome, const Guests& guests, const levels::Placement& placement,
                   bool verbs) {
    std::uint32_t datagram = kMostFragment + wire::kHeaderBytes, window = kMostWindow;
    const std::uint8_t family = guests.front()->address_family;
    for (std::uint32_t rank = 0; rank < guests.size(); ++rank) {
        const wire::Hello& hello = *guests[rank];
        if (placement.host_leader(rank) != rank) continue;
        if (verbs) {
            datagram = std::min(datagram, hello.verbs.datagram_bytes);
            window = std::min(window, hello.verbs.window);
            welcome.peers[rank].multicast_source = hello.verbs.source;
            continue;
        }
        if (hello.datagram_bytes == 0 || hello.address_family != family) continue;  // it will be found deaf
        datagram = std::min(datagram, hello.datagram_bytes);
        window = std::min(window, hello.window);
    }
    // Somebody may offer less than a header.
    welcome.fragment_bytes =
        std::max(datagram, kLeastDatagram) - static_cast<std::uint32_t>(wire::kHeaderBytes);
    welcome.window = std::max(window, kLeastWindow);
}

bool acceptable(const wire::Welcome& welcome, std::size_t members) {
    return welcome.peers.size() == members && welcome.fragment_bytes >= kLeastFragment &&
           welcome.fragment_bytes <= kMostFragment && welcome.window >= kLeastWindow &&
           welcome.window <= kMostWindow && welcome.repair < engine::kRepairCount &&
           welcome.root_sync < engine::kRootSyncCount && welcome.channels >= 1 &&
           welcome.channels <= kMostChannels && welcome.root_delay_us <= kMostRootDelayUs &&
           levels::Selection::decode(welcome.selection).has_value();
}

}  // namespace mcastcoll::group
