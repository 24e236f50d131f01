// One member's life in a group: the join, the levels from the welcome on, operations, losses, the end.
//
//     greeting --> forming --> joined --> failed          whatever it is in, the application closes it; a
//         |           |          |          |             closed one stays until every host's leader has
//         +-> over <--+          +----------+--> closed   closed too: somebody may still need a repair
//
// Pure: it is given messages, datagrams, deaths and times, and speaks through its port. It lives in the
// provider (ofi/group.h).
#pragma once

#include "group/join.h"
#include "group/level_set.h"
#include "group/welcome.h"

namespace mcastcoll::group {

struct Plan {
    wire::JoinId id;
    Rank self{};
    std::size_t members = 0;
    Nanoseconds deadline = kNever;  // of the join
    // This member's wish; rank 0's becomes the group's.
    GroupSettings settings;
    const topology::Policy& policy;
    std::span<const levels::Row> selection;
    Means means;
};

class Group final : private levels::Owner {
  public:
    enum class State : std::uint8_t {
        greeting,  // no welcome yet
        forming,   // welcomed; the levels connect
        joined,
        failed,  // after it had joined
        over,    // the join has ended without a group
        closed   // by the application
    };

    Group(const Plan& plan, Port& port);

    // What its words call it: this member's own name for the join until it is welcomed, then rank 0's. They
    // differ where a process was started again, and counts its joins anew.
    wire::JoinId id() const { return {plan_.id.list_hash, sequence_}; }
    State state() const { return state_; }
    // The application can ask it for something, which fails if the group has failed.
    bool joined() const { return state_ == State::joined || state_ == State::failed; }
    // It has been welcomed: there are levels, from then on.
    bool formed() const { return levels_ != nullptr; }
    // Positive FI_E* code of a group that has failed after its welcome; 0: it has not.
    int error() const { return failure_.error; }
    // Which member was lost, and how that was found out, in words; empty where no member is to blame.
    const std::string& failure_text() const { return failure_text_; }
    // This member's message about the group's end, and how the members are reached, for members that ask
    // later.
    wire::Ended ended_word() const;
    // The message with a tag under this group's own key. Join messages of two runs of the same members with
    // the same key file have the same tag key, so a recorded one would be accepted in a later run.
    wire::ByteString of_group(const wire::Ended& word) const;
    bool is_of_group(Bytes told) const { return formed() && wire::proven(told, words_key_).has_value(); }
    // While the group forms, members without the group's key can still end it; once it is joined they cannot.
    bool takes_words_of_join() const { return !plan_.means.key || !formed() || state_ == State::forming; }
    const Roster& roster() const { return roster_; }
    const Join& join() const { return join_; }
    // What was agreed; once formed.
    const GroupSettings& agreed() const { return agreed_; }
    // Once formed.
    LevelSet& levels() const { return *levels_; }
    // The same, for people.
    topology::ReportedGroup report() const;

    // Begins to greet; a group of one is complete at once.
    void start(Nanoseconds now);
    // Something of the join has come: Join does it, and the group follows.
    void on_join(FunctionRef<void(Join&)> it, Nanoseconds now);
    // This member leads its host, or another does.
    void on_part(const wire::WelcomePart& part, Nanoseconds now);
    void on_host_welcome(const wire::HostWelcome& welcome, Nanoseconds now);
    // Somebody says so, who may be anybody: only the watch can tell that the member is gone.
    void doubt(Rank rank, Nanoseconds now);
    // A member says so of its part of this group, or of its join; because of whom, if it knows.
    void on_abort(std::uint32_t error, Rank lost, Nanoseconds now);

    void on_message(MutableBytes message, Nanoseconds now);
    // A multicast datagram with this group's key, from where it may come. False: it was not one of the
    // engine's.
    bool on_datagram(MutableBytes bytes, Nanoseconds now);
    // A member waits long for this one.
    void on_waiting(Rank from);
    // The process of this peer is gone, or cannot be reached any more. Acted upon by the next pump().
    void on_peer_lost(Outbox::Peer peer, int error, const std::string& reason);

    // Begins an operation, of a group that has joined. refused: 0 as soon as it is open, from when on
    // Port::completed() follows whatever happens; or why it is not, FI_E*.
    void submit(const levels::Request& request, int& refused, Nanoseconds now);
    // No more operations will come.
    void close(Nanoseconds now);
    // Closed, and nobody needs it.
    bool done() const;
    // All levels that this member has part in end, and each tells its own. Once, whoever finds out first; an
    // error of 0 is none.
    void fail(const Losses::Loss& loss, Nanoseconds now);
    // Something was thrown in the middle of this group's work, so that what it has done so far is not to be
    // built on: it ends, with all that is open in it.
    void break_down(int error, Nanoseconds now) noexcept;

    // Runs timers, carries out effects.
    void pump(Nanoseconds now);
    // Which way comes what it waits for: anything, where that cannot be told.
    engine::Expectation expects() const;
    // It needs the next pump() soon.
    bool busy() const;
    // After a failure: members are still to be sent word of it, as soon as there is room for messages.
    bool telling() const;
    Nanoseconds next_deadline() const;

  private:
    void welcome_everybody(Nanoseconds now);
    void lead_host(const wire::Welcome& welcome, Bytes whole, Nanoseconds now);
    void begin(Standing&& standing, Bytes whole, Nanoseconds now);
    void pass_on(const wire::Agreement& agreement, const levels::Placement& placement, Bytes whole);
    bool names_this_process(const wire::ByteString& address, const wire::ByteString& watch_point) const;
    bool is_less_secure(const wire::Agreement& agreement) const;
    void refuse_less_secure(const wire::ByteString& leader, std::uint32_t sequence);
    void end_without_memory(const Error& error);
    void check_formed(Nanoseconds now);
    // Moves everything that can be moved.
    void move(Nanoseconds now);
    void on_joined(Nanoseconds now);
    void on_complete(std::uint64_t cookie, int error, Nanoseconds now) override;
    void on_lost(const Losses::Loss& loss, Nanoseconds now);
    bool operations_open() const;
    void lose_patience(Nanoseconds now);
    void name_stray(Nanoseconds now);
    void end_join(int error);
    void break_off(const Losses::Loss& loss, State before, Nanoseconds now);
    void tell_others(Rank lost, bool had_joined);
    void name_lost(Rank lost);

    const Plan plan_;
    Port& port_;
    State state_ = State::greeting;
    Join join_;
    Nanoseconds half_time_ = kNever;  // of the join, until it has passed
    Arrival arrival_;
    wire::ByteString leader_address_;  // rank 0's private one, once it is welcomed
    Roster roster_;
    Losses losses_;
    Losses::Loss failure_;
    std::string failure_text_;
    std::set<Rank> told_deaths_;  // because of whom others were told of the end
    GroupSettings agreed_;
    std::uint32_t sequence_;   // of what the group is called
    wire::JoinKey words_key_;  // once it is formed, if there are proofs
    std::unique_ptr<LevelSet> levels_;
    Patience patience_;
    bool touched_ = false;     // something came since the last pump()
    bool unfinished_ = false;  // move() was cut short
};

}  // namespace mcastcoll::group
