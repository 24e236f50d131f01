// How one member comes into a group, up to the welcome.
//
//     others     greet rank 0 by datagram, or one who gathers greetings for it (group/gathering.h), again
//                and again, until they are welcomed
//     rank 0     has all greetings in the end; surveys the networks (group/survey.h); when it is complete()
//                its caller makes the welcome (group/welcome.h), which members pass on to each other
//
// Every greeting may be lost, doubled or late, and whoever sends one may be anybody: the caller has looked
// where it came from. Before a join is over everybody has a deadline, so nobody waits for a member that never
// comes.
#pragma once

#include "base/function_ref.h"
#include "group/gathering.h"
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
    // Whoever this member greets knows of it: no hurry. Not of all that greet through it, until it is asked.
    void on_ack() { acknowledged_ = gathering_.span() == 1 || !gathering_.complete(); }
    // It is to pass on what it has gathered; somebody else does.
    void on_collect(const wire::WordHead& head);
    void on_guests(const wire::Guests& guests, Nanoseconds now);
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
    bool leads() const { return self_ == rank_of(0); }
    // Positive FI_E* code of a join that has failed by itself; 0 otherwise.
    int error() const { return error_; }

    // Rank 0, when complete: who has greeted, by rank, in the sites that were found.
    Guests guests() const { return survey_.settle(gathering_.guests()); }
    // Rank 0, when complete; there is a welcome.
    void welcome() {
        state_ = State::welcomed;
        gathering_.passed_on();
    }
    // Others: whether a welcome is waited for, and this is one that can be followed.
    bool accept(const wire::Agreement& agreement);
    // It is over without a group. Those who have greeted here are told, so that they need not wait for their
    // deadline; by rank 0 instead of the welcome that some may still be waiting for.
    void fail(int error);

    // Whom this member greets; another than rank 0 only.
    Rank parent() const { return greeting_parent(self_); }
    // Whether this rank greets here; and it is another process than the one that has.
    bool gathers(Rank rank) const { return gathering_.expects(rank); }
    bool greeted_by_another(const wire::Hello& hello) const;
    // It is to greet here, and has not.
    bool misses(Rank rank) const { return gathers(rank) && gathering_.of(rank) == nullptr; }
    // Whether the same process has greeted here, and not for an earlier join than this greeting is for.
    bool has_greeted(const wire::Hello& hello) const;
    // The greetings of those that greet here, as far as they have.
    std::vector<const wire::Hello*> heard() const { return gathering_.heard(); }

  private:
    bool under_way() const { return state_ == State::greeting || state_ == State::surveying; }
    void greet(Nanoseconds now);
    bool take(const wire::Hello& hello);
    void tell_gathered(Outbox::Peer to, wire::Guests guests);
    void adopt_miscounted(Nanoseconds now);
    void pass_on_if_complete(Nanoseconds now);
    void tell_guests(int error);

    const wire::JoinId id_;
    const Rank self_;
    const std::size_t members_;
    const Nanoseconds deadline_;
    JoinPort& port_;
    State state_ = State::greeting;
    int error_ = 0;
    Nanoseconds greet_at_ = kNever;  // of others than rank 0
    Nanoseconds adopt_at_ = kNever;  // of who gathers
    std::uint32_t attempt_ = 0;
    bool acknowledged_ = false;
    Gathering gathering_;
    SurveyRound survey_;
};

}  // namespace mcastcoll::group
