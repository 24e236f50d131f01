// Members under attack: each attack of forge_attacks.h makes two cases, without a secret and with one, and
// some a third, with a secret carried by MUNGE.
#pragma once

#include <string>

#include "support/program.h"

namespace mcastcoll::fabtest {

// Adds the cases. `key_file` has the members' secret. `munged` is the socket of a munged, for attacks on a
// secret carried by MUNGE; without these cases if it is "".
void add_attacks(Program& program, const std::string& key_file, const std::string& munged);

}  // namespace mcastcoll::fabtest
