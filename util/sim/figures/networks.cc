#include "networks.h"

namespace mcastcoll::sim {
namespace {

constexpr NamedNetwork kNetworks[] = {
    {"ethernet", "10 Gbit/s Ethernet and kernel sockets, one switch; assumed", Nanoseconds{10'000},
     Nanoseconds{1000}, Nanoseconds{1000}, Nanoseconds{500}, 0.8},
    // 4x SDR carries 8 Gbit/s of data, which is 1 ns a byte. A small MPI message took about 4.5 us one way;
    // how that divides into wire and processors is assumed.
    {"infiniband-2007", "4x SDR InfiniBand, MPI on verbs: 8 Gbit/s, 4.5 us one way; the division is assumed",
     Nanoseconds{2900}, Nanoseconds{800}, Nanoseconds{800}, Nanoseconds{700}, 1.0},
    // Elan4 moves about 900 MB/s. A small MPI message took about 3 us one way.
    {"quadrics-2005", "QsNet II (Elan4): 900 MB/s, 3 us one way; the division is assumed", Nanoseconds{1600},
     Nanoseconds{700}, Nanoseconds{700}, Nanoseconds{500}, 1.1},
    // Sites 30 ms apart, machines that talk TCP over fast Ethernet, processes of a machine through its own
    // MPI.
    {"grid-2000",
     "machines of a grid in 2000: TCP at 100 Mbit/s between, 100 MB/s inside, 10 Mbit/s and 30 ms between "
     "sites; assumed",
     Nanoseconds{300'000},
     Nanoseconds{100'000},
     Nanoseconds{100'000},
     Nanoseconds{1000},
     80,
     {.latency = Nanoseconds{20'000}, .overhead = Nanoseconds{10'000}, .ns_per_byte = 10},
     {.latency = Nanoseconds{30'000'000}, .ns_per_byte = 800}},
};

}  // namespace

std::span<const NamedNetwork> all_networks() {
    return kNetworks;
}

}  // namespace mcastcoll::sim
