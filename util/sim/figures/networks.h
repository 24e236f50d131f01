// The networks that figures are drawn for: a handful of published or plainly assumed LogGP parameters under a
// name, so that a figure says what it was drawn for.
#pragma once

#include <span>
#include <string_view>

#include "network.h"

namespace mcastcoll::sim {

struct NamedNetwork {
    const char* name;
    const char* where;  // what the numbers stand for
    Nanoseconds latency, send_overhead, receive_overhead, gap;
    double ns_per_byte;
    Memory memory{};  // between processes of a machine
    Wan wan{};        // between sites

    Model model() const {
        Model model;
        model.latency = latency;
        model.send_overhead = send_overhead;
        model.receive_overhead = receive_overhead;
        model.gap = gap;
        model.ns_per_byte = ns_per_byte;
        model.memory = memory;
        model.wan = wan;
        return model;
    }
};

std::span<const NamedNetwork> all_networks();

// Null when there is none of that name.
template <typename Named>
const Named* named(std::span<const Named> all, std::string_view name) {
    for (const Named& one : all)
        if (name == one.name) return &one;
    return nullptr;
}
inline const NamedNetwork* network_named(std::string_view name) {
    return named(all_networks(), name);
}

}  // namespace mcastcoll::sim
