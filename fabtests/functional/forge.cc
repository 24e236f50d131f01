// An intruder on the same network: while broadcasts and barriers run, it sends garbage, truncated, replayed,
// altered and well-formed but forged datagrams to the groups' addresses and ports. Data stay correct, and the
// members' counters show that the datagrams arrived and were refused. Non-members that send hellos like
// members, or name addresses for the answers, end no group and cause no connection to these addresses.
#include <unistd.h>

#include <cstdlib>

#include "functional/forge_attacked.h"
#include "functional/forge_foreign.h"
#include "functional/forge_hellos.h"
#include "functional/forge_intruder.h"
#include "functional/forge_spoofed.h"
#include "support/munged.h"
#include "support/process.h"
#include "support/program.h"
#include "support/statistics.h"

namespace {

using namespace mcastcoll;
using namespace mcastcoll::fabtest;

// Enough packets for a reliable result, few enough to leave the members a share of two processors.
constexpr std::uint64_t kEnoughThrown = 20'000;
constexpr std::uint64_t kEnoughCaptured = 200;
constexpr unsigned kMaxRounds = 3000;

// Runs rounds of broadcasts and barriers in two groups until the intruder has sent enough packets. Member 0
// decides when to stop.
void under_fire(Member& me) {
    me.stage("working under fire");
    const auto set = me.all_members();
    const auto one = me.join(set.get());
    const auto two = me.join(set.get());
    auto& words = me.board().words;
    const auto deadline = Clock::now() + std::chrono::seconds(me.options().timeout_s / 2);
    for (unsigned round = 0;; ++round) {
        const auto root = static_cast<unsigned>(round % me.size());
        const std::uint64_t seed = mix(me.options().seed, round);
        Buffer small(1 + seed % 3000), large(50'000 + seed % 50'000);
        small.poison(), large.poison();
        if (me.rank() == root) small.fill(seed), large.fill(seed + 1);
        Ticket& first = me.broadcast(*one, large.data(), large.size(), root);
        Ticket& second = me.broadcast(*two, small.data(), small.size(), root);
        Ticket& third = me.barrier(*two);
        me.finish(first), me.finish(second), me.finish(third);
        small.check(seed, "a small broadcast under fire");
        large.check(seed + 1, "a large broadcast under fire");
        if (me.rank() == 0) {
            const bool enough =
                words[kThrown].load() >= kEnoughThrown && words[kCaptured].load() >= kEnoughCaptured;
            words[kRoundsDone] = round + 1;
            if (enough || round >= kMaxRounds || Clock::now() > deadline) words[kMembersDone] = 1;
        }
        // Member 0 writes before arriving here, so every member reads the same value.
        me.meet();
        if (words[kMembersDone].load() != 0) break;
        me.meet();
    }
    if (me.rank() == 0) {
        if (words[kThrown].load() < 1000) fail("only {} datagrams were thrown", words[kThrown].load());
        if (words[kCaptured].load() == 0)
            fail("no genuine datagram was seen: the groups do not use multicast");
    }
}

// Groups are created and closed while forged hellos arrive.
void joins_under_fire(Member& me) {
    auto& words = me.board().words;
    constexpr unsigned kRounds = 100;
    const auto set = me.all_members();
    for (unsigned round = 0; round < kRounds || words[kThrown].load() < 1000; ++round) {
        me.stage("joining under fire");
        const auto group = me.join(set.get());
        Buffer buffer(1000);
        buffer.poison();
        if (me.rank() == round % me.size()) buffer.fill(round);
        me.finish(me.broadcast(*group, buffer.data(), buffer.size(), round % me.size()));
        buffer.check(round, "a broadcast in a group that was joined under fire");
        // After this barrier every member reads the same count.
        me.finish(me.barrier(*group));
        me.meet();
    }
    me.meet();
    if (me.rank() == 0)
        fmt::print("     thrown: {}, genuine ones captured: {}\n", words[kThrown].load(),
                   words[kCaptured].load());
    words[kMembersDone] = 1;
}

constexpr unsigned kForeignHosts = 4;  // members of the cases with non-members
constexpr ForeignWords kForeign{kRoundsDone, kThrown, kMembersDone};
// Descriptors for a non-member's connections to a member: the accepted connections and the descriptors
// serving each.
constexpr std::size_t kForeignDescriptors = 16;

// A group works while non-members send like members of the group, and so does the next group.
void beside_foreign(Member& me) {
    auto& words = me.board().words;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const auto work = [&](const Join& in, unsigned round) {
        Buffer buffer(2000);
        buffer.poison();
        if (me.rank() == round % me.size()) buffer.fill(round);
        me.finish(me.broadcast(in, buffer.data(), buffer.size(), round % me.size()));
        buffer.check(round, "a broadcast beside foreign senders");
        me.finish(me.barrier(in));
        while (me.read_event())
            ;
        CHECK(me.group_errors().empty());
    };
    for (unsigned round = 0; round < 20; ++round) work(*group, round);
    const std::size_t descriptors = open_descriptors();
    me.stage("beside foreign senders");
    me.meet();
    words[kRoundsDone] = 1;
    for (unsigned round = 0;; ++round) {
        work(*group, round);
        const bool over = words[kMembersDone].load() != 0;
        me.meet();
        // A member that sees the end early continues until every member has seen the end.
        if (over) words[kCaptured].fetch_add(1);
        me.meet();
        if (words[kCaptured].load() > 0) break;
        if (me.board().abandoned) fail("the foreign sender has failed");
    }
    me.idle(std::chrono::milliseconds(200));
    if (open_descriptors() > descriptors + kForeignDescriptors)
        fail("{} descriptors are open instead of {}", open_descriptors(), descriptors);
    const auto next = me.join(set.get());
    work(*next, 1);
    me.meet();
}

void check_foreign(const std::string& prefix, const std::vector<const char*>& counted) {
    auto sum = take_statistics(prefix);
    if (sum.empty()) fail("no member has left its counters in {}.*", prefix);
    for (const char* name : counted) {
        fmt::print("     {}: {}\n", name, sum[name]);
        CHECK(sum[name] > 0);
    }
    CHECK(sum["operations_failed"] == 0);
}

// Refused packets must have been counted, and no operation may have failed.
void check_counters(const std::string& prefix) {
    auto sum = take_statistics(prefix);
    if (sum.empty()) fail("no member has left its counters in {}.*", prefix);
    std::string text;
    for (const char* name : {"bad_packet", "bad_checksum", "foreign_group", "bad_sender",
                             "datagrams_received", "operations_failed"})
        text += fmt::format(" {} {}", name, sum[name]);
    fmt::print("     counters:{}\n", text);
    CHECK(sum["bad_packet"] > 0);
    CHECK(sum["bad_checksum"] > 0);
    CHECK(sum["bad_sender"] > 0);
    CHECK(sum["datagrams_received"] > 0);
    CHECK(sum["operations_failed"] == 0);
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_forge",
                    "Broadcasts and barriers while an intruder throws forged datagrams at their groups");
    const std::string prefix = statistics_prefix("mcc-forge");
    program.add({.name = "forged, truncated, replayed and foreign datagrams",
                 .body = under_fire,
                 .environment = {{"FI_MCASTCOLL_STATS", prefix}},
                 .only_mcastcoll = true,
                 .outsider = [](Board& board, const Options& options) { Intruder(board, options).run(); },
                 .after = [prefix] { check_counters(prefix); }});
    program.add({.name = "forged and replayed hellos",
                 .body = joins_under_fire,
                 .only_mcastcoll = true,
                 .outsider = [](Board& board, const Options& options) {
                     throw_hellos(board, options.seed, kMembersDone, kThrown, kCaptured);
                 }});
    const auto add_foreign = [&](const char* name, auto outsider, std::vector<const char*> counted) {
        const std::string counters = statistics_prefix(std::string("mcc-") + counted.front());
        program.add({.name = name,
                     .body = beside_foreign,
                     .members = kForeignHosts,
                     .environment = {{"FI_MCASTCOLL_STATS", counters}},
                     .only_mcastcoll = true,
                     .outsider = outsider,
                     .after = [counters, counted] { check_foreign(counters, counted); }});
    };
    add_foreign("foreign hellos for members of a live group",
                [](Board& board, const Options&) { send_hellos_as_members(board, kForeignHosts, kForeign); },
                {"foreign_datagrams", "suspicions"});
    add_foreign(
        "foreign echoes name addresses",
        [](Board& board, const Options& options) { send_echoes(board, options, kForeignHosts, kForeign); },
        {"foreign_messages"});
    const SecretFile secret;
    const Munged munged;
    if (!munged.why_not().empty()) fmt::print("no secrets by MUNGE: {}\n", munged.why_not());
    add_attacks(program, secret.path(), munged.why_not().empty() ? munged.socket() : "");
    return program.run(argc, argv);
}
