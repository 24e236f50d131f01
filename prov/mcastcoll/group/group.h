// One member's life in a group: the join, the levels from the welcome on, operations, losses, the end.
//
//     greeting --> forming --> joined --> failed          failed and joined groups are closed by the
//         |           |                                   application; a closed one stays until every host's
//         +-> over <--+                                   leader has closed too: somebody may still need a
//                                                         repair
//
// Pure: it is given messages, datagrams, deaths and times, and speaks through its port. It lives in the
// provider (ofi/group.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "group/join.h"
#include "group/late_members.h"
#include "group/level_set.h"
#include "group/losses.h"
#include "group/port.h"
#include "group/roster.h"
#include "group/welcome.h"
#include "topology/policy.h"

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
    Group(const Plan& plan, Port& port);

    // What its words call it: this member's own name for the join until it is welcomed, then rank 0's. They
    // differ where a process was started again, and counts its joins anew.
    wire::JoinId id() const { return {plan_.id.list_hash, sequence_}; }
    bool formed() const { return levels_ != nullptr; }
    bool greeting() const { return !formed() && !ended_; }
    bool given_up() const { return !formed() && ended_; }
    bool joined() const { return joined_; }
    bool ended() const { return ended_; }
    bool closed() const { return closed_; }
    // Positive FI_E* code of a group that has failed after its welcome; 0: it has not.
    int error() const { return error_; }
    // The word of it, and how everybody is reached, for who asks later.
    wire::Ended ended_word() const { return {id(), static_cast<std::uint32_t>(error_), lost_}; }
    const Roster& roster() const { return roster_; }
    bool leads() const { return join_.leads(); }
    // What was agreed; once formed.
    const GroupSettings& agreed() const { return agreed_; }
    // Once formed.
    LevelSet& levels() { return *levels_; }
    const LevelSet& levels() const { return *levels_; }

    // Begins to greet; a group of one is complete at once.
    void start(Nanoseconds now);
    void on_hello(const wire::Hello& hello, Nanoseconds now);
    void on_ack() { join_.on_ack(); }
    void on_welcome(const wire::Welcome& welcome, Nanoseconds now);
    // A datagram of a member's survey, while this member greets.
    template <typename Message>
    void on_survey(void (Join::*take)(const Message&, Nanoseconds), const Message& message, Nanoseconds now) {
        (join_.*take)(message, now);
        follow_join(now);
    }
    // Another process than this formed group's member greets for it.
    bool formed_with_another(const wire::Hello& hello) const {
        return formed() && join_.greeted_by_another(hello);
    }
    // Somebody says so, who may be anybody: only the watch can tell that the member is gone.
    void doubt(Rank rank, Nanoseconds now);
    // A member says so of its part of this group, or of its join; because of whom, if it knows.
    void on_abort(std::uint32_t error, Rank lost, Nanoseconds now);

    void on_message(Bytes message, Nanoseconds now);
    // A multicast datagram with this group's key, from where it may come. False: it was not one of the
    // engine's.
    bool on_datagram(Bytes bytes, Nanoseconds now);
    // A member waits long for this one.
    void on_waiting(Rank from);
    // The process of this peer is gone, or cannot be reached any more. Acted upon by the next pump().
    void on_peer_lost(Outbox::Peer peer, int error, const std::string& reason);

    // Appends an operation, of a group that has joined; move() begins it. 0 or FI_E*. Port::completed()
    // follows.
    int submit(const levels::Request& request, Nanoseconds now);
    // Operations posted and not completed.
    std::size_t open_operations() const { return joined_ ? levels_->planner().open_operations() : 0; }
    // Moves everything that can be moved.
    void move(Nanoseconds now);
    // No more operations will come.
    void close(Nanoseconds now);
    // Closed, and nobody needs it.
    bool done() const;
    // All levels that this member has part in end, and each tells its own. Once, whoever finds out first.
    void fail(int error, Rank lost, Nanoseconds now);
    // Something was thrown in the middle of this group's work, so that what it has done so far is not to be
    // built on: it ends, with all that is open in it.
    void break_down(int error, Nanoseconds now) noexcept;

    // Runs timers, carries out effects.
    void pump(Nanoseconds now);
    bool busy() const;
    // Something came for this group since the last pump().
    bool touched() const { return touched_; }
    Nanoseconds next_deadline() const;

    topology::ReportedGroup report() const;

  private:
    void follow_join(Nanoseconds now);
    void welcome_everybody(Nanoseconds now);
    void begin(const wire::Welcome& welcome, Nanoseconds now);
    void make_levels(const wire::Welcome& welcome, Nanoseconds now);
    void check_formed(Nanoseconds now);
    void on_joined();
    void on_complete(std::uint64_t cookie, int error, Nanoseconds now) override;
    void lose(Rank rank, int error, const std::string& reason);
    void on_lost(Rank rank, int error, Nanoseconds now);
    void fail_for(const Losses::Loss& loss, Nanoseconds now);
    void check_departed(Nanoseconds now);
    Nanoseconds stall_at() const;
    void look_after_late(Nanoseconds now);
    void ask_late(Nanoseconds now);
    void tell_others();
    void tell_of_end(std::vector<Outbox::Peer> whom);
    void end_join(int error);
    void refuse_join(int error);

    const Plan plan_;
    Port& port_;
    Join join_;
    Roster roster_;
    Losses losses_;
    GroupSettings agreed_;
    std::uint32_t sequence_;  // of what the group is called
    std::unique_ptr<LevelSet> levels_;
    Nanoseconds moved_at_{};  // when an operation last began or came further
    bool touched_ = false;
    bool unfinished_ = false;      // move() was cut short
    bool barrier_posted_ = false;  // the one that ends a join over several levels
    bool joined_ = false, ended_ = false, closed_ = false;
    int error_ = 0;
    Rank lost_ = kNoRank;  // because of whom
    LateMembers late_;
};

}  // namespace mcastcoll::group
