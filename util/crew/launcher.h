// A launcher that speaks PMIx, such as Open MPI's mpirun or Slurm's srun: it says who this process is, and
// carries what the head publishes to the others.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace mcastcoll::crew {

struct Launched {
    std::uint32_t rank = 0, size = 1;
};

// Whether there is one.
bool is_launched();
Result<Launched> meet_launcher(unsigned wait_s);
// What rank 0 gives as `mine`; the launcher is not needed any more afterwards. All processes call it.
Result<std::string> from_head(const Launched& launched, const std::string& mine);

}  // namespace mcastcoll::crew
