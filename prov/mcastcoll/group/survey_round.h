// One member's part in the survey of a join: before rank 0 welcomes anybody it finds out which networks are
// one site (topology/site_survey.h says why). It asks one member of each network to measure round trips to
// those of the others, again and again until they have told or the time is over.
//
// All of it goes by datagrams between the members' service addresses, which everybody knows from the
// application's list: what a stranger sends can neither name an address nor make anybody connect to one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "group/join_port.h"
#include "group/surveyor.h"
#include "topology/site_survey.h"
#include "wire/join.h"

namespace mcastcoll::group {

// Greetings by rank; empty where nobody has greeted yet.
using Guests = std::vector<std::optional<wire::Hello>>;

class SurveyRound {
  public:
    // Echoes that are answered in one join: twice what the members of all networks may need.
    static constexpr std::size_t kMostEchoes = wire::kMostSurveyed * 3 * Surveyor::kEchoes;

    SurveyRound(const wire::JoinId& id, Rank self, std::size_t members, JoinPort& port);

    // Rank 0, when everybody has greeted: asks, and waits for answers until then.
    void lead(const Guests& guests, Nanoseconds until, Nanoseconds now);
    // Rank 0: nobody is left to tell anything, or the time is up.
    bool over() const { return asks_.empty(); }
    // Rank 0: the members' encoded places, with the sites that were found.
    std::vector<wire::ByteString> settle(const Guests& guests);

    // Datagrams from members.
    void on_survey(const wire::Survey& survey, Nanoseconds now);
    void on_echo(const wire::Echo& echo, Nanoseconds now);
    void on_surveyed(const wire::Surveyed& surveyed);
    void on_timeout(Nanoseconds now);
    Nanoseconds next_deadline() const;

  private:
    // What a member has been asked to measure: its network's round trips.
    struct Ask {
        std::size_t network = 0;
        wire::Survey survey;
    };
    bool leads() const { return self_ == rank_of(0); }
    void ask(Nanoseconds now);
    void measure(const wire::Survey& survey, Nanoseconds now);
    void tell();

    const wire::JoinId id_;
    const Rank self_;
    const std::size_t members_;
    JoinPort& port_;
    std::optional<topology::SiteSurvey> sites_;  // of rank 0, once it leads
    std::vector<Ask> asks_;                      // that are not answered yet
    std::uint32_t ask_attempt_ = 0;
    Nanoseconds ask_again_at_ = kNever, until_ = kNever;
    std::unique_ptr<Surveyor> surveyor_;  // what this member was asked to measure
    std::size_t echoes_answered_ = 0;
};

}  // namespace mcastcoll::group
