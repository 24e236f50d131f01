// The process in which a group is formed (group_process.h), and its messages.
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"

namespace mcastcoll::doctor {

bool write_frame(int descriptor, const std::string& text);
std::optional<std::string> read_frame(int descriptor, const Deadline& deadline);

// Runs the process: reports the opened endpoint, receives the members, reports the result.
int run_group_process(int from, int to);

}  // namespace mcastcoll::doctor
