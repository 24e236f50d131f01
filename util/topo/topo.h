// What mcastcoll-topo is made of: members of groups that are described, and what it shows, for people and for
// programs.
#pragma once

#include "job.h"
#include "levels/selection.h"
#include "topology/discover.h"
#include "topology/machine.h"
#include "topology/tree.h"

namespace mcastcoll::topo {

// members.cc: a group that is described, not running, by a file of places or by ranks put on machines made
// up.

// A line for each member, or for COUNT of them:
//     [COUNT*] [LEVEL=VALUE ...]      # site=A host=h1 package=0 core=3
// A value inside a host is a number. `file` is its name, for complaints.
Result<std::vector<topology::Place>> parse_members(std::string_view text, std::string_view file);

struct MadeUp {
    std::string machine;          // hwloc's synthetic description
    std::string hosts = "1";      // "4", or "A:2,B:3": hosts of each site
    unsigned ranks = 0;           // on each host; 0: one for each place to bind to
    std::string bind = "core";    // a level inside the host, or "none"
    std::string order = "block";  // ranks fill a host before the next one, or "cyclic"
};
Result<std::vector<topology::Place>> make_members(const MadeUp& wanted);

// show.cc and svg.cc: for people.

// On standard error, after the program's name; returns the code.
int complain(const std::string& what, int code = 2);

std::string levels_as_text(const topology::Map& map, const std::vector<topology::ReportedLevel>& levels);
// Indented; neighbours without children stand on one line, as ranges of ranks.
std::string tree_as_text(const topology::Map& map, const topology::Tree& tree);
// With the characters that HTML and SVG want written otherwise.
std::string as_html(const std::string& text);
std::string as_svg(const topology::Map& map, const topology::Tree& tree);
// No file: nothing is to be written, and that has been done.
bool write_svg(const std::string& file, const topology::Map& map, const topology::Tree& tree);

// "0-3,7,9"
std::string ranges(std::span<const Rank> ranks);
// What its clusters are called at the levels that tell members apart: "site A, host h3".
std::string where(const topology::Map& map, Rank rank);
// The table of algorithms that groups would have if this process led them: rows with the reason for each; it
// can be edited and used as a file. `file`: where the user's rows come from.
std::string selection_as_text(const std::vector<levels::Row>& user, const std::string& file);
// The user's rows, then those that are built in.
std::vector<levels::Row> all_rows(const std::vector<levels::Row>& user);
// Why a row is there.
std::string reason(const levels::Row& row, const std::string& file);

// json.cc: for programs, one JSON object each, as text. One file knows JSON, since its library takes seconds
// to compile.

std::string group_as_json(const topology::Map& map, const topology::Tree& tree,
                          const std::vector<topology::ReportedLevel>& levels);
std::string host_as_json(const topology::Discovery& found, const Result<topology::Machine>& machine);
std::string selection_as_json(const std::vector<levels::Row>& user, const std::string& file);
// root: of the trees; less than each group's members.
std::string job_as_json(const LoadedReports& loaded, const std::vector<JobGroup>& groups, Rank root);

}  // namespace mcastcoll::topo
