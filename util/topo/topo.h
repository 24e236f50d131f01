// Parts of mcastcoll-topo: members of described groups, and the output for people and for programs.
#pragma once

#include "job.h"
#include "levels/selection.h"
#include "topology/discover.h"
#include "topology/machine.h"
#include "topology/tree.h"

namespace mcastcoll::topo {

// members.cc: a group that is described rather than running, by a file of places or by ranks on a synthetic
// machine.

// A line for each member, or for COUNT members:
//     [COUNT*] [LEVEL=VALUE ...]      # site=A host=h1 package=0 core=3
// A value inside a host is a number. `file` is the file's name, for error messages.
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

// Prints on standard error, after the program's name; returns `code`.
int complain(const std::string& what, int code = 2);

std::string levels_as_text(const topology::Map& map, const std::vector<topology::ReportedLevel>& levels);
// Returns the tree as indented text; siblings without children are on one line, as ranges of ranks.
std::string tree_as_text(const topology::Map& map, const topology::Tree& tree);
// Escapes characters that are special in HTML and SVG.
std::string as_html(const std::string& text);
std::string as_svg(const topology::Map& map, const topology::Tree& tree);
// Draws the tree into a file; false if it cannot be written. With an empty file name, writes nothing and
// returns true.
bool write_svg(const std::string& file, const topology::Map& map, const topology::Tree& tree);

// Returns ranks as text: "0-3,7,9".
std::string ranges(std::span<const Rank> ranks);
// The names of the rank's clusters, at levels with several clusters: "site A, host h3".
std::string where(const topology::Map& map, Rank rank);
// The table of algorithms for groups led by this process: rows with the reason for each, in a form that can
// be edited and used as a file. `file`: the file of the user's rows.
std::string selection_as_text(const std::vector<levels::Row>& user, const std::string& file);
// The user's rows, then the built-in rows.
std::vector<levels::Row> all_rows(const std::vector<levels::Row>& user);
// Why the row is in the table: the file, or the built-in rule.
std::string reason(const levels::Row& row, const std::string& file);

// json.cc: for programs, one JSON object each, as text. Only one file includes the JSON library, which takes
// seconds to compile.

std::string group_as_json(const topology::Map& map, const topology::Tree& tree,
                          const std::vector<topology::ReportedLevel>& levels);
std::string host_as_json(const topology::Discovery& found, const Result<topology::Machine>& machine);
std::string selection_as_json(const std::vector<levels::Row>& user, const std::string& file);
// `root` is the rank at the root of each group's trees; it must be a rank of every group.
std::string job_as_json(const LoadedReports& loaded, const std::vector<JobGroup>& groups, Rank root);

}  // namespace mcastcoll::topo
