#include "topology/map.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace mcastcoll::topology {
namespace {

// What a member has to share with another one to be in the same cluster.
struct Key {
    std::uint32_t outside = 0;  // number of the enclosing cluster
    enum class Kind : std::uint8_t { shared, known, alone } kind = Kind::shared;
    std::uint64_t id = 0;
    auto operator<=>(const Key&) const = default;
};

// Dense numbers in the order of first appearance.
std::vector<std::uint32_t> number(const std::vector<Key>& keys) {
    std::vector<std::uint32_t> by_key(keys.size());
    for (std::uint32_t i = 0; i < by_key.size(); ++i) by_key[i] = i;
    std::sort(by_key.begin(), by_key.end(), [&keys](std::uint32_t a, std::uint32_t b) {
        return std::tie(keys[a], a) < std::tie(keys[b], b);
    });
    std::vector<std::uint32_t> first_of(keys.size());
    for (std::size_t i = 0; i < by_key.size(); ++i) {
        const bool same = i > 0 && keys[by_key[i]] == keys[by_key[i - 1]];
        first_of[by_key[i]] = same ? first_of[by_key[i - 1]] : by_key[i];
    }
    std::vector<std::uint32_t> cluster_of(keys.size());
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < keys.size(); ++i)
        cluster_of[i] = first_of[i] == i ? next++ : cluster_of[first_of[i]];
    return cluster_of;
}

bool counts_at(const Place& place, const Policy& policy, Level level) {
    return policy.counts(level) && place.at(level).has_value();
}

bool reaches_deeper(const Place& place, const Policy& policy, Level level) {
    for (std::size_t i = index_of(level) + 1; i < kLevels; ++i)
        if (counts_at(place, policy, level_of(i))) return true;
    return false;
}

Key key_of(const Place& place, const Policy& policy, Level level, std::uint32_t outside, std::uint32_t rank) {
    if (counts_at(place, policy, level)) return {outside, Key::Kind::known, place.at(level)->id};
    if (level < Level::host || (is_inside_host(level) && reaches_deeper(place, policy, level)))
        return {outside, Key::Kind::shared, 0};
    return {outside, Key::Kind::alone, rank};
}

std::vector<std::uint32_t> refine(std::span<const Place> places, const Policy& policy, Level level,
                                  const std::vector<std::uint32_t>& outside) {
    std::vector<Key> keys(places.size());
    for (std::uint32_t i = 0; i < keys.size(); ++i) keys[i] = key_of(places[i], policy, level, outside[i], i);
    return number(keys);
}

// A host is in the segment of its first rank.
void settle_segments(std::vector<Place>& places, const Policy& policy,
                     const std::vector<std::uint32_t>& sites) {
    if (!policy.counts(Level::host)) return;
    const std::vector<std::uint32_t> host_of = refine(places, policy, Level::host, sites);
    std::vector<const Place*> first_of(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        const Place*& first = first_of[host_of[i]];
        if (first == nullptr) first = &places[i];
        const auto& segment = first->at(Level::segment);
        if (segment)
            places[i].set(Level::segment, segment->id, segment->name.view());
        else
            places[i].clear(Level::segment);
    }
}

}  // namespace

Map::Map(std::span<const Place> places, const Policy& policy)
    : members_(places.size()), policy_(policy), firsts_(places.begin(), places.end()) {
    assert(!places.empty());
    const auto add = [this](std::vector<std::uint32_t> cluster_of) {
        Partition& partition = partitions_.emplace_back();
        const std::uint32_t clusters = 1 + *std::max_element(cluster_of.begin(), cluster_of.end());
        partition.starts.assign(clusters + 1, 0);
        for (const std::uint32_t cluster : cluster_of) ++partition.starts[cluster + 1];
        for (std::uint32_t i = 0; i < clusters; ++i) partition.starts[i + 1] += partition.starts[i];
        std::vector<std::uint32_t> next(partition.starts.begin(), partition.starts.end() - 1);
        partition.members.resize(cluster_of.size());
        for (std::size_t i = 0; i < cluster_of.size(); ++i)
            partition.members[next[cluster_of[i]]++] = rank_of(i);
        partition.cluster_of = std::move(cluster_of);
    };

    add(std::vector<std::uint32_t>(members_, 0));
    add(refine(firsts_, policy_, Level::site, at(Level::wan).cluster_of));
    settle_segments(firsts_, policy_, at(Level::site).cluster_of);
    if (policy_.flat || !policy_.off.has(Level::segment))
        add(refine(firsts_, policy_, Level::segment, at(Level::site).cluster_of));
    else
        add(refine(firsts_, policy_, Level::host, at(Level::site).cluster_of));
    for (std::size_t i = index_of(Level::host); i < kLevels; ++i)
        add(refine(firsts_, policy_, level_of(i), partitions_.back().cluster_of));
    std::vector<std::uint32_t> alone(members_);
    for (std::uint32_t i = 0; i < members_; ++i) alone[i] = i;
    add(std::move(alone));

    name_levels();
    depths_.assign(members_, 1);
    for (std::size_t rank = 0; rank < members_; ++rank) {
        for (std::size_t i = 1; i < kLevels; ++i) {
            if (places[rank].at(level_of(i))) known_.add(level_of(i));
            if (counts_at(places[rank], policy_, level_of(i))) ++depths_[rank];
        }
    }
}

// Of levels that divide alike one speaks for all: the host if it is among them, else the innermost outside
// the host (a site that is one segment has multicast) and the outermost inside it.
void Map::name_levels() {
    const auto parts = [this](std::size_t i) { return partitions_[i].starts.size() - 1; };
    for (std::size_t first = 0, next = 0; first < kLevels; first = next) {
        while (next < kLevels && parts(next) == parts(first)) ++next;
        const std::size_t host = index_of(Level::host);
        const std::size_t speaker = first > host ? first : std::min(next - 1, host);
        for (std::size_t i = first; i < next; ++i) {
            speakers_[i] = level_of(speaker);
            below_[i] = static_cast<std::uint8_t>(next);
        }
        if (parts(first) == members_) continue;
        connecting_.add(level_of(speaker));
        levels_.push_back(level_of(speaker));
    }
}

std::span<const Rank> Map::members_of(Level level, std::uint32_t cluster) const {
    const Partition& partition = at(level);
    if (cluster + std::size_t{1} >= partition.starts.size()) return {};
    return std::span(partition.members)
        .subspan(partition.starts[cluster], partition.starts[cluster + 1] - partition.starts[cluster]);
}

Level Map::common(Rank one, Rank other) const {
    std::size_t i = kLevels - 1;
    while (i > 0 && !together(one, other, level_of(i))) --i;
    return speakers_[i];
}

Rank Map::leader(Level level, std::uint32_t cluster_number, Rank root) const {
    if (index_of(root) < members_ && cluster(root, level) == cluster_number) return root;
    return leader(level, cluster_number);
}

std::vector<Rank> Map::leaders_within(const Partition& outer, std::uint32_t cluster, const Partition& inner,
                                      Rank root) const {
    std::vector<Rank> leaders;
    if (cluster + std::size_t{1} >= outer.starts.size()) return leaders;
    for (std::uint32_t i = outer.starts[cluster]; i < outer.starts[cluster + 1]; ++i) {
        const Rank rank = outer.members[i];
        const std::uint32_t own = inner.cluster_of[index_of(rank)];
        if (inner.members[inner.starts[own]] != rank) continue;
        const bool has_root = index_of(root) < members_ && inner.cluster_of[index_of(root)] == own;
        leaders.push_back(has_root ? root : rank);
    }
    return leaders;
}

std::vector<Rank> Map::leaders_within(Level outer, std::uint32_t cluster, Level inner) const {
    return leaders_within(at(outer), cluster, at(inner), kNoRank);
}

std::vector<Rank> Map::leaders_within(Level outer, std::uint32_t cluster, Level inner, Rank root) const {
    return leaders_within(at(outer), cluster, at(inner), root);
}

std::vector<Rank> Map::connected_by(Level level, std::uint32_t cluster, Rank root) const {
    return leaders_within(at(level), cluster, below(level), root);
}

std::string Map::title(Level level, std::uint32_t cluster) const {
    const auto members = members_of(level, cluster);
    if (members.empty() || !policy_.counts(level)) return {};
    const auto& coordinate = firsts_[index_of(members.front())].at(level);
    if (!coordinate) return {};
    if (!coordinate->name.empty()) return std::string(coordinate->name.view());
    return is_inside_host(level) ? std::to_string(coordinate->id) : std::string();
}

std::string Map::why(Level level) const {
    if (connects(level)) {
        // The outermost level that tells apart what is connected here, or else the processes.
        const std::size_t parts = level == Level::host ? members_ : below(level).starts.size() - 1;
        std::size_t inner = level == Level::host ? kLevels : below_[index_of(level)];
        while (inner < kLevels && !(known_.has(level_of(inner)) && policy_.counts(level_of(inner)))) ++inner;
        std::string text = "connects ";
        text += inner < kLevels && clusters(level_of(inner)) == parts ? counted(level_of(inner), parts)
                                                                      : std::to_string(parts) + " processes";
        return level == Level::wan ? text : text + " in " + counted(level, clusters(level));
    }
    if (policy_.flat && level != Level::wan) return "left out: flat";
    if (policy_.off.has(level)) return "left out by the policy";
    if (!policy_.counts(level)) return "left out with the host";
    if (level != Level::wan && !known_.has(level))
        return "no member knows its " + std::string(name_of(level));
    if (members_ == 1) return "there is only one member";
    if (clusters(level) == members_) return "every " + std::string(name_of(level)) + " has a single member";
    const std::string speaker(name_of(speakers_[index_of(level)]));
    if (clusters(level) == 1) return "everybody is in the same " + speaker;
    return "divides as the " + speaker + " does";
}

}  // namespace mcastcoll::topology
