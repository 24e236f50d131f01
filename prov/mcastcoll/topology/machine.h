// The inside of a host: its packages, NUMA nodes, shared caches and cores, as reported by hwloc, and the
// location of a set of processors among these objects. Works for this machine and for a synthetic one.
//
// All processes of a host must compute the same numbers for its objects, even a process that may use only a
// part of the host. So the whole machine is loaded, and objects are identified by the system's numbers or
// their lowest processor, never by their position in the part that the process may use.
#pragma once

#include <memory>

#include "base/result.h"
#include "topology/place.h"

struct hwloc_topology;

namespace mcastcoll::topology {

// Processor (hardware thread) numbers of the system, ascending.
using Processors = std::vector<unsigned>;

class Machine {
  public:
    // Loads this machine, or the machine named by hwloc's own variables (HWLOC_XMLFILE, HWLOC_SYNTHETIC).
    static Result<Machine> of_this_system() { return load(nullptr); }
    // Example: "package:2 numa:2 l3:2 core:8 pu:2".
    static Result<Machine> of_synthetic(const std::string& description) { return load(description.c_str()); }

    // The processors to which this process is bound; for an unbound process, all processors that it may use.
    Processors own() const;
    // The processors of the machine that this process's control group may use.
    Processors allowed() const;
    // The processors of each object of a level, in the machine's order; empty if the machine lacks the level.
    std::vector<Processors> objects(Level level) const;
    // Sets a coordinate of `place` for each level with an object that contains all of these processors.
    void locate(const Processors& processors, Place& place) const;

  private:
    using Topology = std::unique_ptr<hwloc_topology, void (*)(hwloc_topology*)>;
    explicit Machine(Topology topology) : topology_(std::move(topology)) {}
    static Result<Machine> load(const char* synthetic);
    Topology topology_;
};

}  // namespace mcastcoll::topology
