// The times of a simulated network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "layout.h"

namespace mcastcoll::sim {

inline Nanoseconds time_of(std::size_t bytes, double ns_per_byte) {
    return {static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte)};
}

// Links between sites.
struct Wan {
    Nanoseconds latency = Nanoseconds::from_ms(5);
    double ns_per_byte = 8;  // 1 Gbit/s
    bool mesh = false;
};

struct Model {
    // Memory between the processes of a machine.
    struct Memory {
        Nanoseconds latency{200};  // until the other process sees the data
        Nanoseconds overhead{50};  // of a notification
        double ns_per_byte = 0.1;  // 10 GB/s per core

        Nanoseconds copy_time(std::size_t bytes) const { return time_of(bytes, ns_per_byte); }
    };

    Nanoseconds latency = Nanoseconds::from_us(10);  // of the wires from host to host
    Nanoseconds send_overhead = Nanoseconds::from_us(1);
    Nanoseconds receive_overhead = Nanoseconds::from_us(1);
    Nanoseconds gap{500};
    double ns_per_byte = 0.8;                // 10 Gbit/s
    std::uint32_t port_buffer = 512 * 1024;  // bytes of multicast that wait at an output port
    std::uint32_t socket_buffer = 1024;      // datagrams that wait for a host's processor
    std::uint32_t send_buffer = 128 * 1024;  // bytes that wait in an adapter before sending is refused
    Nanoseconds retransmission{};            // of a lost message; 0: four round trips
    bool own_copies = false;                 // a sender receives its own multicasts
    bool shared_address = false;             // all groups multicast to one address
    Layout layout{};
    Memory memory{};
    Wan wan{};
    std::vector<Nanoseconds> read_every{};  // interval at which each host reads its inbox; hosts beyond the
                                            // end of the vector always read

    Nanoseconds wire_time(std::size_t bytes) const { return time_of(bytes, ns_per_byte); }
    Nanoseconds one_way(std::size_t bytes) const {
        return send_overhead + latency + wire_time(bytes) + receive_overhead;
    }
    Nanoseconds round_trip(std::size_t bytes) const { return one_way(bytes) + one_way(bytes); }
};

}  // namespace mcastcoll::sim
