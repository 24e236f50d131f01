// Finds out which networks form one site before rank 0 sends the welcome (topology/site_survey.h says why):
// one member of each network measures round trips to the representatives of the others.
//
// All survey traffic is datagrams between service addresses, which the members have from the application's
// list: a forged datagram can neither name an address nor cause a connection.
#pragma once

#include "group/join_port.h"
#include "group/multicast.h"
#include "group/surveyor.h"
#include "topology/site_survey.h"

namespace mcastcoll::group {

// One member's part in the survey. Rank 0 repeats its requests until every answer is here or the time is up.
class SurveyRound {
  public:
    // Maximum number of echoes answered in one join: three times the kEchoes of each possible network,
    // because lost echoes are repeated.
    static constexpr std::size_t kMaxEchoes = wire::kMaxSurveyed * 3 * Surveyor::kEchoes;

    SurveyRound(const wire::JoinId& id, Rank self, std::size_t members, JoinPort& port);

    // On rank 0 when all hellos are here: sends the requests, and waits for answers until the time `until`.
    void lead(const Hellos& hellos, Nanoseconds until, Nanoseconds now);
    // On rank 0: whether all answers are here or the time is up.
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
