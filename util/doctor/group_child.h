// The process in which a group is formed (group_process.h), and its messages.
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"

namespace mcastcoll::doctor {

bool write_frame(int descriptor, const std::string& text);
std::optional<std::string> read_frame(int descriptor, const Deadline& deadline);

// The main function of the process: reports the opened endpoint, receives the members' addresses, and reports
// the result. `from` and `to` are the descriptors of pipes from and to the parent.
int run_group_process(int from, int to);

}  // namespace mcastcoll::doctor
