// The collective groups of an endpoint. Each is the fid_mc that fi_join_collective hands out, around one
// member's life in the group (group/group.h). It is fed by the station, and answers what that life asks of
// its process by the station's sockets, messages and watch; what it tells goes to the fid_mc and the
// application's queues.
#pragma once

#include <array>
#include <atomic>

#include "group/run_queue.h"
#include "ofi/bound_endpoint.h"
#include "ofi/request.h"
#include "ports/greetings.h"
#include "ports/group_multicast.h"
#include "ports/munge_secret.h"
#include "ports/process_watch.h"
#include "ports/team_level.h"
#include "provider/log.h"
#include "transport/wait_set.h"

namespace mcastcoll::ofi {

class GroupTable;

// Warns the user, once in a process, that groups have no shared memory here.
void say_no_shared_memory(std::string_view why) noexcept;

// What an endpoint has for all of its groups.
struct Facilities {
    explicit Facilities(BoundEndpoint& its_endpoint) : endpoint(its_endpoint) {}

    BoundEndpoint& endpoint;
    const Settings settings = provider_settings();
    MulticastSockets multicast{settings};
    Greetings greetings;
    FidOwner<fid_fabric> fabric;
    std::unique_ptr<Messenger> messenger;
    ProcessWatch watch;
    WaitSet wait_set;
    group::Joins joins{greetings};
    group::SecretExchanges secrets;            // of joins whose secret MUNGE carries
    std::shared_ptr<SealedSecret> own_secret;  // of those that this endpoint leads
    group::RoundTrips round_trips;
    wire::ByteString place;   // of this process, as greetings tell it
    bool report_due = false;  // something changed that mcastcoll-topo shows
};

// What the application asks of a join, in the words of groups.
struct JoinPlan {
    group::Plan core;
    group::MemberList members;            // inner addresses, normalised
    fi_addr_t token = 0;                  // what fi_mc_addr() shall say
    fi_addr_t parent = FI_ADDR_NOTAVAIL;  // the group that the application named as this one's parent
    void* context = nullptr;
    std::uint64_t counted_as = 0;  // what stands for the list where its joins are counted
    // Where MUNGE carries the secret. Until that is known nobody else has the key, so that nothing is proven.
    std::optional<MungeSecret::Plan> munge{};
    wire::ByteString set_key{};

    // Tags the join's messages and nothing else, since the process remembers it after the group is gone.
    wire::JoinKey words_key{};

    // The secret is known.
    void settle(const wire::Key& secret);
    void make_words_key();
    std::string name() const {
        return fmt::format("group {:x} of {}", core.id.list_hash & 0xffffff, members->size());
    }
};

// Operations of a group that are open: where the outcome of each goes, by the cookie that the group's levels
// know it by.
struct OpenOperation {
    void* context = nullptr;
    std::uint64_t flags = 0;
    int* over = nullptr;  // of a blocking call: where its outcome goes; null: to the completion queue
    std::shared_ptr<Copies> copies;
    bool is_open = false;
};

class OpenOperations {
  public:
    static constexpr std::size_t kMost = 256;

    OpenOperations() : operations_(kMost) {
        for (std::size_t i = kMost; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
    }

    bool full() const { return free_.empty(); }
    // May be asked without the lock.
    bool empty() const { return count_.load() == 0; }
    // Call only when not full. Throws nothing.
    std::uint32_t open(OpenOperation operation) {
        const std::uint32_t cookie = free_.back();
        free_.pop_back();
        operations_[cookie] = std::move(operation);
        operations_[cookie].is_open = true;
        ++count_;
        return cookie;
    }
    OpenOperation& at(std::uint32_t cookie) { return operations_[cookie]; }
    OpenOperation close(std::uint32_t cookie) {
        free_.push_back(cookie);
        --count_;
        return std::exchange(operations_[cookie], {});
    }

  private:
    std::vector<OpenOperation> operations_;
    std::vector<std::uint32_t> free_;  // never shorter than it was made
    std::atomic<std::uint64_t> count_{0};
};

// What applications call it is its fi_addr. It has more than 40 methods because 25 are the port's and five
// the joins', each a line or two for one of the facilities.
class Group final : public fid_mc, public group::Joins::Member, private group::Port {
  public:
    // `calls`: what the application may call on its fid_mc.
    Group(Facilities& shared, GroupTable& groups, fi_ops& calls, JoinPlan plan);
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    Facilities& facilities() { return shared_; }
    // False in a child of fork(): the group belongs to the parent.
    bool is_here() const { return shared_.endpoint.process.is_here(); }
    static Group& of(fid_mc& mc) { return static_cast<Group&>(mc); }
    const wire::JoinId& join_id() const override { return plan_.core.id; }
    std::size_t size() const { return plan_.members->size(); }
    Rank self() const { return plan_.core.self; }
    const group::MemberList& members() const override { return plan_.members; }
    const wire::JoinKey& key() const override { return plan_.words_key; }
    group::Group& core() override { return *core_; }
    const group::Group& core() const { return *core_; }
    // Once it is formed. Of what travels for this group: its own, and its engine's, which may be the same.
    std::array<GroupKey, 2> keys() const;

    // Begins to join, or to ask for the secret that it takes.
    void start(Nanoseconds now);
    // Runs timers, carries out effects.
    void pump(Nanoseconds now);
    Nanoseconds next_deadline() const;
    // Nothing of the join is for it any more.
    void leave_joins() noexcept {
        if (std::exchange(entered_, false)) shared_.joins.remove(*this);
    }

    bool comes_from(Rank rank, const group::Source& source) override;
    void within(Nanoseconds now, FunctionRef<void()> body) noexcept override;
    // A multicast datagram with this group's key.
    void on_datagram(MutableBytes bytes, const SocketAddress& source, Nanoseconds now);

    // 0 or -FI_E*. over: where the outcome of a blocking call goes; null: to the completion queue.
    ssize_t submit(const Request& request, int* over, Nanoseconds now);
    // A blocking call may go straight to the host's shared memory, past everything else and without the lock.
    // If it does it leaves afterwards.
    bool enter_team() {
        if (!operations_.empty() || !team_alone_.load(std::memory_order_acquire) || in_team_.exchange(true))
            return false;
        // Another thread may have submitted an operation meanwhile. submit() opens its operation before it
        // tests in_team_, so at most one of the two threads goes on.
        if (operations_.empty()) [[likely]]
            return true;
        leave_team();
        return false;
    }
    void leave_team() { in_team_.store(false, std::memory_order_release); }
    // Once the host's leader has made it.
    host::Team& team() { return static_cast<TeamLevel*>(core_->levels().host())->team(); }
    // fi_close() by the application: -FI_EBUSY while operations are open. The group lingers until it is done.
    int close(Nanoseconds now);
    // A turn of progress is to look at it.
    void wake() noexcept;
    // Adds this group's counters to the sums.
    void add_counters(engine::Counters& sum, group::LevelCounters& levels) const;

    // What these members can borrow of its address, or nothing: if it has one of its own, and somebody hears.
    std::optional<Loan> lend(const std::vector<wire::ByteString>& members);

    group::QueuePlace run;  // the table's

  private:
    void enter(Nanoseconds now);
    void await_secret(Nanoseconds now);
    ssize_t why_not_open() const;
    void write_error(std::uint32_t event, int error, std::uint64_t data);

    // group::Port
    GroupMulticast& multicast() override { return multicast_; }
    wire::Hello own_hello() const override;
    void greet(Rank to, std::uint32_t attempt, Bytes hello) override {
        shared_.greetings.greet((*plan_.members)[index_of(to)], attempt, wire::prove(hello, key()));
    }
    void send(Rank to, std::uint32_t attempt, Bytes datagram) override;
    const wire::Hello* miscounted_hello(Rank rank) override {
        return shared_.joins.miscounted_hello(*this, rank);
    }
    group::RoundTrips& round_trips() override { return shared_.round_trips; }
    Result<fi_addr_t> peer(const wire::ByteString& address) override {
        return shared_.messenger->peer(address);
    }
    void tell(std::vector<fi_addr_t> to, wire::ByteString word) override {
        shared_.messenger->tell(std::move(to), wire::prove(word, key()), plan_.token);
    }
    void tell_for_good(std::vector<fi_addr_t> to, wire::ByteString word) override {
        shared_.messenger->tell(std::move(to), wire::prove(word, key()));
    }
    void withdraw() override { shared_.messenger->withdraw(plan_.token); }
    bool can_send() const override { return shared_.messenger->can_send(account_); }
    void send_message(fi_addr_t to, const wire::HeaderBytes& header, Bytes payload) override {
        shared_.messenger->send(account_, to, header, payload);
    }
    void watch(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) override {
        shared_.watch.watch(peer, watch_point, now);
    }
    void look_at(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) override {
        shared_.watch.look_at(peer, watch_point, now);
    }
    Result<group::SharedBytes> find_table(const group::HostMemoryName& name) override {
        return find_team_table(name);
    }
    Result<std::unique_ptr<group::HostLevel>> open_host(const group::HostMembers& members) override {
        return open_team_level(members, OpenOperations::kMost);
    }
    void keyed() override;
    void changed() override;
    void join_ended(int error) override;
    void remember_ended(int error) override {
        if (entered_) shared_.joins.remember_ended(*this, error);
    }
    void failed(int error, Rank lost) override;
    void completed(std::uint64_t cookie, int error) override;
    void explain(std::string_view sentence) override {
        log_line(Level::info, "{}: {}", plan_.name(), sentence);
    }
    std::string stray_greeting() override;
    void warn(std::string_view sentence) override { log_line(Level::warn, "{}: {}", plan_.name(), sentence); }
    void warn_of_memory(std::string_view why) override { say_no_shared_memory(why); }
    std::string address_of(Rank rank) const override;
    std::string text_of(int error) const override { return fi_strerror(error); }

    Facilities& shared_;
    GroupTable& groups_;
    JoinPlan plan_;
    GroupMulticast multicast_;
    Messenger::Account account_;
    std::map<Rank, group::Source> sources_;  // where members' datagrams of the join came from
    OpenOperations operations_;
    // Blocking calls may go straight to the host's shared memory, and one does.
    std::atomic<bool> team_alone_{false}, in_team_{false};
    bool entered_ = false;                 // the joins know it
    std::unique_ptr<MungeSecret> secret_;  // while it is asked for, or members may ask for it
    std::unique_ptr<group::Group> core_;   // another one when the secret is known
};

// The groups of one endpoint, including closed ones that still linger for others' sake: by what the
// application calls them and by the keys of what comes for them; and what those that are gone have counted.
class GroupTable {
  public:
    // Takes it over, or throws and leaves it where it is.
    void add(std::unique_ptr<Group>&& group);
    // Also of one that could not be added.
    void remove(Group& group) noexcept;
    // By what the application calls it, until it has closed it.
    Group* find(fi_addr_t token) const { return look_up(by_token_, token); }
    void forget_token(Group& group) { by_token_.erase(group.fi_addr); }
    bool has_open() const { return !by_token_.empty(); }
    // By a key of its own, once it has them.
    void keyed(Group& group) {
        for (const GroupKey key : group.keys()) by_key_[static_cast<std::uint64_t>(key)] = &group;
    }
    Group* find_keyed(GroupKey key) const { return look_up(by_key_, static_cast<std::uint64_t>(key)); }

    // What a new group can borrow of another's address, for those who are to listen: of the group that the
    // application names, if it can lend; else of the smallest that has all the members.
    std::optional<Loan> find_loan(fi_addr_t named, const std::vector<wire::ByteString>& listeners) const;

    // Whatever is done with a group wakes it; busy ones, and so those that greet, are ready.
    void wake(Group& group) noexcept { queue_.wake(group); }
    bool any_busy() const {
        return std::ranges::any_of(queue_.ready(), [](const Group* group) { return group->core().busy(); });
    }
    bool any_greeting() const {
        return std::ranges::any_of(queue_.ready(), [](const Group* group) {
            return group->core().state() == group::Group::State::greeting;
        });
    }
    Nanoseconds next_deadline() const;
    // Wakes groups whose deadline has come, and a few of the others in turn: another process of their host
    // may have ended them, of which nothing tells but the memory that they share.
    void look_around(Nanoseconds now) noexcept;
    template <typename Body>
    void for_each_ready(Body&& body) {
        queue_.for_each_ready(body);
    }
    // Groups that are not busy, and have told of their failure, become idle.
    void settle() {
        queue_.settle(
            [](const Group& group) {
                return group.core().busy() || group.core().done() || group.core().telling();
            },
            [](const Group& group) { return group.next_deadline(); });
    }
    std::span<Group* const> ready() const { return queue_.ready(); }

    // Of all groups that are here, and of those that were.
    void sum_counters(engine::Counters& counters, group::LevelCounters& levels) const;
    // What came for nobody.
    engine::Counters& strays() { return ended_counters_; }

    // The last ones to come go first.
    void clear() {
        while (!groups_.empty()) {
            queue_.remove(*groups_.back());
            groups_.pop_back();
        }
    }
    bool empty() const { return groups_.empty(); }
    std::size_t size() const { return groups_.size(); }
    Group& operator[](std::size_t index) const { return *groups_[index]; }
    auto begin() const { return groups_.begin(); }
    auto end() const { return groups_.end(); }

  private:
    using Index = std::unordered_map<std::uint64_t, Group*>;
    static Group* look_up(const Index& index, std::uint64_t key) {
        const auto found = index.find(key);
        return found == index.end() ? nullptr : found->second;
    }

    std::vector<std::unique_ptr<Group>> groups_;
    Index by_token_, by_key_;
    group::RunQueue<Group> queue_;
    std::size_t next_idle_ = 0;  // of groups_, to be woken by the next look_around()
    engine::Counters ended_counters_;
    group::LevelCounters ended_levels_;
};

}  // namespace mcastcoll::ofi
