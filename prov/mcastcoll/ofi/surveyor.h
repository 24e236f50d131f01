// Measures round trips to other stations when rank 0 of a group that is being joined asks for it
// (topology/site_survey.h says what for): some echoes to each, the shortest counts, since the first ones wait
// for connections to be made. Bounded: who has not answered in time is not measured.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "wire/join.h"
#include "wire/types.h"

namespace mcastcoll::ofi {

class Surveyor {
  public:
    // False: cannot send now, and that message is lost.
    using Send = std::function<bool(const wire::ByteString& to, Bytes message)>;
    static constexpr Nanoseconds kPatience = Nanoseconds::from_ms(1500);

    Surveyor(wire::ByteString own_address, Send send);

    void on_survey(const wire::Survey& survey, Nanoseconds now);
    void on_echo(const wire::Echo& echo, Nanoseconds now);
    // The next survey that is over, and whom to tell.
    bool take_result(Nanoseconds now, wire::ByteString& to, wire::Surveyed& result);
    Nanoseconds next_deadline() const;

  private:
    struct Target {
        wire::ByteString address;
        std::uint64_t stamp = 0;  // of the echo that is on its way
        Nanoseconds sent_at{};
        unsigned echoes = 0;
        std::uint64_t best_ns = wire::kNotMeasured;
    };
    struct Task {
        wire::JoinId id;
        wire::ByteString from;
        std::vector<Target> targets;
        Nanoseconds deadline{};
        bool over() const;
    };
    void send_echo(Target& target, Nanoseconds now);

    const wire::ByteString own_address_;
    const Send send_;
    std::vector<Task> tasks_;
    std::uint64_t next_stamp_ = 1;
};

}  // namespace mcastcoll::ofi
