// The inside of a host: its packages, NUMA nodes, shared caches and cores, as reported by hwloc, and the
// location of a set of processors in it. Works for this machine and for a synthetic one.
//
// The processes of a host must get the same numbers, even with access to only a part of the host. So the
// whole machine is loaded, and objects are identified by the system's numbers or their lowest processor,
// never by their position in the visible part.
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
    // This machine, unless hwloc's own variables (HWLOC_XMLFILE, HWLOC_SYNTHETIC) name another.
    static Result<Machine> of_this_system() { return load(nullptr); }
    // Example: "package:2 numa:2 l3:2 core:8 pu:2".
    static Result<Machine> of_synthetic(const std::string& description) { return load(description.c_str()); }

    // The processors of this process: its binding, or those of its control group.
    Processors own() const;
    // The usable processors.
    Processors allowed() const;
    // The processors of each object of a level, in the machine's order; empty if the machine lacks the level.
    std::vector<Processors> objects(Level level) const;
    // Sets the coordinates of the objects that contain all of these processors. For an unbound process this
    // is the innermost object with every usable processor.
    void locate(const Processors& processors, Place& place) const;

  private:
    using Topology = std::unique_ptr<hwloc_topology, void (*)(hwloc_topology*)>;
    explicit Machine(Topology topology) : topology_(std::move(topology)) {}
    static Result<Machine> load(const char* synthetic);
    Topology topology_;
};

}  // namespace mcastcoll::topology
