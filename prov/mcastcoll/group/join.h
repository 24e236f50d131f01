// The join of one member, up to the welcome.
//
//     others     send hellos (datagrams that ask to join) to their parent in the hello tree
//                (group/gathering.h), repeatedly, until they are welcomed
//     rank 0     receives all hellos in the end and surveys the networks (group/survey_round.h). Once
//                complete(), the caller makes the welcome (group/welcome.h), which members forward to
//                each other
//
// A hello may be lost, duplicated or late, and any host may be its sender: the caller has checked the source
// address. Every member has a deadline until the join is over, so no member waits forever for a missing one.
#pragma once

#include "base/function_ref.h"
#include "group/gathering.h"
#include "group/survey_round.h"

namespace mcastcoll::group {

class Join {
  public:
    enum class State : std::uint8_t {
        hello,      // on rank 0: hellos are missing
        surveying,  // on rank 0: all hellos are here
        welcomed,
        failed
    };

    Join(const wire::JoinId& id, Rank self, std::size_t members, Nanoseconds deadline, JoinPort& port);

    // Starts sending hellos. If rank 0 is the only member the join completes at once.
    void start(Nanoseconds now);
    void on_hello(const wire::Hello& hello, Nanoseconds now);
    // The parent has this member's hello, so this member repeats the hello slowly. An ack does not cover a
    // gathered subtree: for a complete subtree only on_collect() slows the hellos down.
    void on_ack() { acknowledged_ = gathering_.span() == 1 || !gathering_.complete(); }
    // The parent requests the hellos that this member has gathered.
    void on_collect(const wire::MessageHead& head);
    // A child sends hellos that it has gathered.
    void on_gathered_hellos(const wire::GatheredHellos& gathered, Nanoseconds now);
    void on_survey(const wire::Survey& survey, Nanoseconds now) {
        if (state_ == State::hello) survey_.on_survey(survey, now);
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
    // On rank 0: whether the survey is over, so that the caller must make the welcome.
    bool complete() const { return state_ == State::surveying && survey_.over(); }
    bool leads() const { return self_ == rank_of(0); }
    // Positive FI_E* code of a join that failed by itself, else 0.
    int error() const { return error_; }

    // On rank 0 when complete: the hellos by rank, with the sites found by the survey.
    Hellos hellos() const { return survey_.settle(gathering_.hellos()); }
    // Marks this member as welcomed. On rank 0 the caller does so when it has made the welcome.
    void welcome() {
        state_ = State::welcomed;
        gathering_.mark_forwarded();
    }
    // On other ranks: whether this member waits for a welcome and can work under this agreement.
    bool accept(const wire::Agreement& agreement);
    // Ends the join without a group, and informs the children, which would otherwise wait for their deadline.
    // On rank 0 also drops the welcome messages that are still queued.
    void fail(int error);

    // The rank to which this member sends hellos. Not for rank 0.
    Rank parent() const { return hello_parent(self_); }
    // Whether `rank` sends its hellos to this member.
    bool gathers(Rank rank) const { return gathering_.expects(rank); }
    // Whether this member has a hello of the same rank from another process.
    bool hello_is_of_another(const wire::Hello& hello) const;
    // Whether this child's hello has not arrived.
    bool misses(Rank rank) const { return gathers(rank) && gathering_.of(rank) == nullptr; }
    // Whether the hello is late: its process has already sent a hello here for the same join, or for a later
    // join of the list.
    bool has_sent(const wire::Hello& hello) const;
    // The hellos of the children so far.
    std::vector<const wire::Hello*> received() const { return gathering_.received(); }

  private:
    bool under_way() const { return state_ == State::hello || state_ == State::surveying; }
    void send_hello(Nanoseconds now);
    bool take(const wire::Hello& hello);
    void send_gathered(Outbox::Peer to, wire::GatheredHellos gathered);
    void adopt_miscounted(Nanoseconds now);
    void forward_if_complete(Nanoseconds now);
    void inform_children(int error);

    const wire::JoinId id_;
    const Rank self_;
    const std::size_t members_;
    const Nanoseconds deadline_;
    JoinPort& port_;
    State state_ = State::hello;
    int error_ = 0;
    Nanoseconds hello_at_ = kNever;  // the next hello is due; not on rank 0
    Nanoseconds adopt_at_ = kNever;  // the next adopt_miscounted() is due; only on members with children
    std::uint32_t attempt_ = 0;
    bool acknowledged_ = false;
    Gathering gathering_;
    SurveyRound survey_;
};

}  // namespace mcastcoll::group
