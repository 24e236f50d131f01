// The life of one member in a group: join, levels, operations, losses and close.
//
//     hello --> forming --> joined --> failed          The application may close the group in any state.
//         |           |          |          |             A closed group stays until every host leader has
//         +-> over <--+          +----------+--> closed   closed, because peers may need retransmissions.
//
// Contains no socket and no clock: messages, datagrams, failures and times come in as arguments, and output
// goes through the port. The provider's ports are in ofi/group.h.
#pragma once

#include "group/arrival.h"
#include "group/join.h"
#include "group/level_set.h"
#include "group/stall_timer.h"
#include "group/welcome.h"

namespace mcastcoll::group {

struct JoinParameters {
    wire::JoinId id;
    Rank self{};
    std::size_t members = 0;
    Nanoseconds deadline = kNever;  // at which an incomplete join fails
    // Requested by this member. Rank 0's settings become the group's.
    GroupSettings settings;
    const topology::Policy& policy;
    std::span<const levels::Row> selection;
    Means means;
};

class Group final : private levels::Hierarchy::Owner {
  public:
    enum class State : std::uint8_t {
        hello,    // no welcome yet
        forming,  // welcomed; the levels are connecting
        joined,
        failed,  // after the group had joined
        over,    // the join ended without a group
        closed   // by the application
    };

    Group(const JoinParameters& parameters, Port& port);

    // The join id in the group's messages: this member's own id until the welcome, then rank 0's. The two
    // differ after a process was restarted, because a restarted process numbers its joins anew.
    wire::JoinId id() const { return {parameters_.id.list_hash, sequence_}; }
    State state() const { return state_; }
    // Whether operations may be submitted. They fail if the group has failed.
    bool joined() const { return state_ == State::joined || state_ == State::failed; }
    // Whether the member has been welcomed. From then on levels exist.
    bool formed() const { return levels_ != nullptr; }
    // Positive FI_E* code of a group that failed after its welcome, else 0.
    int error() const { return failure_.error; }
    // Names the lost member and how the loss was detected. Empty if no member is to blame.
    const std::string& failure_text() const { return failure_text_; }
    // The message about the group's end, also for members that request the outcome later.
    wire::Ended ended_message() const;
    // Returns the message with an authentication tag under this group's own key. The tags of join messages
    // would not do: two runs of the same members with the same key file use the same key for these tags, so a
    // message recorded in one run would be accepted in the next.
    wire::ByteString of_group(const wire::Ended& message) const;
    bool is_of_group(Bytes sealed) const {
        return formed() && wire::proven(sealed, message_key_).has_value();
    }
    // Whether a message without the group's own key may end this group: with authentication only until the
    // group has joined, because members whose group has not formed lack this key.
    bool takes_join_messages() const {
        return !parameters_.means.key || !formed() || state_ == State::forming;
    }
    const Roster& roster() const { return roster_; }
    const Join& join() const { return join_; }
    // Call only once formed.
    LevelSet& levels() const { return *levels_; }
    // Describes the levels for mcastcoll-topo. Call only once formed.
    topology::ReportedGroup report() const;

    // Starts sending hellos. A group of one member completes at once.
    void start(Nanoseconds now);
    // Passes a join event to Join and acts on the result.
    void on_join(FunctionRef<void(Join&)> it, Nanoseconds now);
    // Takes a part of the welcome. For host leaders.
    void on_part(const wire::WelcomePart& part, Nanoseconds now);
    // Takes the welcome that refers to the host leader's memory. For members that do not lead their host.
    void on_host_welcome(const wire::HostWelcome& welcome, Nanoseconds now);
    // A hello for this rank from another process suggests that the member was replaced. Any host may have
    // sent the hello: only the process watch decides whether the member is gone.
    void suspect(Rank rank, Nanoseconds now);
    // A member reports the end of its part of this group or join. lost: the rank that caused the end, or
    // kNoRank.
    void on_abort(std::uint32_t error, Rank lost, Nanoseconds now);

    void on_message(MutableBytes message, Nanoseconds now);
    // Takes a multicast datagram with this group's key from a plausible source. Returns false if the datagram
    // is not a valid packet of the engine.
    bool on_datagram(MutableBytes bytes, Nanoseconds now);
    // The rank `from` reports that it has waited long for this member.
    void on_waiting(Rank from);
    // The process of this peer is gone or unreachable. The next pump() acts on the loss.
    void on_peer_lost(Outbox::Peer peer, int error, const std::string& reason);

    // Starts an operation on a joined group. Sets refused to 0 as soon as the operation is open (from then on
    // Port::completed() always follows), else to the FI_E* code of the refusal.
    void submit(const levels::Request& request, int& refused, Nanoseconds now);
    // Closes the group: the application submits no more operations.
    void close(Nanoseconds now);
    // Whether the group is closed and no member needs this member any longer.
    bool done() const;
    // Ends this member's levels; each level informs its members. Only the first failure counts. An error of 0
    // is ignored.
    void fail(const Losses::Loss& loss, Nanoseconds now);
    // Called when an exception interrupted this group's work. The state is no longer reliable, so the group
    // ends with all open operations.
    void break_down(int error, Nanoseconds now) noexcept;

    // Runs timers and carries out effects.
    void pump(Nanoseconds now);
    // The sources to poll for the open operations, or all sources if unknown.
    engine::PollHint poll_hint() const;
    // Whether the next pump() should come soon.
    bool busy() const;
    // Whether the group has failed and this member waits for room for messages to inform other members.
    bool is_informing() const;
    Nanoseconds next_deadline() const;

  private:
    void welcome_members(Nanoseconds now);
    void lead_host(const wire::Welcome& welcome, Bytes whole, Nanoseconds now);
    void begin(Standing&& standing, Bytes whole, Nanoseconds now);
    void forward_welcome(const wire::Agreement& agreement, const levels::Placement& placement, Bytes whole);
    bool names_this_process(const wire::ByteString& address, const wire::ByteString& watch_point) const;
    bool is_less_secure(const wire::Agreement& agreement) const;
    void refuse_less_secure(const wire::ByteString& leader, std::uint32_t sequence);
    void end_without_memory(const Error& error);
    void check_formed(Nanoseconds now);
    // Runs all levels until none makes progress, up to a bounded number of rounds.
    void move(Nanoseconds now);
    void on_joined(Nanoseconds now);
    void on_complete(std::uint64_t cookie, int error, Nanoseconds now) override;
    void on_lost(const Losses::Loss& loss, Nanoseconds now);
    bool operations_open() const;
    void check_stall(Nanoseconds now);
    void name_stray(Nanoseconds now);
    void end_join(int error);
    void break_off(const Losses::Loss& loss, State before, Nanoseconds now);
    void inform_others(Rank lost, bool had_joined);
    void name_lost(Rank lost);

    const JoinParameters parameters_;
    Port& port_;
    State state_ = State::hello;
    Join join_;
    Nanoseconds half_time_ = kNever;  // half of the join's time; kNever once it has passed
    Arrival arrival_;
    wire::ByteString leader_address_;  // rank 0's private address, known from the welcome on
    Roster roster_;
    Losses losses_;
    Losses::Loss failure_;
    std::string failure_text_;
    std::set<Rank> informed_deaths_;  // lost ranks for which others were informed
    std::uint32_t sequence_;          // part of the group's join id
    wire::JoinKey message_key_;       // derived when the group forms, if messages have tags
    std::unique_ptr<LevelSet> levels_;
    StallTimer stall_timer_;
    bool touched_ = false;     // an event came since the last pump()
    bool unfinished_ = false;  // move() stopped early
};

}  // namespace mcastcoll::group
