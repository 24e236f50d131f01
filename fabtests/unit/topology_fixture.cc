#include "topology_fixture.h"

#include <criterion/criterion.h>

#include <sstream>

namespace mcastcoll::test {

using topology::Level;
using topology::Place;

Place place(const std::string& words) {
    Place result;
    std::istringstream in(words);
    for (std::string word; in >> word;) {
        const std::size_t equals = word.find('=');
        const auto level = topology::level_named(word.substr(0, equals));
        cr_assert(level && equals != std::string::npos, "'%s'", word.c_str());
        const std::string value = word.substr(equals + 1);
        if (topology::is_inside_host(*level))
            result.set(*level, std::stoul(value));
        else
            result.set_named(*level, value);
    }
    return result;
}

std::vector<Place> places(const std::vector<std::string>& words) {
    std::vector<Place> result;
    for (const std::string& one : words) result.push_back(place(one));
    return result;
}

std::vector<Place> grid(const Grid& sizes) {
    std::vector<Place> result;
    for (unsigned site = 0; site < sizes.sites; ++site)
        for (unsigned host = 0; host < sizes.hosts; ++host)
            for (unsigned package = 0; package < sizes.packages; ++package)
                for (unsigned core = 0; core < sizes.cores; ++core) {
                    Place& one = result.emplace_back();
                    one.set_named(Level::site, "s" + std::to_string(site));
                    one.set_named(Level::segment, "s" + std::to_string(site));
                    one.set_named(Level::host, "s" + std::to_string(site) + "h" + std::to_string(host));
                    one.set(Level::package, package);
                    one.set(Level::core, core);
                }
    return result;
}

bool together(const topology::Map& map, Rank one, Rank other, Level level) {
    return map.cluster(one, level) == map.cluster(other, level);
}

Level common(const topology::Map& map, Rank one, Rank other) {
    Level innermost = Level::wan;
    for (const Level level : map.levels())
        if (together(map, one, other, level)) innermost = level;
    return innermost;
}

std::size_t distance(const topology::Tree& tree, Rank rank) {
    std::size_t edges = 0;
    for (Rank at = rank; tree.parent(at) != kNoRank; at = tree.parent(at)) ++edges;
    return edges;
}

}  // namespace mcastcoll::test
