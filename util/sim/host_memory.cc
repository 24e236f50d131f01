#include "host_memory.h"

namespace mcastcoll::sim {

void HostMemory::fail(int error, std::uint32_t because_of) {
    if (failure != 0) return;
    failure = error;
    lost = because_of;
    changed();
}

void HostMemory::changed() {
    for (const std::uint32_t reader : endpoints) readers_.look(reader);
}

void HostMemory::dies(std::uint32_t endpoint, Nanoseconds known) {
    for (std::uint32_t place = 0; place < endpoints.size(); ++place) {
        if (endpoints[place] != endpoint) continue;
        dead_from[place] = known;
        member_died = true;
        changed();
    }
}

}  // namespace mcastcoll::sim
