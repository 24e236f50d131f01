// The levels of a group that one member takes part in: which there are, how they come to be, what goes
// between them and the process.
//
// A host's leader reads the places of all members in the welcome, and makes the engine and what its host
// shares: the memory, and the table of all members in it, which the others find (Group). When there is more
// than one level a join ends with a barrier over all of them, so that nobody speaks to a member that does not
// know the group yet.
#pragma once

#include "engine/engine.h"
#include "engine/ranges.h"
#include "group/members.h"
#include "levels/exchange_level.h"
#include "levels/planner.h"
#include "levels/segment_level.h"
#include "levels/site_level.h"
#include "topology/map.h"
#include "wire/protection.h"

namespace mcastcoll::group {

// What a process has for each of its groups.
struct Means {
    std::uint32_t message_bytes = 0;  // the longest message
    wire::JoinKey key{};              // that proofs are made with
    std::size_t most_open = 0;        // operations at once
    engine::MemorySource memory;
    Nanoseconds stall_timeout = kNever;
};

// What a member has once it is welcomed.
struct Standing {
    const wire::Agreement& agreement;
    MemberTable table;
    std::unique_ptr<HostLevel> host{};  // null: it is alone on its host
    // Of a host's leader.
    const wire::Welcome* welcome = nullptr;
    const topology::Map* map = nullptr;
};

class LevelSet {
  public:
    // owner: of the operations. roster: filled with the same table.
    LevelSet(Standing&& standing, Rank self, const Means& means, Roster& roster, Port& port,
             levels::Owner& owner);
    void start(Nanoseconds now);

    const levels::Placement& placement() const { return placement_; }
    levels::Planner& planner() const { return *planner_; }
    // Among the leaders of this segment's hosts, for those only; else null.
    engine::Engine* engine() const { return engine_.get(); }
    // Null for whoever is alone on its host.
    HostLevel* host() const { return host_level_.get(); }
    bool several() const {
        return placement_.hosts() < placement_.members() || placement_.segments().size() > 1;
    }
    GroupKey key() const { return key_; }

    // The engine's own join is over, if there is one.
    bool engine_joined() const { return !engine_ || engine_joined_; }
    // A barrier over all levels can begin.
    bool connected() const { return site_level_.greeted(); }

    void on_message(MutableBytes message, Nanoseconds now);
    // True: it was one of the engine's.
    bool on_datagram(MutableBytes datagram, Nanoseconds now);
    void on_timeout(Nanoseconds now);
    Nanoseconds next_deadline() const { return planner_->next_deadline(); }
    // What the engine wants done, what goes between segments and among all members: true if there was
    // anything.
    bool carry_out(Nanoseconds now);
    bool move_messages();
    // Members beyond the engine's that have been waited for long since the last call, each once.
    std::vector<std::uint32_t> take_awaited_long() { return std::exchange(awaited_long_, {}); }

    // The engine's loss, or one that others of this host have seen; error 0: none.
    Losses::Loss engine_failure() const { return engine_failure_; }
    Losses::Loss host_failure() const;
    // Whose death the host's memory tells of, or kNoRank.
    Rank lost_here() const;
    // A lost member that another process of this host, or another host's leader, has named.
    Rank lost_elsewhere() const;
    // Somebody is gone. True: the engine sees to it.
    bool engine_loses(Rank rank, int error, Nanoseconds now);
    void lose(Rank rank);
    bool needs(std::uint32_t rank) const;
    // Blocks go between all members.
    bool exchanges() const { return exchange_level_ && exchange_level_->busy(); }
    // Which way comes what the open operations wait for; neither: from the host's memory.
    engine::Expectation expects() const;
    // Whether members wait for others than those of the engine; and for whom, or kNoRank.
    bool waits_outside_engine() const { return host_level_ || exchanges(); }
    Rank awaited() const;
    void fail(int error, Rank lost, Nanoseconds now);

    void add_counters(engine::Counters& sum, LevelCounters& levels) const;

    // news.cc, for people. How the levels were joined.
    void tell_joined() const;
    // How an operation goes, when that was decided for the first time.
    void tell_selection();
    // What the engine has decided since it was last asked: who hears the multicast, which repair and which
    // root synchronisation the automatic policies take, and what made them.
    void tell_engine();
    // Who was lost, and how this member knows. reason: what its watch said, or null.
    std::string describe_loss(int error, Rank lost, const std::string* reason) const;
    topology::ReportedGroup report() const;

  private:
    void make_engine(const wire::Welcome& welcome, const Means& means);
    bool is_proven(wire::Protection& protection, MutableBytes packet, Rank to);

    Roster& roster_;
    Port& port_;
    const GroupKey key_;
    const topology::Policy policy_;
    const levels::Placement placement_;  // the numbers are the roster's
    // Of what goes among all members, and among the engine's.
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
    // Of a host's leader, for its report: what the levels connect, and the places by rank, encoded.
    std::vector<topology::ReportedLevel> connections_;
    std::vector<wire::ByteString> places_;
    // Of the engine's decisions, the last ones that were told.
    std::uint32_t told_verdict_ = 0;
    std::uint64_t told_policy_changes_ = 0, told_redundancy_changes_ = 0;
    engine::RootSync told_root_sync_ = engine::RootSync::none;
};

}  // namespace mcastcoll::group
