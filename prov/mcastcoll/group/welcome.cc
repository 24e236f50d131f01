#include "group/welcome.h"

#include <algorithm>

#include "wire/bytes.h"

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
    // A segment is one multicast domain; a site consists of one or more segments.
    for (std::uint32_t rank = 0; rank < map.members(); ++rank)
        result.push_back({map.cluster(rank_of(rank), topology::Level::segment),
                          map.cluster(rank_of(rank), topology::Level::host),
                          map.cluster(rank_of(rank), topology::Level::site)});
    return result;
}

std::vector<std::vector<std::uint32_t>> clusters_in_host(const topology::Map& map, levels::Ranks members) {
    std::vector<std::vector<std::uint32_t>> result;
    for (const std::uint32_t rank : members) {
        std::vector<std::uint32_t>& clusters = result.emplace_back();
        for (const topology::Level level : map.levels())
            if (topology::is_inside_host(level)) clusters.push_back(map.cluster(rank_of(rank), level));
    }
    return result;
}

wire::Welcome make_welcome(const wire::JoinId& id, const Hellos& hellos, const GroupSettings& settings,
                           const topology::Policy& policy, std::span<const levels::Row> selection) {
    wire::Welcome welcome;
    welcome.id = id;
    welcome.repair = static_cast<std::uint8_t>(settings.repair);
    welcome.redundancy = static_cast<std::uint8_t>(settings.redundancy);
    welcome.channels = settings.channels;
    welcome.root_sync = static_cast<std::uint8_t>(settings.root_sync);
    welcome.root_delay_us = settings.root_delay_us;
    welcome.security = static_cast<std::uint8_t>(settings.security);
    const auto encoded = topology::encode(policy);
    welcome.policy.assign(encoded.begin(), encoded.end());
    welcome.peers.reserve(hellos.size());
    for (const auto& hello : hellos) {
        welcome.peers.push_back(hello.peer);
        welcome.sequences.push_back(hello.id.sequence);
    }
    const levels::Placement placement = placement_of(welcome);
    // Traffic inside a host carries too few tags to pay for the setup of GMAC.
    const bool gmac = placement.hosts() > 1 && std::ranges::all_of(hellos, &wire::Hello::gmac);
    welcome.mac = static_cast<std::uint8_t>(gmac ? wire::MacKind::gmac : wire::MacKind::umac64);
    welcome.selection = levels::Selection(selection, placement.members(), placement.hosts()).encode();
    return welcome;
}

Below whom_to_welcome(const levels::Placement& placement) {
    constexpr std::size_t kArity = 16;
    const auto below = [=](levels::Ranks ranks, std::size_t place) {
        const std::size_t first = std::min(kArity * place + 1, ranks.size());
        const levels::Ranks children = ranks.subspan(first, std::min(kArity, ranks.size() - first));
        return std::vector<std::uint32_t>(children.begin(), children.end());
    };
    Below whom;
    if (placement.leads_host())
        whom.leaders = below(placement.host_leaders(), placement.host_of(placement.self()));
    whom.on_host = below(placement.host(), placement.host_self());
    return whom;
}

levels::Placement placement_of(const wire::Welcome& welcome) {
    return {0, places_in(make_map(welcome))};
}

Hindrance hindrance_to_verbs(const Hellos& hellos, const levels::Placement& placement) {
    const wire::VerbsOffer& own = hellos.front().verbs;
    for (std::uint32_t rank = 0; rank < hellos.size(); ++rank) {
        if (placement.host_leader(rank) != rank) continue;
        const wire::VerbsOffer& offer = hellos[rank].verbs;
        const char* why = offer.datagram_bytes < kMinDatagram ? "cannot use verbs multicast"
                          : offer.room == 0                   ? "cannot join another verbs multicast group"
                          : offer.source.size() != own.source.size()
                              ? "is on another type of fabric than rank 0"
                              : nullptr;
        if (why != nullptr) return {why, rank};
    }
    return {};
}

void fit_datagrams(wire::Welcome& welcome, const Hellos& hellos, const levels::Placement& placement,
                   bool verbs) {
    std::uint32_t datagram = kMaxFragment + wire::kHeaderBytes, window = kMaxWindow;
    const std::uint8_t family = hellos.front().address_family;
    for (std::uint32_t rank = 0; rank < hellos.size(); ++rank) {
        const wire::Hello& hello = hellos[rank];
        if (placement.host_leader(rank) != rank) continue;
        if (verbs) {
            datagram = std::min(datagram, hello.verbs.datagram_bytes);
            window = std::min(window, hello.verbs.window);
            welcome.peers[rank].multicast_source = hello.verbs.source;
            continue;
        }
        // A leader without multicast, or with another address family, sets no limit. The engine will find
        // that this leader does not receive the multicast.
        if (hello.datagram_bytes == 0 || hello.address_family != family) continue;
        datagram = std::min(datagram, hello.datagram_bytes);
        window = std::min(window, hello.window);
    }
    // An offer may be smaller than a header.
    welcome.fragment_bytes =
        std::max(datagram, kMinDatagram) - static_cast<std::uint32_t>(wire::kHeaderBytes);
    welcome.window = std::max(window, kMinWindow);
}

wire::Key key_of_group(const wire::Agreement& agreement, const wire::Key& join_key, std::string_view purpose,
                       std::uint64_t number) {
    std::array<std::byte, 2 * sizeof(std::uint64_t) + sizeof(std::uint32_t)> context;
    wire::put(context.data(), static_cast<std::uint64_t>(agreement.key));
    wire::put(context.data() + sizeof(std::uint64_t), number);
    wire::put(context.data() + 2 * sizeof(std::uint64_t), static_cast<std::uint32_t>(agreement.epoch));
    return wire::derive(join_key, purpose, context);
}

bool acceptable(const wire::Agreement& agreement) {
    return agreement.fragment_bytes >= kMinFragment && agreement.fragment_bytes <= kMaxFragment &&
           agreement.security <= static_cast<std::uint8_t>(wire::Security::encrypt) &&
           agreement.mac < wire::kMacKinds && agreement.window >= kMinWindow &&
           agreement.window <= kMaxWindow && agreement.repair < engine::kRepairCount &&
           agreement.root_sync < engine::kRootSyncCount && agreement.redundancy < engine::kRedundancyCount &&
           agreement.channels >= 1 && agreement.channels <= kMaxChannels &&
           agreement.root_delay_us <= kMaxRootDelayUs &&
           levels::Selection::decode(agreement.selection).has_value();
}

}  // namespace mcastcoll::group
