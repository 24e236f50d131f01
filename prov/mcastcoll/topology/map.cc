#include "topology/map.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace mcastcoll::topology {
namespace {

// Two members with equal keys are in the same cluster.
struct Key {
    std::uint32_t outside = 0;  // number of the enclosing cluster
    enum class Kind : std::uint8_t { shared, known, alone } kind = Kind::shared;
    std::uint64_t id = 0;
    auto operator<=>(const Key&) const = default;
};

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

// Divides the outer clusters by the coordinates of a level. Returns the number of each rank's cluster; the
// numbers are dense, in the order of the clusters' first ranks.
std::vector<std::uint32_t> refine(std::span<const Place> places, const Policy& policy, Level level,
                                  const std::vector<std::uint32_t>& outside) {
    std::map<Key, std::uint32_t> numbers;
    std::vector<std::uint32_t> cluster_of;
    cluster_of.reserve(places.size());
    for (std::uint32_t i = 0; i < places.size(); ++i) {
        const Key key = key_of(places[i], policy, level, outside[i], i);
        const auto next = static_cast<std::uint32_t>(numbers.size());
        cluster_of.push_back(numbers.try_emplace(key, next).first->second);
    }
    return cluster_of;
}

// Moves each host into the segment of its first rank.
void settle_segments(std::vector<Place>& places, const Policy& policy,
                     const std::vector<std::uint32_t>& sites) {
    if (!policy.counts(Level::host)) return;
    const std::vector<std::uint32_t> host_of = refine(places, policy, Level::host, sites);
    std::vector<const Place*> first_of(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        const Place*& first = first_of[host_of[i]];
        if (first == nullptr) first = &places[i];
        places[i].at(Level::segment) = first->at(Level::segment);
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
    for (const Place& place : places)
        for (std::size_t i = 1; i < kLevels; ++i)
            if (place.at(level_of(i))) known_.add(level_of(i));
}

// Chooses a representative among levels that divide the members alike: the host if it is among these levels,
// otherwise the innermost of them outside the host (so a site of one segment has multicast), or the outermost
// inside the host.
void Map::name_levels() {
    const auto parts = [this](std::size_t i) { return partitions_[i].starts.size() - 1; };
    for (std::size_t first = 0, next = 0; first < kLevels; first = next) {
        while (next < kLevels && parts(next) == parts(first)) ++next;
        const std::size_t host = index_of(Level::host);
        const std::size_t representative = first > host ? first : std::min(next - 1, host);
        for (std::size_t i = first; i < next; ++i) {
            representatives_[i] = level_of(representative);
            below_[i] = static_cast<std::uint8_t>(next);
        }
        if (parts(first) == members_) continue;
        connecting_.add(level_of(representative));
        levels_.push_back(level_of(representative));
    }
}

std::span<const Rank> Map::members_of(Level level, std::uint32_t cluster) const {
    const Partition& partition = at(level);
    if (cluster + std::size_t{1} >= partition.starts.size()) return {};
    return std::span(partition.members)
        .subspan(partition.starts[cluster], partition.starts[cluster + 1] - partition.starts[cluster]);
}

Rank Map::leader(Level level, std::uint32_t cluster_number, Rank root) const {
    if (index_of(root) < members_ && cluster(root, level) == cluster_number) return root;
    return members_of(level, cluster_number).front();
}

std::vector<Rank> Map::connected_by(Level level, std::uint32_t cluster, Rank root) const {
    const Partition& inner = below(level);
    const bool has_root = index_of(root) < members_;
    std::vector<Rank> leaders;
    for (const Rank rank : members_of(level, cluster)) {
        const std::uint32_t own = inner.cluster_of[index_of(rank)];
        if (inner.members[inner.starts[own]] != rank) continue;
        leaders.push_back(has_root && inner.cluster_of[index_of(root)] == own ? root : rank);
    }
    return leaders;
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
        // Names the connected units after the outermost level that distinguishes them, otherwise "processes".
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
        return "no member has a known " + std::string(name_of(level));
    if (members_ == 1) return "there is only one member";
    if (clusters(level) == members_) return "every " + std::string(name_of(level)) + " has a single member";
    const std::string representative(name_of(representatives_[index_of(level)]));
    if (clusters(level) == 1) return "all members are in the same " + representative;
    return "divides as the " + representative + " does";
}

std::vector<ReportedLevel> describe_levels(const Map& map) {
    std::vector<ReportedLevel> result;
    for (std::size_t i = 0; i < kLevels; ++i) {
        const Level level = level_of(i);
        ReportedLevel& one = result.emplace_back();
        one.level = level;
        one.connects = map.connects(level);
        one.why = map.why(level);
        if (!one.connects) continue;
        if (is_inside_host(level)) {
            one.connects = false;
            one.why =
                "only barriers use it: inside a host all processes read the data that one process wrote";
            continue;
        }
        one.algorithm = map.policy().algorithms.at(level).name();
        one.transport = level == Level::host           ? "shared memory"
                        : one.algorithm == "multicast" ? "multicast"
                                                       : "messages";
    }
    return result;
}

}  // namespace mcastcoll::topology
