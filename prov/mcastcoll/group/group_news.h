// What the user reads about a group's beginning, its operations and its end, in sentences for the log.
#pragma once

#include <string>

#include "group/group.h"

namespace mcastcoll::group {

void tell_joined(Port& port, const LevelSet& set, Rank self);
// How an operation goes, when that was decided for the first time.
void tell_selection(Port& port, LevelSet& set);
// Who was lost, and how this member knows. reason: what its watch said, or null.
std::string describe_loss(const Port& port, const LevelSet& set, int error, Rank lost,
                          const std::string* reason);
// Of a formed group; with the text of its error.
topology::ReportedGroup report_of(const Group& group, const char* error);

}  // namespace mcastcoll::group
