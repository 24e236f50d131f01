// Groups with a secret carried by MUNGE, with a munged of the test's own: the groups form, and the secret
// passes through one or several forwarding members. A member without the secret joins no group, gets the
// reason, and delays no other member beyond the stated times. fi_mcc_forge tests the protection of packets.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "support/munged.h"
#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;
using std::chrono::milliseconds;

// A member waits for its munged for three quarters of the join timeout.
constexpr int kJoinTimeoutMs = 7000, kMungedMs = kJoinTimeoutMs * 3 / 4;
// Allowance for a busy machine.
constexpr milliseconds kSlack{8000};
constexpr uid_t kOtherUser = 65534;

void work(Member& me, const Join& group) {
    for (std::size_t root = 0; root < me.size(); root += 1 + me.size() / 4) {
        const std::uint64_t seed = mix(me.options().seed, root);
        Buffer buffer(5000);
        buffer.poison();
        if (me.rank() == root) buffer.fill(seed);
        me.finish(me.broadcast(group, buffer.data(), buffer.size(), root));
        buffer.check(seed, "a broadcast in a group whose secret MUNGE has carried");
    }
    me.finish(me.barrier(group));
}

void joins(Member& me) {
    const auto set = me.all_members();
    const auto first = me.join(set.get());
    work(me, *first);
    // Several joins at once, called in the same order by all members.
    const auto second = me.start_join(set.get());
    const auto third = me.start_join(set.get());
    me.finish(*third), me.finish(*second);
    work(me, *second);
    work(me, *third);
    if (me.rank() % 2 == 0) {
        std::vector<unsigned> even;
        for (unsigned rank = 0; rank < me.size(); rank += 2) even.push_back(me.size() - 1 - rank);
        std::ranges::transform(even, even.begin(), [&](unsigned rank) { return rank - rank % 2; });
        const auto some = me.set_of(even);
        const auto fourth = me.join(some.get());
        me.finish(me.barrier(*fourth));
    }
    me.meet();
}

// A member repeats its request until rank 0 has called the join.
void late_leader(Member& me) {
    if (me.rank() == 0) me.idle(milliseconds(700));
    const auto set = me.all_members();
    work(me, *me.join(set.get()));
    me.meet();
}

void keyed_by_application(Member& me) {
    std::vector<std::uint8_t> secret(16, 7);
    fi_av_set_attr attr{};
    attr.count = me.size();
    attr.start_addr = me.address_of(0);
    attr.end_addr = me.address_of(me.size() - 1);
    attr.comm_key_size = secret.size();
    attr.comm_key = secret.data();
    fid_av_set* raw = nullptr;
    CHECK_RETURNS(0, fi_av_set(me.av(), &attr, &raw, nullptr));
    const Fid<fid_av_set> set(raw);
    work(me, *me.join(set.get()));
    me.meet();
}

// Joins all members; the join must fail with this error, and in time.
void fail_to_join(Member& me, int error, milliseconds limit) {
    const auto set = me.all_members();
    const auto begin = Clock::now();
    const auto group = me.start_join(set.get());
    if (!me.wait_until(limit + kSlack, [&] { return group->done; })) fail("the join has no end");
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    fmt::print("     rank {}: error {} ({}) after {} ms\n", me.rank(), group->error,
               fi_strerror(group->error), took.count());
    if (group->error != error) fail("error {} instead of {}", group->error, error);
    if (error == FI_ETIMEDOUT && took < milliseconds(kJoinTimeoutMs - 100)) fail("it ended too soon");
    me.meet();
}

// The munged of member `who` has a different key, so no group forms; and no member creates a group without
// authentication.
void other_than_others(Member& me, unsigned who, const std::string& key_file, int error, int limit_ms) {
    const bool other = me.rank() == who;
    if (other) setenv("FI_MCASTCOLL_KEY_FILE", key_file.c_str(), 1);
    fail_to_join(me, other ? error : FI_ETIMEDOUT, milliseconds(other ? limit_ms : kJoinTimeoutMs));
}

void two_users(Member& me) {
    if (me.rank() % 2 == 1) CHECK(seteuid(kOtherUser) == 0);
    fail_to_join(me, FI_ETIMEDOUT, milliseconds(kJoinTimeoutMs));
    CHECK(seteuid(0) == 0);
}

// The group is closed while the secret is requested.
void given_up(Member& me) {
    const auto set = me.all_members();
    if (me.rank() != 0) {
        const auto group = me.start_join(set.get());
        me.idle(milliseconds(100));
        CHECK(!group->done);
        CHECK_RETURNS(0, fi_close(&group->mc.release()->fid));
    }
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_munge", "Groups whose secret MUNGE carries");
    const Munged munged, silent(munged.folder()), foreign;
    if (!munged.why_not().empty() || !silent.why_not().empty() || !foreign.why_not().empty()) {
        fmt::print("skip: {}\n", munged.why_not());
        return kExitSkipped;
    }
    silent.signal(SIGSTOP);
    const std::string good = "munge:" + munged.socket();
    const auto add = [&](const char* name, std::function<void(Member&)> body, unsigned members = 0,
                         const char* places = "", const char* security = "auto") {
        program.add({.name = name,
                     .body = std::move(body),
                     .members = members,
                     .environment = {{"FI_MCASTCOLL_KEY_FILE", good}, {"FI_MCASTCOLL_SECURITY", security}},
                     .places = places,
                     .only_mcastcoll = true});
    };
    add("groups form", joins);
    add("encrypted groups form", joins, 0, "", "encrypt");
    add("on hosts of several processes", joins, 6, "2x3");
    add("of more members than rank 0 hands it to", late_leader, 35, "7x5");
    add("rank 0 comes late", late_leader);
    add("a join is given up", given_up);
    const auto add_failure = [&](const char* name, std::function<void(Member&)> body) {
        program.add({.name = name,
                     .body = std::move(body),
                     .environment = {{"FI_MCASTCOLL_KEY_FILE", good},
                                     {"FI_MCASTCOLL_SECURITY", "auto"},
                                     {"FI_MCASTCOLL_JOIN_TIMEOUT", std::to_string(kJoinTimeoutMs)}},
                     .only_mcastcoll = true});
    };
    const std::string nowhere = "munge:/nowhere/munge.socket", still = "munge:" + silent.socket(),
                      strange = "munge:" + foreign.socket();
    const auto other = [&](unsigned who, const std::string& key_file, int error, int limit_ms) {
        return [=](Member& me) { other_than_others(me, who, key_file, error, limit_ms); };
    };
    add_failure("a member has no munged", other(2, nowhere, FI_ENOKEY, 0));
    add_failure("rank 0 has no munged", other(0, nowhere, FI_ENOKEY, 0));
    add_failure("a member's munged stands still", other(2, still, FI_ENOKEY, kMungedMs));
    add_failure("rank 0's munged stands still", other(0, still, FI_ENOKEY, kMungedMs));
    add_failure("a member's munged has another key", other(2, strange, FI_ETIMEDOUT, kJoinTimeoutMs));
    add_failure("a member does without", other(2, "", FI_ETIMEDOUT, kJoinTimeoutMs));
    if (geteuid() == 0) add_failure("processes of two users", two_users);
    program.add({.name = "a secret of the application's needs no munged",
                 .body = keyed_by_application,
                 .environment = {{"FI_MCASTCOLL_KEY_FILE", nowhere}},
                 .only_mcastcoll = true});
    return program.run(argc, argv);
}
