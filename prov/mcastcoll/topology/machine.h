// What is inside a host: its packages, NUMA nodes, shared caches and cores, as hwloc sees them, and where in
// them a set of processors lies. The same code for this machine and one made up from a few words.
//
// Numbers have to be the same for all processes of a host, also for those that may use only a part of it. So
// the whole machine is looked at, and objects are known by the system's numbers or their lowest processor,
// never by their position in what a process may see.
#pragma once

#include <memory>

#include "base/result.h"
#include "topology/place.h"

struct hwloc_topology;

namespace mcastcoll::topology {

// The system's numbers of processors (hardware threads), ascending.
using Processors = std::vector<unsigned>;

class Machine {
  public:
    // This one; hwloc's own variables (HWLOC_XMLFILE, HWLOC_SYNTHETIC) may say otherwise.
    static Result<Machine> of_this_system() { return load(nullptr); }
    // "package:2 numa:2 l3:2 core:8 pu:2"
    static Result<Machine> of_synthetic(const std::string& description) { return load(description.c_str()); }

    // Those this process may run on: its binding, or all that its control group leaves it.
    Processors own() const;
    // All that may be used here.
    Processors allowed() const;
    // Of each object of a level inside the host, in the machine's order; none for a level it has not.
    std::vector<Processors> objects(Level level) const;
    // Sets the coordinates of the objects that hold all of these processors, so that a process bound to
    // nothing ends at the innermost object that holds everything it may use.
    void locate(const Processors& processors, Place& place) const;

  private:
    using Topology = std::unique_ptr<hwloc_topology, void (*)(hwloc_topology*)>;
    explicit Machine(Topology topology) : topology_(std::move(topology)) {}
    static Result<Machine> load(const char* synthetic);
    Topology topology_;
};

}  // namespace mcastcoll::topology
