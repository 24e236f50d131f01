#include "layout.h"

namespace mcastcoll::sim {

Layout Layout::of(const std::vector<std::vector<std::uint32_t>>& sites) {
    Layout layout;
    for (std::uint32_t site = 0; site < sites.size(); ++site)
        for (const std::uint32_t hosts : sites[site]) {
            const auto machine = static_cast<std::uint32_t>(layout.site_of.size());
            layout.machine_of.insert(layout.machine_of.end(), hosts, machine);
            layout.site_of.push_back(site);
        }
    return layout;
}

}  // namespace mcastcoll::sim
