// What mcastcoll-topo shows, for programs: one JSON object each, as text. One file knows JSON, since its
// library takes seconds to compile.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job.h"
#include "levels/selection.h"
#include "topology/discover.h"
#include "topology/machine.h"
#include "topology/map.h"
#include "topology/report.h"
#include "topology/tree.h"

namespace mcastcoll::topo {

std::string group_as_json(const topology::Map& map, const topology::Tree& tree,
                          const std::vector<topology::ReportedLevel>& levels);
std::string host_as_json(const topology::Discovery& found, const Result<topology::Machine>& machine);
std::string selection_as_json(const std::vector<levels::Row>& user, const std::string& file);
// root: of the trees; less than each group's members.
std::string job_as_json(const LoadedReports& loaded, const std::vector<JobGroup>& groups, Rank root);

}  // namespace mcastcoll::topo
