#include "engine/reachability_map.h"

#include "wire/bytes.h"

namespace mcastcoll::engine {

void encode(const ReachabilityMap& map, std::vector<std::byte>& out) {
    out.resize((map.deaf.size() + map.mute.size()) * sizeof(Rank));
    std::byte* at = out.data();
    for (const std::vector<Rank>* list : {&map.deaf, &map.mute})
        for (Rank rank : *list) {
            wire::put(at, index_of(rank));
            at += sizeof(Rank);
        }
}

bool decode(Bytes bytes, std::uint32_t deaf_count, std::uint32_t members, ReachabilityMap& map) {
    if (bytes.size() % sizeof(Rank) != 0 || deaf_count > bytes.size() / sizeof(Rank)) return false;
    for (std::size_t i = 0; i < bytes.size() / sizeof(Rank); ++i) {
        std::vector<Rank>& list = i < deaf_count ? map.deaf : map.mute;
        const Rank rank{wire::get<std::uint32_t>(bytes.data() + i * sizeof(Rank))};
        if (index_of(rank) >= members || (!list.empty() && rank <= list.back())) return false;
        list.push_back(rank);
    }
    return true;
}

}  // namespace mcastcoll::engine
