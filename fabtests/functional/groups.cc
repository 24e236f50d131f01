// Many groups: thousands created and freed without a leak, dozens at once with traffic in all of them,
// subsets of every shape over every choice of multicast addresses, and the behaviour when addresses run out.
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>

#include "mcastcoll/mcastcoll.h"
#include "support/process.h"
#include "support/program.h"
#include "support/statistics.h"

namespace {

using namespace mcastcoll::fabtest;
using std::chrono::milliseconds;
using Ranks = std::vector<unsigned>;

Ranks all_ranks(const Member& me) {
    Ranks ranks(me.size());
    for (unsigned i = 0; i < me.size(); ++i) ranks[i] = i;
    return ranks;
}

bool contains(const Ranks& ranks, unsigned rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// A group of some ranks; empty on non-members.
struct Subgroup {
    Ranks ranks;
    std::unique_ptr<Join> join;
    bool mine() const { return join != nullptr; }
};

Subgroup make(Member& me, Ranks ranks, fi_addr_t parent = FI_ADDR_NOTAVAIL) {
    Subgroup group{std::move(ranks), nullptr};
    if (!contains(group.ranks, me.rank())) return group;
    const auto set = me.set_of(group.ranks);
    group.join = me.start_join(set.get(), parent);
    me.finish(*group.join);
    return group;
}

// Runs a broadcast from one member of the group, and checks every byte.
void prove(Member& me, const Subgroup& group, std::size_t root, std::size_t bytes, std::uint64_t seed) {
    if (!group.mine()) return;
    Buffer buffer(bytes);
    buffer.poison();
    if (group.ranks[root] == me.rank()) buffer.fill(seed);
    me.finish(me.broadcast(*group.join, buffer.data(), buffer.size(), root));
    buffer.check(seed, "a broadcast in a subgroup");
}

void prove_all(Member& me, const Subgroup& group) {
    // Roots: the first, one in the middle, which is in another range, and the last.
    const std::size_t last = group.ranks.size() - 1;
    for (const std::size_t root : std::set<std::size_t>{0, last / 2, last})
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{100'000}})
            prove(me, group, root, bytes, mix(me.options().seed, root, bytes));
    if (group.mine()) me.finish(me.barrier(*group.join));
}

Ranks random_subset(const Member& me, std::uint64_t draw) {
    Ranks ranks;
    for (unsigned rank = 0; rank < me.size(); ++rank)
        if (mix(draw, rank) % 2 == 0) ranks.push_back(rank);
    // The order is random: a rank in the subgroup does not depend on the rank in the parent.
    if (draw % 3 == 0) std::reverse(ranks.begin(), ranks.end());
    return ranks.size() < 2 ? all_ranks(me) : ranks;
}

// Resources of a process that a group may leak.
struct Holdings {
    std::size_t descriptors = 0, memberships = 0, resident = 0;  // bytes
};

std::size_t joined_groups() {
    std::ifstream table("/proc/net/igmp");
    std::string line;
    std::size_t count = 0;
    while (std::getline(table, line)) {
        unsigned group = 0;
        if (line.starts_with("\t") && std::sscanf(line.c_str(), " %8X", &group) == 1)
            count += ntohl(group) >> 24 == 239;
    }
    return count;
}

Holdings holdings() {
    return {open_descriptors(), joined_groups(), resident_bytes()};
}

// Waits until no resources of closed groups are left: they stay until the last member has closed, for a
// limited time.
void check_nothing_left(Member& me, const Holdings& before, std::size_t groups) {
    // Descriptors that may stay open: inner providers connect on first use, and peers are watched for their
    // death when an operation takes long.
    const std::size_t connections = 4 * me.size();
    CHECK(groups > 4 * connections);
    Holdings now;
    const bool done = me.wait_until(std::chrono::seconds(me.options().wait_s), [&] {
        now = holdings();
        // Other programs on this host join and leave meanwhile, but fewer than one group for every eight of
        // this test.
        return now.descriptors <= before.descriptors + connections &&
               now.memberships < before.memberships + groups / 8;
    });
    if (!done)
        fail("{} groups later: {} descriptors instead of {}, {} memberships instead of {}", groups,
             now.descriptors, before.descriptors, now.memberships, before.memberships);
}

// Forms a permanent group of all members, and then `count` short-lived groups of all or some members, with a
// broadcast in every fourth group.
void come_and_go(Member& me, std::size_t count) {
    const Subgroup parent = make(me, all_ranks(me));
    const auto rounds = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) {
            const Subgroup group = make(me, i % 2 == 0 ? all_ranks(me) : random_subset(me, i));
            if (i % 4 < 2) prove(me, group, i % group.ranks.size(), 100 + i % 5000, i);
        }
    };
    // The first groups make connections and fill the allocator's pools, which stay.
    const std::size_t warm = std::max<std::size_t>(50, count / 10);
    rounds(0, warm);
    me.meet();
    me.idle(milliseconds(200));
    const Holdings before = holdings();
    const auto began = Clock::now();
    rounds(warm, count);
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    me.meet();
    check_nothing_left(me, before, count - warm);
    const Holdings after = holdings();
    // A group kept whole would take about a mebibyte.
    constexpr std::size_t kSlack = std::size_t{8} << 20;
    if (kMeasuresMemory && after.resident > before.resident + kSlack)
        fail("{} bytes resident before {} groups, {} after", before.resident, count - warm, after.resident);
    if (me.rank() == 0)
        fmt::print("     {} groups: {:.2f} ms each; {} descriptors, {} bytes before and {} after\n", count,
                   1e3 * seconds / static_cast<double>(count - warm), after.descriptors, before.resident,
                   after.resident);
    me.meet();
}

void hundreds(Member& me) {
    come_and_go(me, quick() ? 200 : 400);
}

void ten_thousand(Member& me) {
    come_and_go(me, 10'000);
}

// A progress call visits the active group and few of the idle ones.
void idle_ones(Member& me) {
    constexpr std::size_t kIdle = 200, kMaxVisits = 8;
    constexpr int kBarriers = 500;
    std::vector<Subgroup> groups;
    for (std::size_t i = 0; i <= kIdle; ++i) groups.push_back(make(me, all_ranks(me)));
    const Join& busy = *groups.front().join;
    fi_mcastcoll_group_ops* ops = nullptr;
    CHECK_RETURNS(
        0, fi_open_ops(&busy.mc->fid, FI_MCASTCOLL_GROUP_OPS, 0, reinterpret_cast<void**>(&ops), nullptr));
    const auto counted = [&](const char* name) {
        std::uint64_t value = 0;
        CHECK_RETURNS(0, ops->get_counter(busy.mc.get(), name, &value));
        return value;
    };
    const std::uint64_t turns_before = counted("turns"), visits_before = counted("group_visits");
    for (int i = 0; i < kBarriers; ++i) me.finish(me.barrier(busy));
    const std::uint64_t turns = counted("turns") - turns_before,
                        visits = counted("group_visits") - visits_before;
    if (turns == 0 || visits > kMaxVisits * turns)
        fail("{} turns visited {} groups, of which one is busy and {} are idle", turns, visits, kIdle);
    me.meet();
}

// Runs operations in all groups at once: no group may receive data of another group.
void many_at_once(Member& me) {
    constexpr std::size_t kGroups = 64;
    std::vector<Subgroup> groups;
    groups.push_back(make(me, all_ranks(me)));
    while (groups.size() < kGroups)
        groups.push_back(make(me, random_subset(me, mix(me.options().seed, groups.size()))));
    for (std::uint64_t round = 0; round < (quick() ? 2U : 4U); ++round) {
        struct Open {
            std::unique_ptr<Buffer> buffer;
            Ticket* ticket;
            std::uint64_t seed;
        };
        std::vector<Open> open;
        for (std::size_t i = 0; i < kGroups; ++i) {
            if (!groups[i].mine()) continue;
            const std::size_t root = (i + round) % groups[i].ranks.size();
            const std::uint64_t seed = mix(round, i);
            auto buffer = std::make_unique<Buffer>(i % 8 == 0 ? 60'000 : 64 + i * 31);
            buffer->poison();
            if (groups[i].ranks[root] == me.rank()) buffer->fill(seed);
            Ticket& ticket = me.broadcast(*groups[i].join, buffer->data(), buffer->size(), root);
            open.push_back({std::move(buffer), &ticket, seed});
        }
        for (Open& one : open) {
            me.finish(*one.ticket);
            one.buffer->check(one.seed, "one of many groups at once");
        }
    }
    me.meet();
}

std::vector<Ranks> shapes(const Member& me) {
    const unsigned size = me.size();
    const auto those = [&](auto wanted) {
        Ranks ranks;
        for (unsigned rank = 0; rank < size; ++rank)
            if (wanted(rank)) ranks.push_back(rank);
        return ranks;
    };
    Ranks backwards = all_ranks(me), rotated = backwards;
    std::reverse(backwards.begin(), backwards.end());
    std::rotate(rotated.begin(), rotated.begin() + 3, rotated.end());
    return {all_ranks(me),
            those([&](unsigned rank) { return rank < size / 2; }),
            those([&](unsigned rank) { return rank >= size / 2; }),
            those([](unsigned rank) { return rank % 2 == 0; }),
            those([](unsigned rank) { return rank % 2 == 1; }),
            those([](unsigned rank) { return rank != 0; }),
            those([](unsigned rank) { return rank != 5; }),
            those([](unsigned rank) { return rank == 0 || rank >= 4; }),
            {size - 1, 0},
            backwards,
            rotated};
}

void subsets(Member& me) {
    const Subgroup parent = make(me, all_ranks(me));
    std::vector<Subgroup> groups;
    for (const Ranks& ranks : shapes(me)) {
        groups.push_back(make(me, ranks));
        prove_all(me, groups.back());
    }
    // Uses the groups again, now that some share multicast addresses.
    for (const Subgroup& group : groups) prove(me, group, 0, 3000, 7);
    me.meet();
}

// Uses subgroups of a parent, named in the join, after the parent was closed.
void orphans(Member& me) {
    Subgroup parent = make(me, all_ranks(me));
    const Subgroup some = make(me, shapes(me)[3], parent.join->address());
    const Subgroup all = make(me, all_ranks(me), parent.join->address());
    parent.join.reset();
    me.meet();
    prove_all(me, some);
    prove_all(me, all);
    me.meet();
}

void check_counters(const std::string& prefix, bool relayed) {
    auto sum = take_statistics(prefix);
    if (sum.empty()) fail("no member has left its counters in {}.*", prefix);
    if (sum["fragments_by_multicast"] == 0) fail("nothing came by multicast");
    if (relayed != (sum["fragments_relayed"] > 0))
        fail("{} fragments were relayed", sum["fragments_relayed"]);
    if (sum["operations_failed"] > 0) fail("{} operations failed", sum["operations_failed"]);
}

void add_subsets(Program& program, const std::string& name, std::map<std::string, std::string> environment,
                 bool relayed = false) {
    const std::string prefix = statistics_prefix("mcc-groups");
    environment["FI_MCASTCOLL_STATS"] = prefix;
    program.add({.name = name,
                 .body = subsets,
                 .members = 8,
                 .timeout_s = 600,
                 .environment = std::move(environment),
                 .only_mcastcoll = true,
                 .after = [=] { check_counters(prefix, relayed); }});
}

// An attacker may guess the names of the files and put links there, in a folder writable by every user.
void leave_no_marks(Member& me) {
    const std::string prefix = std::getenv("FI_MCASTCOLL_STATS");
    const std::string precious = fmt::format("{}-precious-{}", prefix, me.rank());
    std::ofstream(precious) << "precious";
    char host[256] = "localhost";
    CHECK(gethostname(host, sizeof host - 1) == 0);
    const std::string name = fmt::format("{}.{}.{}.json", prefix, host, getpid());
    // A hard link, and a symbolic link at the name of the file while it is being written.
    CHECK(link(precious.c_str(), name.c_str()) == 0);
    CHECK(symlink(precious.c_str(), (name + ".new").c_str()) == 0);
    const auto set = me.all_members();
    me.finish(me.barrier(*me.join(set.get())));
}

void check_precious(const std::string& prefix, unsigned members) {
    if (take_statistics(prefix).empty()) fail("no member has left its counters in {}.*", prefix);
    for (unsigned rank = 0; rank < members; ++rank) {
        const std::string precious = fmt::format("{}-precious-{}", prefix, rank);
        std::string text;
        std::ifstream(precious) >> text;
        unlink(precious.c_str());
        if (text != "precious") fail("a file of another user was written over: '{}'", text);
    }
}

void add_links(Program& program) {
    constexpr unsigned kMembers = 2;
    const std::string prefix = statistics_prefix("mcc-links");
    program.add({.name = "counters follow no links",
                 .body = leave_no_marks,
                 .members = kMembers,
                 .environment = {{"FI_MCASTCOLL_STATS", prefix}},
                 .only_mcastcoll = true,
                 .after = [=] { check_precious(prefix, kMembers); }});
}

// Runs in a child of fork(), as a program closing inherited objects: returns 0, or the number of the failed
// check.
int inherit(Member& me, Join& group, Buffer& buffer) {
    fi_cq_tagged_entry entry{};
    std::uint32_t event = 0;
    fi_context2 context{};
    if (fi_broadcast(me.ep(), buffer.data(), buffer.size(), nullptr, group.address(), 0, FI_UINT8, 0,
                     &context) != -FI_EBADF)
        return 1;
    if (fi_barrier(me.ep(), group.address(), &context) != -FI_EBADF) return 2;
    if (fi_cq_read(me.cq(), &entry, 1) != -FI_EBADF) return 3;
    if (fi_eq_read(me.eq(), &event, &entry, sizeof entry, 0) != -FI_EBADF) return 4;
    if (fi_close(&group.mc.release()->fid) != 0) return 5;
    if (fi_close(&me.ep()->fid) != 0) return 6;
    return 0;
}

// Children of fork() try to use an inherited group; the parent's group continues unaffected.
void children(Member& me) {
    const Subgroup all = make(me, all_ranks(me));
    for (unsigned round = 0; round < 4; ++round) {
        prove_all(me, all);
        me.stage("children close what they have inherited");
        Buffer buffer(1000);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(inherit(me, *all.join, buffer));
        int status = 0;
        for (unsigned i = 0; i < 20; ++i) prove(me, all, i % me.size(), 1000, round);
        me.wait_until("the child", [&] { return waitpid(child, &status, WNOHANG) == child; });
        if (status != 0) fail("the child: status {}", status);
        me.meet();
    }
    CHECK(me.group_errors().empty());
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_groups",
                    "Many groups: sharing addresses and sockets, and leaving nothing behind");
    add_subsets(program, "subsets, cheapest addresses", {});
    add_subsets(program, "subsets, parent's address", {{"FI_MCASTCOLL_EXPERIMENT", "address_scheme=parent"}});
    add_subsets(program, "subsets, chained ranges", {{"FI_MCASTCOLL_EXPERIMENT", "address_scheme=chained"}});
    add_subsets(program, "subsets, tree of ranges", {{"FI_MCASTCOLL_EXPERIMENT", "address_scheme=tree"}},
                true);
    add_subsets(program, "subsets, own addresses", {{"FI_MCASTCOLL_EXPERIMENT", "address_scheme=own"}});
    add_subsets(program, "subsets, one address for all",
                {{"FI_MCASTCOLL_EXPERIMENT", "address_scheme=own,memberships=1"}});
    add_subsets(
        program, "subsets, datagrams lost",
        {{"FI_MCASTCOLL_EXPERIMENT", "address_scheme=tree"}, {"FI_MCASTCOLL_FAULT", "loss=5,delay=2,seed=3"}},
        true);
    add_links(program);
    program.add({.name = "parents that are gone", .body = orphans, .members = 6, .only_mcastcoll = true});
    program.add({.name = "many at once", .body = many_at_once, .members = 6, .only_mcastcoll = true});
    program.add({.name = "many at once, each with an address",
                 .body = many_at_once,
                 .members = 6,
                 .environment = {{"FI_MCASTCOLL_EXPERIMENT", "address_scheme=own"}},
                 .only_mcastcoll = true});
    program.add({.name = "children of fork()", .body = children, .only_mcastcoll = true});
    program.add(
        {.name = "idle ones", .body = idle_ones, .members = 2, .timeout_s = 600, .only_mcastcoll = true});
    program.add({.name = "hundreds come and go", .body = hundreds, .timeout_s = 600, .only_mcastcoll = true});
    program.add({.name = "ten thousand come and go",
                 .body = ten_thousand,
                 .timeout_s = 1800,
                 .only_mcastcoll = true,
                 .only_large = true});
    return program.run(argc, argv);
}
