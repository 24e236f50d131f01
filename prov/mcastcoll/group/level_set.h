// The levels of a group (host, segment, site) in which one member takes part. Builds the levels, and moves
// messages between the levels and the process.
//
// A host leader reads the places of all members from the welcome and makes the engine and the host's shared
// state: the memory, and the table of all members in the memory, which the other processes of the host attach
// (Group). A join over more than one level ends with a barrier over these levels: no member receives data
// before it has the group.
#pragma once

#include "engine/engine.h"
#include "group/losses.h"
#include "group/port.h"
#include "group/roster.h"
#include "levels/exchange_level.h"
#include "levels/planner.h"
#include "levels/segment_level.h"
#include "levels/site_level.h"
#include "topology/map.h"
#include "wire/protection.h"

namespace mcastcoll::group {

// The resources of a process for each group.
struct Means {
    std::uint32_t message_bytes = 0;  // longest message, in bytes
    wire::JoinKey key{};              // for the authentication tags
    std::size_t max_open = 0;         // maximum number of open operations
    engine::MemorySource memory;
    Nanoseconds stall_timeout = kNever;
};

// The state of a member after the welcome.
struct Standing {
    const wire::Agreement& agreement;
    MemberTable table;
    std::unique_ptr<HostLevel> host{};  // null if no other member is on this host
    // Set on host leaders only.
    const wire::Welcome* welcome = nullptr;
    const topology::Map* map = nullptr;
};

class LevelSet {
  public:
    // owner: is notified of the end of each operation. roster: already filled from standing.table.
    LevelSet(Standing&& standing, Rank self, const Means& means, Roster& roster, Port& port,
             levels::Hierarchy::Owner& owner);
    void start(Nanoseconds now);

    const levels::Placement& placement() const { return placement_; }
    levels::Planner& planner() const { return *planner_; }
    // The engine among the leaders of this segment's hosts. Null on other members.
    engine::Engine* engine() const { return engine_.get(); }
    // Null if no other member is on this host.
    HostLevel* host() const { return host_level_.get(); }
    bool several() const {
        return placement_.hosts() < placement_.members() || placement_.segments().size() > 1;
    }
    GroupKey key() const { return key_; }

    // Whether the engine's own join is over, or there is no engine.
    bool engine_joined() const { return !engine_ || engine_joined_; }
    // Whether a barrier over all levels can start.
    bool connected() const { return site_level_.connected(); }

    void on_message(MutableBytes message, Nanoseconds now);
    // Returns true if the datagram was one of the engine's.
    bool on_datagram(MutableBytes datagram, Nanoseconds now);
    void on_timeout(Nanoseconds now);
    Nanoseconds next_deadline() const { return planner_->next_deadline(); }
    // Executes the engine's effects. Returns true if there were any.
    bool carry_out(Nanoseconds now);
    // Sends messages between segments and among all members. Returns true if there were any.
    bool move_messages();
    // Members outside the engine for which an operation has waited long. Returns each member once.
    std::vector<std::uint32_t> take_awaited_long() { return std::exchange(awaited_long_, {}); }

    // The failure detected by the engine. Error 0: no failure.
    Losses::Loss engine_failure() const { return engine_failure_; }
    // The failure detected by another process of this host. Error 0: no failure.
    Losses::Loss host_failure() const;
    // The lost member named in the host's memory, or kNoRank.
    Rank lost_here() const;
    // A lost member that another process of this host, or another host leader, has named.
    Rank lost_elsewhere() const;
    // Informs the engine that a member is gone. Returns false if the rank is not a member of the engine.
    bool engine_loses(Rank rank, int error, Nanoseconds now);
    // Informs the other levels that send messages.
    void lose(Rank rank);
    // Whether an open operation of these levels needs the rank.
    bool needs(std::uint32_t rank) const;
    // Whether block operations among all members are open.
    bool exchanges() const { return exchange_level_ && exchange_level_->busy(); }
    // The sources to poll for the open operations. An empty value means the host's memory.
    engine::PollHint poll_hint() const;
    // Whether open operations may wait for members outside the engine.
    bool waits_outside_engine() const { return host_level_ || exchanges(); }
    // A rank outside the engine for which an operation waits, or kNoRank.
    Rank awaited() const;
    void fail(int error, Rank lost, Nanoseconds now);

    void add_counters(engine::Counters& sum, LevelCounters& levels) const;

    // Logs how the levels were joined (in news.cc, as the other log texts).
    void log_joined() const;
    // Logs the algorithm of an operation, when it was chosen for the first time.
    void log_selection();
    // Logs the engine's decisions since the last call: which members receive the multicast, and which repair
    // and root synchronisation the automatic policies chose and why.
    void log_engine();
    // Describes the lost member and how this member detected the loss. reason: the process watch's text, or
    // null.
    std::string describe_loss(int error, Rank lost, const std::string* reason) const;
    topology::ReportedGroup report() const;

  private:
    void make_engine(const wire::Welcome& welcome, const Means& means);
    bool is_proven(wire::Protection& protection, MutableBytes packet, Rank to);

    Roster& roster_;
    Port& port_;
    const GroupKey key_;
    const topology::Policy policy_;
    const levels::Placement placement_;  // refers to the roster's numbers
    // Authenticate and encrypt the messages among all members, and the engine's packets.
    wire::Protection protection_, engine_protection_;
    std::uint64_t unproven_ = 0;
    const levels::Selection selection_;

    std::unique_ptr<engine::Engine> engine_;
    std::unique_ptr<levels::SegmentLevel> segment_level_;
    levels::SiteLevel site_level_;
    std::unique_ptr<levels::ExchangeLevel> exchange_level_;  // in groups of more than one host
    std::unique_ptr<HostLevel> host_level_;
    std::unique_ptr<levels::Planner> planner_;
    bool engine_joined_ = false;
    Losses::Loss engine_failure_;
    std::vector<std::uint32_t> awaited_long_;
    std::string no_multicast_;  // why this member has no multicast
    // On host leaders, for the report: the levels' connections, and the encoded places by rank.
    std::vector<topology::ReportedLevel> connections_;
    std::vector<wire::ByteString> places_;
    // The engine decisions that were last logged.
    std::uint32_t logged_map_ = 0;
    std::uint64_t logged_policy_changes_ = 0, logged_redundancy_changes_ = 0;
    engine::RootSync logged_root_sync_ = engine::RootSync::none;
};

}  // namespace mcastcoll::group
