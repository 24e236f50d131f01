// A launcher with PMIx, such as Open MPI's mpirun or Slurm's srun: supplies this process's rank and publishes
// the head's addresses to the other processes.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace mcastcoll::hostset {

struct Launched {
    std::uint32_t rank = 0, size = 1;
};

// Whether a launcher with PMIx started this process.
bool is_launched();
Result<Launched> connect_launcher(unsigned wait_s);
// Returns rank 0's `mine` on every process and leaves PMIx. All processes call it.
Result<std::string> publish_from_head(const Launched& launched, const std::string& mine);

}  // namespace mcastcoll::hostset
