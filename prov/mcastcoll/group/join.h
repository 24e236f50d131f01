// How one member comes into a group, up to the welcome.
//
//     others          greet rank 0 by datagram, again and again, until it welcomes them
//     rank 0          gathers greetings; surveys the networks (group/survey.h); when it is complete()
//                     its caller makes the welcome (group/welcome.h), which members pass on to each other
//
// Every greeting may be lost, doubled or late, and whoever sends one may be anybody: the caller has looked
// where it came from. Before a join is over everybody has a deadline, so nobody waits for a member that never
// comes.
#pragma once

#include "base/function_ref.h"
#include "group/survey.h"

namespace mcastcoll::group {

class Join {
  public:
    enum class State : std::uint8_t {
        greeting,   // of rank 0: not everybody has greeted
        surveying,  // of rank 0: everybody has
        welcomed,
        failed
    };

    Join(const wire::JoinId& id, Rank self, std::size_t members, Nanoseconds deadline, JoinPort& port);

    // Begins to greet; rank 0 alone is complete at once.
    void start(Nanoseconds now);
    void on_hello(const wire::Hello& hello, Nanoseconds now);
    // Rank 0 knows of this member: no hurry.
    void on_ack() { acknowledged_ = true; }
    void on_survey(const wire::Survey& survey, Nanoseconds now) {
        if (state_ == State::greeting) survey_.on_survey(survey, now);
    }
    void on_echo(const wire::Echo& echo, Nanoseconds now) {
        if (under_way()) survey_.on_echo(echo, now);
    }
    void on_surveyed(const wire::Surveyed& surveyed, Nanoseconds) {
        if (state_ == State::surveying) survey_.on_surveyed(surveyed);
    }
    void on_timeout(Nanoseconds now);
    Nanoseconds next_deadline() const;

    State state() const { return state_; }
    // Of rank 0: the welcome is to be made.
    bool complete() const { return state_ == State::surveying && survey_.over(); }
    Rank self() const { return self_; }
    bool leads() const { return self_ == rank_of(0); }
    // Positive FI_E* code of a join that has failed by itself; 0 otherwise.
    int error() const { return error_; }

    // Rank 0, when complete: who has greeted, by rank, in the sites that were found.
    Guests guests() const { return survey_.settle(guests_); }
    // Rank 0, when complete: there is a welcome.
    void welcome() { state_ = State::welcomed; }
    // Others: whether this is the welcome that was waited for, and one that can be followed.
    bool accept(const wire::Welcome& welcome);
    // It is over without a group. Rank 0 tells those who have greeted, so that they need not wait for their
    // deadline, instead of the welcome that some may still be waiting for.
    void fail(int error);

    // Rank 0: another process than the one that has greeted greets for this rank.
    bool greeted_by_another(const wire::Hello& hello) const;

  private:
    bool under_way() const { return state_ == State::greeting || state_ == State::surveying; }
    void greet(Nanoseconds now);
    void adopt_miscounted(Nanoseconds now);
    void survey(Nanoseconds now);
    void tell_guests(int error);

    const wire::JoinId id_;
    const Rank self_;
    const std::size_t members_;
    const Nanoseconds deadline_;
    JoinPort& port_;
    State state_ = State::greeting;
    int error_ = 0;
    Nanoseconds greet_at_{};
    std::uint32_t attempt_ = 0;
    bool acknowledged_ = false;
    Guests guests_;  // of rank 0
    std::size_t guest_count_ = 0;
    SurveyRound survey_;
};

}  // namespace mcastcoll::group
