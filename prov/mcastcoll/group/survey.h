// Finds out which networks form one site before rank 0 sends the welcome (topology/site_survey.h says why):
// one member of each network measures round trips to the representatives of the others.
//
// All survey traffic is datagrams between service addresses, which the members have from the application's
// list: a forged datagram can neither name an address nor cause a connection.
#pragma once

#include <span>

#include "group/port.h"
#include "topology/site_survey.h"

namespace mcastcoll::group {

// Measures round trips to other members at rank 0's request: several echoes to each by datagram, of which the
// shortest counts. A lost echo is repeated with growing delay. The time is bounded: a member that has not
// answered by then counts as not measured. Members are named by rank; the port has their addresses.
class Surveyor {
  public:
    static constexpr Nanoseconds kTimeout = Nanoseconds::from_ms(1500);
    // Echoes per target. A busy host answers some echoes late, but not all.
    static constexpr unsigned kEchoes = 8;

    // Starts the measurement.
    Surveyor(const wire::JoinId& id, Rank self, const wire::Survey& survey, JoinPort& port, Nanoseconds now);

    void on_echo(const wire::Echo& echo, Nanoseconds now);
    void pump(Nanoseconds now);
    // Every target has answered often enough, or the time is up.
    bool over() const { return over_; }
    // The answer to rank 0, addressed with rank 0's sequence.
    wire::Surveyed result() const;
    Nanoseconds next_deadline() const;

  private:
    struct Target {
        wire::Survey::Target whom;
        std::uint64_t stamp = 0;  // of the echo in flight
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

// One member's part in the survey. Rank 0 repeats its requests until every answer is here or the time is up.
class SurveyRound {
  public:
    // Maximum number of echoes answered in one join: twice the possible need of all networks.
    static constexpr std::size_t kMaxEchoes = wire::kMaxSurveyed * 3 * Surveyor::kEchoes;

    SurveyRound(const wire::JoinId& id, Rank self, std::size_t members, JoinPort& port);

    // On rank 0 when all hellos are here: sends the requests, and waits for answers until then.
    void lead(const Hellos& hellos, Nanoseconds until, Nanoseconds now);
    // On rank 0: no answers are outstanding, or the time is up.
    bool over() const { return requests_.empty(); }
    // On rank 0: the same hellos, with the found sites in their places.
    Hellos settle(Hellos hellos) const;

    // Datagrams from members.
    void on_survey(const wire::Survey& survey, Nanoseconds now);
    void on_echo(const wire::Echo& echo, Nanoseconds now);
    void on_surveyed(const wire::Surveyed& surveyed);
    void on_timeout(Nanoseconds now);
    Nanoseconds next_deadline() const;

  private:
    // A request to measure the round trips of one network.
    struct Request {
        std::size_t network = 0;
        wire::Survey survey;
    };
    bool leads() const { return self_ == rank_of(0); }
    void send_requests(Nanoseconds now);
    void report();

    const wire::JoinId id_;
    const Rank self_;
    const std::size_t members_;
    JoinPort& port_;
    std::optional<topology::SiteSurvey> sites_;  // on rank 0, once it leads
    std::vector<Request> requests_;              // not answered yet
    std::uint32_t request_attempt_ = 0;
    Nanoseconds request_again_at_ = kNever, until_ = kNever;
    std::optional<Surveyor> surveyor_;  // this member's own measurement
    std::size_t echoes_answered_ = 0;
};

}  // namespace mcastcoll::group
