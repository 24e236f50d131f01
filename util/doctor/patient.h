// The process in which a group is formed (end_to_end.h), and how it is spoken with.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace mcastcoll::doctor {

bool write_frame(int descriptor, const std::string& text);
std::optional<std::string> read_frame(int descriptor, const Deadline& deadline);

// Its whole life: says what it has opened, hears who the members are, says what came of it.
int be_patient(int from, int to);

}  // namespace mcastcoll::doctor
