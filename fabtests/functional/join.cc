// Joining: every form of the collective address, sets and their operations, asynchronous and overlapping
// joins, subgroups, members that join late or never, and repeated joins without leaking descriptors.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "base/file_descriptor.h"
#include "mcastcoll/mcastcoll.h"
#include "support/process.h"
#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;
using std::chrono::milliseconds;

// Runs one small broadcast from the member `root` of the group, which shows that the group has these members
// in this order.
void prove(Member& me, const Join& group, const std::vector<unsigned>& order, std::size_t root) {
    if (std::find(order.begin(), order.end(), me.rank()) == order.end()) return;
    const std::uint64_t seed = mix(me.options().seed, root, order.size());
    Buffer buffer(32 * order.size());
    buffer.poison();
    if (order[root] == me.rank()) buffer.fill(seed);
    me.finish(me.broadcast(group, buffer.data(), buffer.size(), root));
    buffer.check(seed, "broadcast in a new group");
}

void prove_all(Member& me, const Join& group, const std::vector<unsigned>& order) {
    for (std::size_t root = 0; root < order.size(); ++root) prove(me, group, order, root);
}

std::vector<unsigned> all_ranks(const Member& me) {
    std::vector<unsigned> ranks(me.size());
    for (unsigned i = 0; i < me.size(); ++i) ranks[i] = i;
    return ranks;
}

bool contains(const std::vector<unsigned>& ranks, unsigned rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

void join_by_set_address(Member& me) {
    const auto set = me.all_members();
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    CHECK_RETURNS(0, fi_av_set_addr(set.get(), &address));
    const auto group = me.start_join(set.get(), address);
    me.finish(*group);
    CHECK(group->mc->fid.fclass == FI_CLASS_MC);
    CHECK(group->mc->fid.context == group.get());
    prove_all(me, *group, all_ranks(me));
    me.meet();
}

void join_by_no_address(Member& me) {
    const auto set = me.all_members();
    const auto group = me.start_join(set.get(), FI_ADDR_NOTAVAIL);
    me.finish(*group);
    prove_all(me, *group, all_ranks(me));
    me.meet();
}

void join_by_group(Member& me) {
    const auto set = me.all_members();
    const auto first = me.join(set.get());
    const auto second = me.start_join(set.get(), first->address());
    me.finish(*second);
    CHECK(first->address() != second->address());
    prove_all(me, *second, all_ranks(me));
    prove_all(me, *first, all_ranks(me));
    me.meet();
}

// Addresses other than indices (FI_AV_MAP): sets are filled address by address.
void address_map(Member& me) {
    const auto set = me.set_of(all_ranks(me));
    const auto group = me.join(set.get());
    prove_all(me, *group, all_ranks(me));
    me.meet();
}

// The set may be closed as soon as the join is complete.
void set_closed_before_group(Member& me) {
    auto set = me.all_members();
    const auto group = me.join(set.get());
    set.reset();
    prove_all(me, *group, all_ranks(me));
    me.meet();
}

void join_ranks(Member& me, const std::vector<unsigned>& order) {
    if (contains(order, me.rank())) {
        const auto set = me.set_of(order);
        const auto group = me.join(set.get());
        prove_all(me, *group, order);
    }
    me.meet();
}

void subgroups(Member& me) {
    std::vector<unsigned> reversed = all_ranks(me);
    std::reverse(reversed.begin(), reversed.end());
    join_ranks(me, reversed);
    std::vector<unsigned> even, odd;
    for (const unsigned rank : all_ranks(me)) (rank % 2 == 0 ? even : odd).push_back(rank);
    join_ranks(me, even);
    join_ranks(me, odd);
    join_ranks(me, {me.size() - 1, 0});
    std::vector<unsigned> rotated = all_ranks(me);
    std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
    join_ranks(me, rotated);
}

void group_of_one(Member& me) {
    const auto set = me.set_of({me.rank()});
    const auto group = me.join(set.get());
    prove_all(me, *group, {me.rank()});
    me.finish(me.barrier(*group));
    me.meet();
}

void set_by_range(Member& me) {
    // Every second address, starting with the second.
    fi_av_set_attr attr{};
    attr.count = me.size();
    attr.start_addr = me.address_of(1);
    attr.end_addr = me.address_of(me.size() - 1);
    attr.stride = 2;
    fid_av_set* raw = nullptr;
    CHECK_RETURNS(0, fi_av_set(me.av(), &attr, &raw, nullptr));
    const Fid<fid_av_set> set(raw);
    std::vector<unsigned> order;
    for (unsigned rank = 1; rank < me.size(); rank += 2) order.push_back(rank);
    if (contains(order, me.rank())) prove_all(me, *me.join(set.get()), order);
    me.meet();
}

// Checks the members of a set and their order after each operation on the set, by broadcasts from each root.
void set_operations(Member& me) {
    CHECK(me.size() >= 4);
    const auto expect = [&](fid_av_set* set, const std::vector<unsigned>& order) {
        if (contains(order, me.rank())) prove_all(me, *me.join(set), order);
        me.meet();
    };
    {
        const auto set = me.set_of({3, 1});
        const auto more = me.set_of({0, 1, 2});
        CHECK_RETURNS(0, fi_av_set_union(set.get(), more.get()));
        expect(set.get(), {3, 1, 0, 2});
        CHECK_RETURNS(0, fi_av_set_remove(set.get(), me.address_of(1)));
        expect(set.get(), {3, 0, 2});
        CHECK_RETURNS(0, fi_av_set_insert(set.get(), me.address_of(1)));
        expect(set.get(), {3, 0, 2, 1});
    }
    {
        const auto set = me.set_of({3, 2, 1, 0});
        const auto some = me.set_of({0, 1, 3});
        CHECK_RETURNS(0, fi_av_set_intersect(set.get(), some.get()));
        expect(set.get(), {3, 1, 0});
    }
    {
        const auto set = me.set_of({2, 3, 0, 1});
        const auto some = me.set_of({3, 1});
        CHECK_RETURNS(0, fi_av_set_diff(set.get(), some.get()));
        expect(set.get(), {2, 0});
    }
}

// Several joins are under way before any of them is finished; the groups overlap and are started in different
// orders.
void overlapping_joins(Member& me) {
    const std::vector<std::vector<unsigned>> orders = {all_ranks(me), {0, 1}, {1, 2}, {2, 0}, {0, 1, 2}};
    std::vector<std::size_t> turn;
    for (std::size_t i = 0; i < orders.size(); ++i)
        if (contains(orders[i], me.rank())) turn.push_back(i);
    if (me.rank() % 2 == 1) std::reverse(turn.begin(), turn.end());
    std::vector<Fid<fid_av_set>> sets;
    std::map<std::size_t, std::unique_ptr<Join>> groups;
    for (const std::size_t i : turn) {
        sets.push_back(me.set_of(orders[i]));
        groups[i] = me.start_join(sets.back().get());
    }
    for (auto& [i, group] : groups) me.finish(*group);
    for (auto& [i, group] : groups) prove_all(me, *group, orders[i]);
    me.meet();
}

// Joins of the same set are matched in the order of the calls.
void joins_of_one_set(Member& me) {
    constexpr std::size_t kGroups = 6;
    const auto set = me.all_members();
    std::vector<std::unique_ptr<Join>> groups;
    for (std::size_t i = 0; i < kGroups; ++i) groups.push_back(me.start_join(set.get()));
    for (auto& group : groups) me.finish(*group);
    for (std::size_t i = 0; i < kGroups; ++i) {
        const std::uint64_t seed = mix(me.options().seed, i);
        Buffer buffer(64 * me.size());
        buffer.poison();
        if (me.rank() == i % me.size()) buffer.fill(seed);
        me.finish(me.broadcast(*groups[i], buffer.data(), buffer.size(), i % me.size()));
        buffer.check(seed, "one of several groups of the same members");
    }
    me.meet();
}

void late_member(Member& me) {
    constexpr milliseconds kLate{700};
    constexpr std::size_t kCalled = 0, kCame = 1;  // words of the board
    const auto set = me.all_members();
    const bool late = me.rank() == me.size() - 1;
    auto& words = me.board().words;
    me.meet();
    if (late) {
        // A join is asynchronous: the call does not wait for the others.
        me.wait_until("the others' calls", [&] { return words[kCalled].load() + 1 == me.size(); });
        std::this_thread::sleep_for(kLate);
        words[kCame] = 1;
    }
    const auto group = me.start_join(set.get());
    words[kCalled].fetch_add(1);
    me.finish(*group);
    CHECK(words[kCame] == 1);
    prove_all(me, *group, all_ranks(me));
    me.meet();
}

// While one group waits for a late member, other groups work.
void late_join_delays_no_member(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const bool late = me.rank() == 0;
    std::unique_ptr<Join> second;
    if (!late) second = me.start_join(set.get());
    for (int i = 0; i < 5; ++i) prove_all(me, *group, all_ranks(me));
    if (!late) CHECK(!second->done);
    me.meet();
    if (late) second = me.start_join(set.get());
    me.finish(*second);
    prove_all(me, *second, all_ranks(me));
    me.meet();
}

void member_never_joins(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    if (me.rank() != me.size() - 1) {
        const auto hopeless = me.start_join(set.get());
        me.wait_until("the error event of a join that cannot complete", [&] { return hopeless->done; });
        CHECK(hopeless->error == FI_ETIMEDOUT);
        Ticket& ticket = me.new_ticket();
        CHECK(fi_barrier(me.ep(), hopeless->address(), &ticket) < 0);
        me.drop(ticket);
    }
    me.meet();
    prove_all(me, *group, all_ranks(me));
    me.meet();
}

// Redirects standard error to a file during this object's life.
class StandardError {
  public:
    StandardError() : file_(::memfd_create("stderr", MFD_CLOEXEC)), real_(::dup(STDERR_FILENO)) {
        CHECK(file_.valid() && real_.valid() && ::dup2(file_.get(), STDERR_FILENO) == STDERR_FILENO);
    }
    ~StandardError() { ::dup2(real_.get(), STDERR_FILENO); }
    std::string text() const {
        std::string text(std::size_t{1} << 16, ' ');
        const ssize_t got = ::pread(file_.get(), text.data(), text.size(), 0);
        text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return text;
    }

  private:
    const mcastcoll::FileDescriptor file_, real_;
};

// A set of all members, with a secret.
Fid<fid_av_set> all_members_with(Member& me, std::array<std::uint8_t, 16> key) {
    fi_av_set_attr attr{};
    attr.count = me.size();
    attr.start_addr = attr.end_addr = FI_ADDR_NOTAVAIL;
    attr.comm_key = key.data();
    attr.comm_key_size = key.size();
    fid_av_set* raw = nullptr;
    CHECK_RETURNS(0, fi_av_set(me.av(), &attr, &raw, nullptr));
    Fid<fid_av_set> set(raw);
    for (const unsigned rank : all_ranks(me)) CHECK_RETURNS(0, fi_av_set_insert(raw, me.address_of(rank)));
    return set;
}

// Rank 0 has another secret than the other members, so their hellos have the id of another group for rank 0,
// which logs the possible cause.
void members_with_different_secrets(Member& me) {
    const auto set = all_members_with(me, {static_cast<std::uint8_t>(me.rank() == 0)});
    {
        const StandardError log;
        const auto hopeless = me.start_join(set.get());
        me.wait_until("the end of a join of members with different secrets", [&] { return hopeless->done; });
        CHECK(hopeless->error == FI_ETIMEDOUT);
        const std::string text = log.text(),
                          why = "check that all members have the same FI_MCASTCOLL_KEY_FILE";
        CHECK(text.find("join failed: ") != std::string::npos);
        const auto first = text.find(why), last = text.rfind(why);
        CHECK(me.rank() != 0 || (first != std::string::npos && first < text.find("join failed: ")));
        CHECK(me.rank() != 0 || last > text.find("join failed: "));
    }
    me.meet();
}

// Members choose the authentication method accepted by all, and log the choice.
void members_that_prove_by(Member& me, const char* last_rank_would, const std::string& expected) {
    if (me.rank() + 1 == me.size())
        setenv("FI_MCASTCOLL_EXPERIMENT", fmt::format("mac={}", last_rank_would).c_str(), 1);
    const auto set = all_members_with(me, {7});
    const StandardError log;
    const auto group = me.join(set.get());
    prove(me, *group, all_ranks(me), 0);
    me.meet();
    const std::string text = log.text();
    if (text.find("packets are authenticated by " + expected) == std::string::npos)
        fail("not by {}: {}", expected, text);
}

void close_and_rejoin(Member& me) {
    // Inner providers connect on first use, which may be a late repair: this many descriptors may appear at
    // any time.
    const std::size_t connections = 4 * me.size();
    const std::size_t rounds = me.options().large ? 1000 : 2 * connections + 30;
    const auto set = me.all_members();
    const auto once = [&](std::size_t round) {
        const auto group = me.join(set.get());
        prove(me, *group, all_ranks(me), round % me.size());
    };
    // The first joins open descriptors that stay open for the endpoint's life.
    for (std::size_t round = 0; round < 2 * me.size(); ++round) once(round);
    me.meet();
    me.idle(milliseconds(200));
    const std::size_t before = open_descriptors();
    for (std::size_t round = 0; round < rounds; ++round) once(round);
    me.meet();
    // A closed group may linger for other members, for a limited time. A leak would be at least one
    // descriptor a round.
    std::size_t after = 0;
    const bool closed = me.wait_until(std::chrono::seconds(me.options().wait_s),
                                      [&] { return (after = open_descriptors()) <= before + connections; });
    if (!closed) fail("{} descriptors before {} joins and closes, {} after", before, rounds, after);
    me.meet();
}

// Some members close a group while the rest still use it.
void close_while_others_work(Member& me) {
    const auto set = me.all_members();
    auto group = me.join(set.get());
    const std::uint64_t seed = mix(me.options().seed, 99);
    Buffer buffer((me.options().is_mcastcoll() ? 100'000 : 1000) * me.size());
    for (int i = 0; i < 3; ++i) {
        buffer.poison();
        if (me.rank() == 0) buffer.fill(seed);
        if (me.rank() == me.size() - 1) std::this_thread::sleep_for(milliseconds(50));
        me.finish(me.broadcast(*group, buffer.data(), buffer.size(), 0));
        buffer.check(seed, "broadcast to a slow member");
    }
    group.reset();
    me.meet();
}

// Policies set on the set: rank 0's policies apply, regardless of those of the remaining members and of the
// variables. The log names the policies of groups with multicast.
void policies_by_set(Member& me) {
    constexpr const char *kRepairs[] = {"pull", "push", "sync", "auto"},
                         *kRootSyncs[] = {"none", "delay", "random", "adaptive"};
    const auto set = me.all_members();
    fi_mcastcoll_set_ops* ops = nullptr;
    void** where = reinterpret_cast<void**>(&ops);
    CHECK_RETURNS(-FI_ENOSYS, fi_open_ops(&set->fid, "something else", 0, where, nullptr));
    CHECK_RETURNS(-FI_EINVAL, fi_open_ops(&set->fid, FI_MCASTCOLL_SET_OPS, 1, where, nullptr));
    CHECK_RETURNS(0, fi_open_ops(&set->fid, FI_MCASTCOLL_SET_OPS, 0, where, nullptr));
    CHECK(ops->size == sizeof *ops);
    CHECK_RETURNS(-FI_EINVAL, ops->set_repair(nullptr, FI_MCASTCOLL_REPAIR_PUSH));
    CHECK_RETURNS(-FI_EINVAL, ops->set_repair(set.get(), 4));
    CHECK_RETURNS(-FI_EINVAL, ops->set_channels(set.get(), 0));
    CHECK_RETURNS(-FI_EINVAL, ops->set_channels(set.get(), 65));
    CHECK_RETURNS(-FI_EINVAL, ops->set_root_sync(set.get(), FI_MCASTCOLL_ROOT_SYNC_DELAY, 100'001));
    for (int repair = FI_MCASTCOLL_REPAIR_PULL; repair <= FI_MCASTCOLL_REPAIR_AUTO; ++repair)
        for (int sync = FI_MCASTCOLL_ROOT_SYNC_NONE; sync <= FI_MCASTCOLL_ROOT_SYNC_ADAPTIVE; ++sync) {
            const bool leads = me.rank() == 0;
            CHECK_RETURNS(0, ops->set_repair(set.get(), leads ? repair : FI_MCASTCOLL_REPAIR_PUSH));
            CHECK_RETURNS(0, ops->set_channels(set.get(), leads ? 3 : 5));
            CHECK_RETURNS(0, ops->set_root_sync(set.get(), leads ? sync : FI_MCASTCOLL_ROOT_SYNC_NONE, 40));
            const StandardError log;
            const auto group = me.join(set.get());
            fi_mcastcoll_group_ops* group_ops = nullptr;
            CHECK_RETURNS(0, fi_open_ops(&group->mc->fid, FI_MCASTCOLL_GROUP_OPS, 0,
                                         reinterpret_cast<void**>(&group_ops), nullptr));
            fi_mcastcoll_group_shape shape{};
            CHECK_RETURNS(0, group_ops->get_shape(group->mc.get(), &shape));
            std::uint64_t naks = 1;
            CHECK_RETURNS(0, group_ops->get_naks_received(group->mc.get(), &naks));
            CHECK_RETURNS(-FI_EINVAL, group_ops->get_naks_received(group->mc.get(), nullptr));
            std::uint64_t received = 0;
            CHECK_RETURNS(0, group_ops->get_counter(group->mc.get(), "probes_received", &received));
            CHECK_RETURNS(-FI_ENOENT, group_ops->get_counter(group->mc.get(), "probes", &received));
            CHECK_RETURNS(-FI_EINVAL, group_ops->get_counter(group->mc.get(), nullptr, &received));
            CHECK_RETURNS(-FI_EINVAL, group_ops->get_counter(group->mc.get(), "probes_sent", nullptr));
            CHECK(shape.members == all_ranks(me).size() && shape.hosts >= 1 && shape.hosts <= shape.members &&
                  shape.sites >= 1 && shape.sites <= shape.hosts);
            for (int i = 0; i < 5; ++i) prove_all(me, *group, all_ranks(me));
            const std::string text = log.text();
            for (const std::string& agreed : {fmt::format("repair {}, ", kRepairs[repair]),
                                              fmt::format("root synchronisation {}, ", kRootSyncs[sync])})
                if (text.find(", window ") != std::string::npos && text.find(agreed) == std::string::npos)
                    fail("no '{}' in {}", agreed, text);
            me.finish(me.barrier(*group));
            me.meet();
        }
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_join",
                    "Joining collective groups: addresses, sets, order, overlap, lateness, closing");
    program.add({"join with the set's address", join_by_set_address});
    program.add({.name = "join with FI_ADDR_NOTAVAIL", .body = join_by_no_address, .only_mcastcoll = true});
    program.add(
        {.name = "join with an existing group's address", .body = join_by_group, .only_mcastcoll = true});
    program.add({.name = "addresses from an FI_AV_MAP",
                 .body = address_map,
                 .opening = {.av_type = FI_AV_MAP},
                 .only_mcastcoll = true});
    program.add({"set closed before the group", set_closed_before_group});
    program.add({.name = "subgroups in every order", .body = subgroups, .only_mcastcoll = true});
    program.add({.name = "groups of one", .body = group_of_one, .only_mcastcoll = true});
    program.add({"set from a range with a stride", set_by_range});
    program.add({.name = "operations on sets keep the order",
                 .body = set_operations,
                 .members = 4,
                 .only_mcastcoll = true});
    program.add({.name = "overlapping joins", .body = overlapping_joins, .only_mcastcoll = true});
    program.add({.name = "several joins of one set", .body = joins_of_one_set});
    program.add({.name = "a member comes late", .body = late_member});
    program.add(
        {.name = "a late join delays no member", .body = late_join_delays_no_member, .only_mcastcoll = true});
    program.add({.name = "a member never joins",
                 .body = member_never_joins,
                 .environment = {{"FI_MCASTCOLL_JOIN_TIMEOUT", "2000"}},
                 .only_mcastcoll = true});
    program.add({.name = "members with different secrets",
                 .body = members_with_different_secrets,
                 .environment = {{"FI_MCASTCOLL_JOIN_TIMEOUT", "2000"},
                                 {"FI_LOG_LEVEL", "warn"},
                                 {"FI_LOG_PROV", "mcastcoll"}},
                 .only_mcastcoll = true});
    for (const auto& [would, expected] : {std::pair{"gmac", "AES-128-GMAC"}, std::pair{"umac64", "UMAC-64"}})
        program.add({.name = fmt::format("all would prove by GMAC, and one by {}", would),
                     .body = [=](Member& me) { members_that_prove_by(me, would, expected); },
                     .environment = {{"FI_MCASTCOLL_EXPERIMENT", "mac=gmac"},
                                     {"FI_LOG_LEVEL", "info"},
                                     {"FI_LOG_PROV", "mcastcoll"}},
                     .only_mcastcoll = true});
    program.add({.name = "policies by set",
                 .body = policies_by_set,
                 .environment = {{"FI_MCASTCOLL_EXPERIMENT", "repair=push,root_sync=delay:7"},
                                 {"FI_LOG_LEVEL", "info"},
                                 {"FI_LOG_PROV", "mcastcoll"}},
                 .only_mcastcoll = true});
    program.add({.name = "close and rejoin", .body = close_and_rejoin, .timeout_s = 600});
    program.add({.name = "close while others work", .body = close_while_others_work});
    return program.run(argc, argv);
}
