// Before rank 0 welcomes anybody it finds out which networks are one site (topology/site_survey.h says why):
// one member of each network measures round trips to those of the others.
//
// All of it goes by datagrams between the members' service addresses, which everybody knows from the
// application's list: what a stranger sends can neither name an address nor make anybody connect to one.
#pragma once

#include <span>

#include "group/port.h"
#include "topology/site_survey.h"

namespace mcastcoll::group {

// Measures round trips to other members when rank 0 asks for it: some echoes to each by datagram, the
// shortest counts. One that is lost is sent again, later each time. Bounded: who has not answered in time is
// not measured. Knows members by their ranks alone; where they are is the port's business.
class Surveyor {
  public:
    static constexpr Nanoseconds kPatience = Nanoseconds::from_ms(1500);
    // The echoes that a member waits for from each other one. Busy hosts answer late, but not each time.
    static constexpr unsigned kEchoes = 8;

    // Begins.
    Surveyor(const wire::JoinId& id, Rank self, const wire::Survey& survey, JoinPort& port, Nanoseconds now);

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
    const Nanoseconds deadline_;
    bool over_ = false;
    std::uint64_t next_stamp_ = 1;
};

// One member's part in it. Rank 0 asks again and again until all have told or the time is over.
class SurveyRound {
  public:
    // Echoes that are answered in one join: twice what the members of all networks may need.
    static constexpr std::size_t kMostEchoes = wire::kMostSurveyed * 3 * Surveyor::kEchoes;

    SurveyRound(const wire::JoinId& id, Rank self, std::size_t members, JoinPort& port);

    // Rank 0, when everybody has greeted: asks, and waits for answers until then.
    void lead(const Guests& guests, Nanoseconds until, Nanoseconds now);
    // Rank 0: nobody is left to tell anything, or the time is up.
    bool over() const { return asks_.empty(); }
    // Rank 0: the same guests, with the sites that were found in their places.
    Guests settle(Guests guests) const;

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
    void tell();

    const wire::JoinId id_;
    const Rank self_;
    const std::size_t members_;
    JoinPort& port_;
    std::optional<topology::SiteSurvey> sites_;  // of rank 0, once it leads
    std::vector<Ask> asks_;                      // that are not answered yet
    std::uint32_t ask_attempt_ = 0;
    Nanoseconds ask_again_at_ = kNever, until_ = kNever;
    std::optional<Surveyor> surveyor_;  // what this member was asked to measure
    std::size_t echoes_answered_ = 0;
};

}  // namespace mcastcoll::group
