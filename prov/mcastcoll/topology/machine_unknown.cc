// Built where there is no hwloc: places end at the host.
#include <errno.h>

#include "topology/machine.h"

namespace mcastcoll::topology {
namespace {

Error unknown() {
    return {EOPNOTSUPP, "built without hwloc: what is inside a host is not known"};
}

}  // namespace

struct Machine::Topology {};

void Machine::Free::operator()(Topology* topology) const {
    delete topology;
}

Result<Machine> Machine::of_this_system() {
    return unknown();
}
Result<Machine> Machine::of_xml(const std::string&) {
    return unknown();
}
Result<Machine> Machine::of_synthetic(const std::string&) {
    return unknown();
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
