// Input of mcastcoll-topo: reports of running jobs, which any process may have written, and files of members.
#include <string>

#include "fuzz.h"
#include "topo/topo.h"

using namespace mcastcoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    if (auto report = topo::parse_report(text)) {
        topo::LoadedReports loaded;
        loaded.reports.push_back(std::move(report).value());
        for (const topo::JobGroup& job : topo::groups_of(loaded)) {
            fuzz::check(job.group.places.size() == job.group.members, "all members' places are known");
            const topology::Map map(job.group.places, job.group.policy);
            (void)topo::tree_as_text(map, topology::Tree(map, rank_of(0)));
            for (const Rank rank : job.reporting)
                fuzz::check(index_of(rank) < map.members(), "who reports is a member");
        }
    }
    if (const auto members = topo::parse_members(text, "file");
        members.ok() && members.value().size() <= 64) {
        const topology::Map map(members.value(), {});
        (void)topo::levels_as_text(map, topology::describe_levels(map));
        (void)topo::as_svg(map, topology::Tree(map, rank_of(0)));
    }
    return 0;
}
