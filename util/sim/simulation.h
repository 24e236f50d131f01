// What every simulation in virtual time has, whoever the members of its groups are: conditions, a network,
// one source of chance, and the first thing that went wrong.
#pragma once

#include <string>

#include "network.h"

namespace mcastcoll::sim {

struct Conditions {
    Model model{};
    Faults faults{};
    std::uint64_t seed = 1;
};

// What befalls a host: at a moment, or when so many operations are complete.
struct Strike {
    std::uint32_t host = 0;
    Nanoseconds at = kNever;
    std::uint64_t after = UINT64_MAX;
};

class Simulation : public Sink {
  public:
    const Network& network() const { return network_; }
    Nanoseconds now() const { return network_.now(); }
    // The first complaint is what run() returns.
    void complain(std::string what) {
        if (wrong_.empty()) wrong_ = std::move(what);
    }

  protected:
    // Of every endpoint, as for Network.
    Simulation(const Conditions& conditions, std::vector<std::uint32_t> host_of,
               std::vector<std::uint32_t> group_of)
        : random_(conditions.seed),
          network_(conditions.model, conditions.faults, std::move(host_of), std::move(group_of),
                   random_.next(), *this) {}

    Random random_;
    Network network_;
    std::string wrong_;
};

}  // namespace mcastcoll::sim
