// Measures round trips to other members of a join when rank 0 asks for it (topology/site_survey.h says what
// for): some echoes to each by datagram, the shortest counts. One that is lost is sent again, later each
// time. Bounded: who has not answered in time is not measured. Knows members by their ranks alone; where
// they are is the port's business.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "group/join_port.h"
#include "wire/join.h"

namespace mcastcoll::group {

class Surveyor {
  public:
    static constexpr Nanoseconds kPatience = Nanoseconds::from_ms(1500);
    // The echoes that a member waits for from each other one. Busy hosts answer late, but not each time.
    static constexpr unsigned kEchoes = 8;

    Surveyor(const wire::JoinId& id, Rank self, const wire::Survey& survey, JoinPort& port);

    void start(Nanoseconds now);
    void on_echo(const wire::Echo& echo, Nanoseconds now);
    void pump(Nanoseconds now);
    // Every target has answered often enough, or the time is up.
    bool over() const { return over_; }
    // For who asked, in its words.
    wire::Surveyed result() const;
    Nanoseconds next_deadline() const;

  private:
    struct Target {
        wire::Survey::Target whom;
        std::uint64_t stamp = 0;  // of the echo that is on its way
        Nanoseconds sent_at{}, again_at{};
        std::uint32_t attempt = 0;
        unsigned echoes = 0;
        std::uint64_t best_ns = wire::kNotMeasured;
    };
    void send_echo(Target& target, Nanoseconds now);

    const wire::JoinId id_;
    const Rank self_;
    const wire::SurveyHead asked_;
    JoinPort& port_;
    std::vector<Target> targets_;
    Nanoseconds deadline_ = kNever;
    bool over_ = false;
    std::uint64_t next_stamp_ = 1;
};

}  // namespace mcastcoll::group
