#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/system.h"
#include "topology/machine.h"

namespace mcastcoll::topology {

namespace {

Processors processors_of(hwloc_const_bitmap_t bitmap) {
    Processors processors;
    if (hwloc_bitmap_weight(bitmap) < 0) return processors;  // infinite set: no machine has one
    for (int at = hwloc_bitmap_first(bitmap); at >= 0; at = hwloc_bitmap_next(bitmap, at))
        processors.push_back(static_cast<unsigned>(at));
    return processors;
}

hwloc_obj_type_t type_of(Level level) {
    switch (level) {
        case Level::package:
            return HWLOC_OBJ_PACKAGE;
        case Level::numa:
            return HWLOC_OBJ_NUMANODE;
        case Level::l3:
            return HWLOC_OBJ_L3CACHE;
        case Level::l2:
            return HWLOC_OBJ_L2CACHE;
        case Level::core:
            return HWLOC_OBJ_CORE;
        case Level::wan:
        case Level::site:
        case Level::segment:
        case Level::host:
            break;
    }
    return HWLOC_OBJ_MACHINE;
}

// Returns a number of the object that is the same in every process of the machine, whatever part of the
// machine the process may use.
unsigned number_of(hwloc_obj_t object) {
    const bool numbered = object->type == HWLOC_OBJ_PACKAGE || object->type == HWLOC_OBJ_NUMANODE;
    if (numbered && object->os_index != HWLOC_UNKNOWN_INDEX) return object->os_index;
    return static_cast<unsigned>(hwloc_bitmap_first(object->complete_cpuset));
}

template <typename Visit>
void for_each_object(hwloc_topology_t topology, Level level, const Visit& visit) {
    for (hwloc_obj_t object = nullptr;
         (object = hwloc_get_next_obj_by_type(topology, type_of(level), object)) != nullptr;)
        if (!hwloc_bitmap_iszero(object->cpuset))
            visit(object);  // memory without processors cannot be a place
}

unsigned long wanted_flags() {
    // Loads the whole machine, so that the processes of the machine compute the same numbers. Leaves out slow
    // queries, and queries that change the binding of this thread.
    unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
#if HWLOC_API_VERSION >= 0x00020500
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
#if HWLOC_API_VERSION >= 0x00020800
    flags |=
        HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
#endif
    return flags;
}

}  // namespace

Result<Machine> Machine::load(const char* synthetic) {
    hwloc_topology_t handle = nullptr;
    if (hwloc_topology_init(&handle) != 0) return system_error(errno, "hwloc");
    Topology topology(handle, &hwloc_topology_destroy);
    if (synthetic != nullptr && hwloc_topology_set_synthetic(handle, synthetic) != 0)
        return Error{EINVAL, std::string("hwloc does not understand the machine \"") + synthetic +
                                 "\"; write it like \"package:2 l3:2 core:4 pu:2\""};
    hwloc_topology_set_flags(handle, wanted_flags());
    if (hwloc_topology_load(handle) != 0)
        return system_error(errno != 0 ? errno : EIO, "hwloc cannot read the topology of this machine");
    return Machine(std::move(topology));
}

Processors Machine::allowed() const {
    return processors_of(hwloc_topology_get_allowed_cpuset(topology_.get()));
}

Processors Machine::own() const {
    // The binding of the main thread counts, because threads started by libraries (such as drivers) may run
    // anywhere. The system is asked for the binding even if hwloc loaded a description of a machine, because
    // resource managers provide descriptions of the machine on which the process runs.
    cpu_set_t bound;
    CPU_ZERO(&bound);
    if (::sched_getaffinity(::getpid(), sizeof bound, &bound) != 0) return allowed();
    Processors all = allowed(), own;
    for (const unsigned processor : all)
        if (processor < CPU_SETSIZE && CPU_ISSET(processor, &bound) != 0) own.push_back(processor);
    return own.empty() ? all : own;
}

std::vector<Processors> Machine::objects(Level level) const {
    std::vector<Processors> result;
    for_each_object(topology_.get(), level,
                    [&](hwloc_obj_t object) { result.push_back(processors_of(object->cpuset)); });
    return result;
}

void Machine::locate(const Processors& processors, Place& place) const {
    if (processors.empty()) return;
    for (std::size_t i = index_of(Level::host) + 1; i < kLevels; ++i) {
        const Level level = level_of(i);
        // If several objects contain the processors (two kinds of memory beside the same processors), the
        // lowest number counts.
        std::optional<unsigned> number;
        for_each_object(topology_.get(), level, [&](hwloc_obj_t object) {
            const bool holds_all = std::all_of(processors.begin(), processors.end(), [object](unsigned one) {
                return hwloc_bitmap_isset(object->cpuset, one) != 0;
            });
            if (holds_all && (!number || number_of(object) < *number)) number = number_of(object);
        });
        if (number) place.set(level, *number);
    }
}

}  // namespace mcastcoll::topology
