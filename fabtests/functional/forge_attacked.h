// Members under attack: each attack of forge_attacks.h as two cases, without a secret and with one.
#pragma once

#include <string>

#include "support/program.h"

namespace mcastcoll::fabtest {

// key_file: the members' secret.
void add_attacks(Program& program, const std::string& key_file);

}  // namespace mcastcoll::fabtest
