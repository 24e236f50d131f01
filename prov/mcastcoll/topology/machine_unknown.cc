// Used in builds without hwloc: places end at the host.
#include <errno.h>

#include "topology/machine.h"

namespace mcastcoll::topology {

Result<Machine> Machine::load(const char*) {
    return Error{EOPNOTSUPP, "built without hwloc: the topology inside a host is unknown"};
}
Processors Machine::own() const {
    return {};
}
Processors Machine::allowed() const {
    return {};
}
std::vector<Processors> Machine::objects(Level) const {
    return {};
}
void Machine::locate(const Processors&, Place&) const {}

}  // namespace mcastcoll::topology
