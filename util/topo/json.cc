#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "activity.h"
#include "topo.h"

namespace mcastcoll::topo {
namespace {

using Json = nlohmann::ordered_json;
using topology::Level;
using topology::Map;
using topology::ReportedLevel;
using topology::Tree;

std::string to_text(const Json& object) {
    return object.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Json as_object(const Map& map, const Tree& tree, const std::vector<ReportedLevel>& levels) {
    Json object;
    object["members"] = map.members();
    object["root"] = index_of(tree.root());
    object["levels"] = Json::array();
    for (const ReportedLevel& one : levels)
        object["levels"].push_back({{"level", topology::name_of(one.level)},
                                    {"clusters", map.clusters(one.level)},
                                    {"connects", one.connects},
                                    {"transport", one.transport},
                                    {"algorithm", one.algorithm},
                                    {"why", one.why}});
    object["tree"] = Json::array();
    for (std::size_t i = 0; i < map.members(); ++i) {
        const Rank rank = rank_of(i);
        Json node{{"rank", i}, {"where", where(map, rank)}};
        if (rank == tree.root()) {
            node["parent"] = nullptr;
        } else {
            node["parent"] = index_of(tree.parent(rank));
            node["level"] = topology::name_of(tree.level(rank));
        }
        node["children"] = Json::array();
        for (const Rank child : tree.children(rank)) node["children"].push_back(index_of(child));
        object["tree"].push_back(std::move(node));
    }
    return object;
}

Json as_object(const JobGroup& job, Rank root) {
    const Map map(job.group.places, job.group.policy);
    Json object = as_object(map, topology::Tree(map, root), job.group.levels);
    object["key"] = fmt::format("{:016x}", job.group.key);
    object["state"] = job.group.state;
    object["reporting"] = Json::array();
    for (const Rank rank : job.reporting) object["reporting"].push_back(index_of(rank));
    return object;
}

}  // namespace

std::string group_as_json(const Map& map, const Tree& tree, const std::vector<ReportedLevel>& levels) {
    return to_text(as_object(map, tree, levels));
}

std::string host_as_json(const topology::Discovery& found, const Result<topology::Machine>& machine) {
    Json object;
    object["place"] = Json::object();
    for (std::size_t i = 1; i < topology::kLevels; ++i) {
        const Level level = topology::level_of(i);
        const auto& coordinate = found.place.at(level);
        if (!coordinate) continue;
        Json one{{"id", fmt::format("{:x}", coordinate->id)}};
        if (!coordinate->name.empty()) one["name"] = coordinate->name.view();
        object["place"][std::string(topology::name_of(level))] = one;
    }
    object["machine"] = Json::object();
    if (machine) {
        for (std::size_t i = topology::index_of(Level::package); i < topology::kLevels; ++i)
            object["machine"][std::string(topology::name_of(topology::level_of(i)))] =
                machine.value().objects(topology::level_of(i)).size();
        object["processors"] = machine.value().allowed().size();
        object["bound_to"] = machine.value().own();
    }
    object["notes"] = found.notes;
    return to_text(object);
}

std::string selection_as_json(const std::vector<levels::Row>& user, const std::string& file) {
    Json object;
    object["rows"] = Json::array();
    const auto range = [](const levels::Range& one) { return Json{one.min, one.max}; };
    for (const levels::Row& row : all_rows(user))
        object["rows"].push_back({{"operation", levels::name_of(row.kind)},
                                  {"members", range(row.members)},
                                  {"hosts", range(row.hosts)},
                                  {"bytes", range(row.bytes)},
                                  {"algorithm", levels::to_text(row.choice)},
                                  {"why", reason(row, file)}});
    return to_text(object);
}

std::string job_as_json(const LoadedReports& loaded, const std::vector<JobGroup>& groups, Rank root) {
    Json all;
    all["processes"] = Json::array();
    for (const LoadedReport& one : loaded.reports)
        all["processes"].push_back(
            {{"pid", one.pid}, {"program", one.program}, {"counters", one.report.counters}});
    all["groups"] = Json::array();
    for (const JobGroup& job : groups) all["groups"].push_back(as_object(job, root));
    return to_text(all);
}

std::string as_json_line(const Sample& sample) {
    Json line{{"at", sample.at}, {"groups", Json::array()}};
    for (const Activity& one : sample.activities) {
        Json group{{"key", fmt::format("{:016x}", one.key)},
                   {"program", one.program},
                   {"host", one.host},
                   {"operations", one.operations},
                   {"bytes", one.bytes},
                   {"datagrams", one.sent},
                   {"received", one.received},
                   {"repaired", one.repaired},
                   {"loss", one.loss()},
                   {"transport", one.transport},
                   {"repair", one.repair},
                   {"state", one.state}};
        group["reporting"] = Json::array();
        for (const Rank rank : one.reporting) group["reporting"].push_back(index_of(rank));
        if (one.awaited != kNoRank) group["awaited"] = index_of(one.awaited);
        line["groups"].push_back(std::move(group));
    }
    return line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace mcastcoll::topo
