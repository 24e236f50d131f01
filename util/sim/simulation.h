// Base of all simulations in virtual time: conditions, a network, one random generator, and the first error.
#pragma once

#include <functional>
#include <string>

#include "model.h"
#include "network.h"
#include "sink.h"

namespace mcastcoll::sim {

struct Conditions {
    Model model{};
    Faults faults{};
    std::uint64_t seed = 1;
};

// A fault of a host: at a time, or after so many completed operations.
struct HostEvent {
    std::uint32_t host = 0;
    Nanoseconds at = kNever;
    std::uint64_t after = UINT64_MAX;
};

// Separated operations of a group: each begins some time after the previous one has completed everywhere, and
// is timed on every rank.
struct Separated {
    std::size_t unfinished = 0;  // ranks that have not completed the current operation, or have not joined
    Nanoseconds began_at{};
    std::vector<std::vector<Nanoseconds>> times;  // of each operation begun, by rank: until completion
};

class Simulation : public Sink {
  public:
    // Runs to the end. Returns an error message or "". Call once.
    virtual std::string run() = 0;
    const Network& network() const { return network_; }
    Nanoseconds now() const { return network_.now(); }
    // run() returns the first error.
    void complain(std::string what) {
        if (wrong_.empty()) wrong_ = std::move(what);
    }
    // Returns the time of every rank from the start of a separated operation to completion; empty if the
    // operation never began.
    std::vector<Nanoseconds> times(std::size_t operation, std::uint32_t group = 0) const {
        const Separated& track = tracks_[group];
        return operation < track.times.size() ? track.times[operation] : std::vector<Nanoseconds>();
    }
    // If set, is called when a separated operation has completed everywhere, and once before the first
    // operation.
    std::function<void(std::size_t operations_done)> step_over;

  protected:
    // `host_of` and `group_of` are those of Network.
    Simulation(const Conditions& conditions, std::vector<std::uint32_t> host_of,
               std::vector<std::uint32_t> group_of, std::size_t groups = 1)
        : random_(conditions.seed),
          network_(conditions.model, conditions.faults, std::move(host_of), std::move(group_of),
                   random_.next(), *this),
          tracks_(groups) {}

    // Number of separated operations of a group that have begun.
    std::size_t begun(std::uint32_t group) const { return tracks_[group].times.size(); }
    void begin(std::uint32_t group, std::size_t ranks, std::size_t living, Nanoseconds at) {
        tracks_[group].unfinished = living;
        tracks_[group].began_at = at;
        tracks_[group].times.emplace_back(ranks);
    }
    // A rank has completed the current operation, or has joined. Returns true if all have: the next may
    // begin.
    bool mark_done(std::uint32_t group, std::uint32_t rank, Nanoseconds at) {
        Separated& track = tracks_[group];
        if (!track.times.empty()) track.times.back()[rank] = at - track.began_at;
        if (--track.unfinished > 0) return false;
        if (step_over) step_over(track.times.size());
        return true;
    }

    Random random_;
    Network network_;
    std::vector<Separated> tracks_;  // by group
    std::string wrong_;
};

}  // namespace mcastcoll::sim
