#include "group/places.h"

#include "topology/place_codec.h"

namespace mcastcoll::group {

wire::ByteString encode_policy(const topology::Policy& policy) {
    const auto encoded = topology::encode(policy);
    return {encoded.begin(), encoded.end()};
}

wire::ByteString encode_place(const topology::Place& place) {
    const topology::EncodedPlace encoded = topology::encode(place);
    return {encoded.bytes().begin(), encoded.bytes().end()};
}

topology::Place decode_place(const wire::ByteString& place) {
    return topology::decode_place(place).value_or(topology::Place{});
}

topology::Map make_map(std::span<const wire::ByteString> places, const wire::ByteString& policy) {
    std::vector<topology::Place> known;
    known.reserve(places.size());
    for (const wire::ByteString& place : places) known.push_back(decode_place(place));
    return {known, topology::decode_policy(policy).value_or(topology::Policy{})};
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

}  // namespace mcastcoll::group
