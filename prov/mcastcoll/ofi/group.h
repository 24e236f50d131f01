// One collective group of an endpoint, behind the fid_mc that fi_join_collective hands out.
//
// Before the welcome it only greets its leader (rank 0), or, as the leader, counts greetings. From the
// welcome on it owns the levels of the group that this member takes part in: the shared memory of its host;
// as its host's leader the engine, and a share of a multicast address; the messages between sites, and those
// among all members. It is fed
// by the station and carries out what they want. When the application closes it, it stays with the station
// until every host's leader has closed too: somebody may still need a repair.
#pragma once

#include <rdma/fi_collective.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/ranges.h"
#include "group/join.h"
#include "group/losses.h"
#include "levels/conductor.h"
#include "levels/exchange_level.h"
#include "levels/segment_level.h"
#include "levels/site_level.h"
#include "mcastcoll/mcastcoll.h"
#include "ofi/engine_news.h"
#include "ofi/host_level.h"
#include "ofi/level_counters.h"
#include "ofi/request.h"
#include "provider/settings.h"
#include "topology/report.h"
#include "transport/joinable_transport.h"
#include "transport/multicast_queue.h"
#include "transport/rendezvous.h"
#include "wire/join.h"

namespace mcastcoll::ofi {

class LiveStation;

struct JoinPlan {
    wire::JoinId id;
    Rank self{};
    std::vector<wire::ByteString> members;  // inner addresses in rank order, normalised
    fi_addr_t token = 0;                    // what fi_mc_addr() shall say
    fi_addr_t parent = FI_ADDR_NOTAVAIL;    // the group that the application named as this one's parent
    void* context = nullptr;
    Nanoseconds deadline = kNever;  // of the join
    GroupSettings settings;         // this member's wish; rank 0's becomes the group's
};

class Group final : private group::JoinPort {
  public:
    Group(LiveStation& station, JoinPlan plan);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    fid_mc* mc() { return &mc_.fid; }
    fi_addr_t token() const { return plan_.token; }
    const wire::JoinId& id() const { return plan_.id; }
    bool greeting() const { return !formed() && !ended_; }
    bool given_up() const { return !formed() && ended_; }
    bool leads() const { return join_.leads(); }
    std::size_t size() const { return plan_.members.size(); }
    Rank self() const { return plan_.self; }
    // Of what travels for this group: its own, and its engine's if that differs.
    struct Keys {
        std::array<GroupKey, 2> keys{};
        std::size_t count = 0;
        const GroupKey* begin() const { return keys.data(); }
        const GroupKey* end() const { return keys.data() + count; }
    };
    Keys keys() const;

    // Begins to greet; a group of one is complete at once.
    void start(Nanoseconds now);
    void on_hello(const wire::Hello& hello, Nanoseconds now);
    // Another process than this formed group's member greets for it.
    bool formed_with_another(const wire::Hello& hello) const;
    // Somebody says so, who may be anybody: only the watch can tell that the member is gone.
    void doubt(Rank rank, Nanoseconds now);
    void on_ack() { join_.on_ack(); }
    void on_welcome(const wire::Welcome& welcome, Nanoseconds now);
    // A datagram of a member's survey, while this member greets.
    template <typename Message>
    void on_survey(void (group::Join::*take)(const Message&, Nanoseconds), const Message& message,
                   Nanoseconds now) {
        (join_.*take)(message, now);
        follow_join(now);
    }
    // Whether a datagram from here may be this member's. If so, its place is remembered.
    bool comes_from(Rank rank, const RendezvousSource& source);
    // A member says so of its part of this group, or of its join; because of whom, if it knows.
    void on_abort(std::uint32_t error, Rank lost, Nanoseconds now);
    void on_message(Bytes message, Nanoseconds now);
    // A multicast datagram with this group's key.
    void on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds now);
    // The process behind this private address is gone, or cannot be reached any more. Acted upon by the next
    // pump().
    void on_peer_lost(fi_addr_t messenger_peer, int error, const std::string& reason);

    // 0 or -FI_E*.
    ssize_t submit(const Request& request, Nanoseconds now) { return submit(request, nullptr, now); }
    // fi_close() by the application: -FI_EBUSY while operations are open. The group lingers until done().
    int close(Nanoseconds now);
    bool closed() const { return closed_; }
    bool done() const;
    // Something was thrown in the middle of this group's work, so that what it has done so far is not to be
    // built on: it ends, with all that is open in it.
    void break_down(int error, Nanoseconds now) noexcept;

    // Runs timers, carries out effects.
    void pump(Nanoseconds now);
    bool busy() const;
    // Something came for this group since the last pump().
    bool touched() const { return touched_; }
    Nanoseconds next_deadline() const;
    // Adds this group's counters to the sums.
    void add_counters(engine::Counters& sum, LevelCounters& levels) const;

    // For mcastcoll-topo; only of a group that is formed.
    bool reportable() const { return formed(); }
    topology::ReportedGroup report() const;

    // As the parent of others: it has an address of its own, and somebody hears it.
    bool can_lend() const;
    // The places of these members among those that this group's multicasts go to, or nothing when one is
    // none.
    std::optional<std::vector<std::uint32_t>> ranks_of(const std::vector<wire::ByteString>& members);

  private:
    struct McFid {
        fid_mc fid{};
        Group* group = nullptr;
    };
    struct Member {
        fi_addr_t messenger_peer = FI_ADDR_UNSPEC;
        wire::ByteString watch_point;
        SocketAddress source;  // of its multicasts; port 0 until a probe told it
        Nanoseconds doubt_at;  // not looked at for a doubt before
    };
    struct Pending {
        void* context = nullptr;
        std::uint64_t flags = 0;
        int* over = nullptr;  // of a blocking call: where its outcome goes
        std::shared_ptr<Copies> copies;
    };
    // Operations that may be open at once.
    static constexpr std::size_t kMostOpen = 256;
    // The cookie of the barrier that ends a join over several levels.
    static constexpr std::uint64_t kJoinCookie = UINT64_MAX;

    static int close_mc(fid* fid) noexcept;
    static int open_operations(fid* object, const char* name, std::uint64_t flags, void** operations,
                               void* context) noexcept;
    static int get_settings(fid_mc* mc, fi_mcastcoll_group_settings* settings) noexcept;
    static ssize_t run(fid_mc* mc, const fi_mcastcoll_request* request, int (*meanwhile)(void*),
                       void* argument) noexcept;
    static int get_shape(fid_mc* mc, fi_mcastcoll_group_shape* shape) noexcept;
    static int get_asked(fid_mc* mc, std::uint64_t* times) noexcept;
    static const char* advice(fid_mc* mc, const fi_mcastcoll_request* request) noexcept;
    // A blocking call goes straight to the host's shared memory, past everything else and without the lock.
    bool enter_team() {
        return shortcut_.load(std::memory_order_acquire) &&
               outstanding_.load(std::memory_order_acquire) == 0 &&
               !in_team_.exchange(true, std::memory_order_acquire);
    }
    ssize_t run_in_team(host::Operation& operation, int (*meanwhile)(void*), void* argument);
    bool leads_host() const;
    bool nap(const int& over);
    ssize_t run_over_levels(const Request& request, int (*meanwhile)(void*), void* argument);
    // over: where the outcome of a blocking call goes; null: to the completion queue.
    ssize_t submit(const Request& request, int* over, Nanoseconds now);
    int give_back(std::uint32_t cookie, int error, Nanoseconds now);

    // group_join.cc; the first are the join's port.
    wire::Hello own_hello() const override;
    void greet(std::uint32_t attempt, Bytes hello) override;
    void send(Rank to, std::uint32_t attempt, Bytes datagram) override;
    const wire::Hello* miscounted_hello(Rank rank) override;
    std::optional<Nanoseconds> round_trip(std::uint64_t one, std::uint64_t other) const override;
    void keep_round_trip(std::uint64_t one, std::uint64_t other, Nanoseconds round_trip) override;
    Result<fi_addr_t> peer(const wire::ByteString& private_address) override;
    int tell(std::vector<fi_addr_t> to, wire::ByteString word) override;
    void withdraw() override;
    void explain(std::string_view sentence) override;
    void follow_join(Nanoseconds now);
    void welcome_everybody(Nanoseconds now);
    void begin(const wire::Welcome& welcome, Nanoseconds now);

    // group_levels.cc
    bool formed() const { return placement_ != nullptr; }
    bool has_levels() const {
        return placement_->hosts() < placement_->members() || placement_->sites().size() > 1;
    }
    void form(const wire::Welcome& welcome, Nanoseconds now);
    void make_levels(const wire::Welcome& welcome, Nanoseconds now);
    void make_conductor();
    void make_engine(const wire::Welcome& welcome);
    void make_exchange();
    void make_team(Nanoseconds now);
    std::string team_name() const;
    Rank lost_here() const;
    void lose(Rank rank, int error, const std::string& reason);
    std::string describe_loss(int error, Rank lost) const;
    Nanoseconds stall_at() const;
    void check_stall(Nanoseconds now);
    void check_formed(Nanoseconds now);
    void on_joined();
    bool move_messages(Nanoseconds now);
    void take_completions(Nanoseconds now);
    void on_lost(Rank rank, int error, Nanoseconds now);
    void check_departed(Nanoseconds now);
    void fail_group(int error, Rank lost, Nanoseconds now);
    void end_levels(int error, Rank lost, Nanoseconds now);
    void tell_others(int error, Rank lost);
    std::string describe_levels() const;

    Carrier choose_carrier(const levels::Placement& placement) const;
    void choose_addresses(wire::Welcome& welcome, const SocketAddress& own_address,
                          const levels::Placement& placement);
    void explain_choice(const Group& parent, const engine::PlanChoice& choice);
    void join_address(const wire::Welcome& welcome);
    std::string lane_name() const;
    // Moves everything that can be moved.
    void move(Nanoseconds now);
    bool carry_out(Nanoseconds now);
    void carry_out(const engine::Effect& effect, Nanoseconds now);
    void flush_multicasts();
    void explain_join();
    void explain_selection();
    void end_join(int error);
    void refuse_join(int error);
    std::string name() const;

    LiveStation& station_;
    McFid mc_;
    JoinPlan plan_;

    group::Join join_;
    std::map<Rank, RendezvousSource> sources_;  // where members' datagrams came from
    bool touched_ = false;
    bool joined_ = false, ended_ = false;

    // Running.
    GroupKey key_{};
    Epoch epoch_{};
    GroupSettings agreed_;
    levels::Selection selection_;
    std::vector<wire::ByteString> places_;  // by rank, encoded
    std::unique_ptr<topology::Map> map_;
    std::unique_ptr<levels::Placement> placement_;
    std::unique_ptr<levels::Conductor> conductor_;
    std::unique_ptr<engine::Engine> engine_;  // among the leaders of this site's hosts, for those only
    std::unique_ptr<levels::SegmentLevel> segment_level_;
    std::unique_ptr<levels::SiteLevel> site_level_;
    std::unique_ptr<levels::ExchangeLevel> exchange_level_;  // in groups of more than one host
    std::unique_ptr<HostLevel> host_level_;
    wire::ByteString leader_point_;   // of this host's leader
    Nanoseconds attach_at_ = kNever;  // when to look for the host's shared memory again
    Nanoseconds moved_at_{};          // when an operation last began or came further
    bool unfinished_ = false;         // move() was cut short
    bool engine_joined_ = false, join_posted_ = false;
    // Whether blocking calls may use the team without the lock, and whether one does.
    std::atomic<bool> shortcut_{false}, in_team_{false};
    int error_ = 0;
    engine::Plan address_plan_ = engine::Plan::own;
    std::vector<Outlet> outlets_;  // one for each range of ranks; none without multicast
    Membership membership_;        // of this member's own range
    std::string no_multicast_;     // why this member has no multicast
    std::unordered_map<std::string, std::uint32_t> rank_by_address_;  // made when first asked for
    std::vector<Member> members_;
    std::vector<Pending> pending_;
    std::vector<std::uint32_t> free_pending_;
    std::atomic<std::uint64_t> outstanding_{0};
    bool closed_ = false;
    EngineNews news_;
    std::uint64_t wrong_source_ = 0;
    group::Losses losses_;
    MulticastQueue queue_;
    bool send_error_told_ = false;
};

}  // namespace mcastcoll::ofi
