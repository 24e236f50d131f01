// Members under attack: each attack of forge_attacks.h as two cases, without a secret and with one, and
// some as a third, with one that MUNGE carries.
#pragma once

#include <string>

#include "support/program.h"

namespace mcastcoll::fabtest {

// key_file: the members' secret. munged: the socket of one, for attacks where MUNGE carries it; "": none.
void add_attacks(Program& program, const std::string& key_file, const std::string& munged);

}  // namespace mcastcoll::fabtest
