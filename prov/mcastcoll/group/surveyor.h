// Measures round trips to other members at rank 0's request: several echoes to each by datagram, of which the
// shortest counts. A lost echo is repeated with growing delay. The time is bounded: a member that has not
// answered by then counts as not measured. Members are named by rank; the port has their addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "group/join_port.h"

namespace mcastcoll::group {

class Surveyor {
  public:
    static constexpr Nanoseconds kTimeout = Nanoseconds::from_ms(1500);
    // Echoes per target. A busy host answers some echoes late, but not all.
    static constexpr unsigned kEchoes = 8;

    // Starts the measurement.
    Surveyor(const wire::JoinId& id, Rank self, const wire::Survey& survey, JoinPort& port, Nanoseconds now);

    void on_echo(const wire::Echo& echo, Nanoseconds now);
    void pump(Nanoseconds now);
    // Whether every target has answered kEchoes echoes, or the time is up.
    bool over() const { return over_; }
    // The answer to rank 0, addressed with rank 0's sequence.
    wire::Surveyed result() const;
    Nanoseconds next_deadline() const;

  private:
    struct Target {
        wire::Survey::Target whom;
        std::uint64_t stamp = 0;  // stamp of the echo in flight
        Nanoseconds sent_at{}, again_at{};
        std::uint32_t attempt = 0;
        unsigned echoes = 0;
        std::uint64_t best_ns = wire::kNotMeasured;
    };
    void send_echo(Target& target, Nanoseconds now);

    const wire::JoinId id_;
    const Rank self_;
    const wire::SurveyHead survey_;
    JoinPort& port_;
    std::vector<Target> targets_;
    const Nanoseconds deadline_;
    bool over_ = false;
    std::uint64_t next_stamp_ = 1;
};

}  // namespace mcastcoll::group
