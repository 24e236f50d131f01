#include "functional/forge_attacked.h"

#include <unistd.h>

#include <chrono>
#include <memory>

#include "functional/forge_attacks.h"
#include "support/process.h"
#include "support/statistics.h"

namespace mcastcoll::fabtest {
namespace {

enum class Late { none, rank_0, others };
// The certain effect of an attack on members without a secret.
enum class Unprotected { unknown, harmed, safe };

struct Attack {
    const char* name;
    void (*by)(const Scene&);
    // The counter of refused packets that must increase if the members have a secret, or null.
    const char* refused = nullptr;
    // The counter that must increase if the members have no secret, or null.
    const char* counted = nullptr;
    Unprotected unprotected = Unprotected::unknown;
    // Whether joins are attacked, and which ranks then call the joins late.
    bool joins = false;
    Late late = Late::none;
    const char* places = "";
    unsigned enough = 2'000;
    bool by_munge = false;  // whether there is also a case with a secret carried by MUNGE
};

constexpr unsigned kJoins = 3, kRounds = 300;
constexpr std::chrono::milliseconds kLateBy{500};
// Descriptors that serve connections which a non-member makes.
constexpr std::size_t kForeignDescriptors = 16;

// A member working under attack, which reports failures.
class Target {
  public:
    Target(Member& me, const Attack& attack, bool keyed)
        : me_(me), attack_(attack), keyed_(keyed), words_(me.board().words), set_(me.all_members()) {}

    void run() {
        me_.wait_until("the attacker", [&] { return words_[kListening].load() != 0; });
        groups_.push_back(me_.join(set_.get()));
        for (unsigned round = 0; round < 8; ++round) work(*groups_.back());
        const std::size_t descriptors = open_descriptors();
        if (attack_.joins) groups_.back()->mc.reset();
        me_.meet();
        words_[kReady] = 1;
        me_.stage("under attack");
        for (unsigned round = 0; !over(round); ++round) attempt(round);
        words_[kStopAttack] = 1;
        if (keyed_ || words_[kHarm].load() == 0) {
            me_.stage("after the attack");
            groups_.push_back(me_.join(set_.get()));
            for (unsigned round = 0; round < 8; ++round) work(*groups_.back());
            // The attacker may hold its connections a little longer.
            const std::size_t max = descriptors + kForeignDescriptors;
            if (!me_.wait_until(std::chrono::seconds(20), [&] { return open_descriptors() <= max; }))
                fail("{} descriptors are open instead of {}", open_descriptors(), descriptors);
        }
        me_.meet();
    }

  private:
    void work(const Join& group) {
        ++round_;
        buffer_.poison();
        if (me_.rank() == 0) buffer_.fill(round_);
        finish(me_.broadcast(group, buffer_.data(), buffer_.size(), 0));
        finish(me_.barrier(group));
        buffer_.check(round_, "a broadcast under attack");
        while (me_.read_event())
            ;
        if (!me_.group_errors().empty()) fail("a group ended: error {}", me_.group_errors().front().error);
    }

    bool others_are_harmed() const { return !keyed_ && words_[kHarm].load() > 0; }

    // Stops waiting when other members have been harmed, because these may never finish.
    void finish(Ticket& ticket) {
        me_.wait_until("an operation", [&] { return ticket.done || others_are_harmed(); });
        if (!ticket.done) fail("an operation is waited for in vain");
        if (ticket.error != 0) fail("an operation ended with error {}", ticket.error);
    }

    // Whether the attack was long enough, or has done harm. Rank 0 decides; all members call this.
    bool over(unsigned rounds) {
        me_.meet();
        const bool enough =
            words_[kAttacks].load() >= attack_.enough && rounds >= (attack_.joins ? kJoins : kRounds);
        if (me_.rank() == 0 && (enough || words_[kHarm].load() > 0)) words_[kMembersOver] = 1;
        me_.meet();
        return words_[kMembersOver].load() != 0;
    }

    void attempt(unsigned round) {
        try {
            if (attack_.joins) return join_under_attack();
            // The other members already wait.
            if (me_.rank() == 0) me_.idle(std::chrono::milliseconds(1));
            work(*groups_.back());
        } catch (const Failure& failure) {
            if (me_.board().abandoned) throw;
            words_[kHarm].fetch_add(1);
            fmt::print("     rank {}, round {}: {}\n", me_.rank(), round, failure.what());
        }
    }

    void join_under_attack() {
        const bool late = (attack_.late == Late::rank_0) == (me_.rank() == 0);
        if (attack_.late != Late::none && late) me_.idle(kLateBy);
        groups_.push_back(me_.start_join(set_.get()));
        Join& next = *groups_.back();
        me_.wait_until("a join", [&] { return next.done || others_are_harmed(); });
        if (next.done && next.error != 0) fail("a join ended with error {}", next.error);
        if (!others_are_harmed()) work(next);
    }

    Member& me_;
    const Attack& attack_;
    const bool keyed_;
    decltype(Board::words)& words_;
    const Fid<fid_av_set> set_;
    Buffer buffer_{kForeseenBytes};
    std::vector<std::unique_ptr<Join>> groups_;
    std::uint64_t round_ = 0;
};

void judge(Member& me, const Attack& attack, bool keyed) {
    if (me.rank() != 0) return;
    const auto& words = me.board().words;
    const std::uint64_t attacks = words[kAttacks].load(), ms = std::max<std::uint64_t>(words[kAttackMs], 1);
    const bool harmed = words[kHarm].load() > 0;
    fmt::print("     {}: {} packets, {} a second; harm: {}\n", keyed ? "with a secret" : "without", attacks,
               attacks * 1000 / ms, words[kHarm].load());
    if (attacks == 0) fail("there was no attack");
    if (keyed && harmed) fail("foreign packets do harm in spite of a secret");
    if (!keyed && harmed && attack.unprotected == Unprotected::safe) fail("it does harm");
    if (!keyed && !harmed && attack.unprotected == Unprotected::harmed)
        fail("it does no harm without a secret: it is no attack");
}

void check_refused(const std::string& prefix, const char* counted) {
    auto sum = take_statistics(prefix);
    if (counted == nullptr) return;
    if (sum.empty()) fail("no member has left its counters in {}.*", prefix);
    fmt::print("     {}: {}\n", counted, sum[counted]);
    CHECK(sum[counted] > 0);
}

const Attack kAttackList[] = {
    {.name = "hellos of others for a live group",
     .by = send_hellos_for_the_living,
     .refused = "foreign_datagrams",
     .counted = "suspicions",
     .unprotected = Unprotected::safe},
    {.name = "hellos ahead of joins to come",
     .by = send_hellos_for_later_joins,
     .refused = "foreign_datagrams",
     .unprotected = Unprotected::harmed,
     .joins = true,
     .by_munge = true},
    {.name = "aborts to the senders of hellos",
     .by = abort_senders_of_hellos,
     .refused = "foreign_datagrams",
     .unprotected = Unprotected::harmed,
     .joins = true,
     .late = Late::rank_0,
     .by_munge = true},
    {.name = "hellos of a join that is over",
     .by = repeat_hellos,
     .unprotected = Unprotected::safe,
     .joins = true,
     .late = Late::others},
    {.name = "forged multicasts ahead of time",
     .by = forge_multicasts,
     .refused = "unproven_packets",
     .unprotected = Unprotected::harmed,
     .by_munge = true},
    {.name = "messages about a group's end to private endpoints",
     .by = send_outcome_messages,
     .refused = "foreign_messages",
     .unprotected = Unprotected::harmed},
    {.name = "foreseen data to private endpoints",
     .by = send_foreseen_data,
     .refused = "unproven_packets",
     .unprotected = Unprotected::harmed},
    {.name = "failures to private endpoints",
     .by = send_failures,
     .refused = "unproven_packets",
     .unprotected = Unprotected::harmed},
    {.name = "pongs to private endpoints",
     .by = send_pongs,
     .refused = "unproven_packets",
     .counted = "unexpected_kind",
     .unprotected = Unprotected::safe},
    {.name = "messages to private endpoints that do not end",
     .by = stall_messages,
     .refused = "foreign_connections_ended",
     .counted = "foreign_connections_ended",
     .unprotected = Unprotected::safe,
     .enough = 200},
    {.name = "names of shared memory",
     .by = watch_names,
     .unprotected = Unprotected::harmed,
     .places = "1x2",
     .enough = 1},
};

}  // namespace

void add_attacks(Program& program, const std::string& key_file, const std::string& munged) {
    if (geteuid() != 0) return;  // raw sockets and a change of the user need root
    const auto add = [&](const Attack& attack, const char* how, bool keyed,
                         const std::pair<const char*, std::string>& setting) {
        const std::string prefix = statistics_prefix(fmt::format("mcc-attack-{}", keyed));
        program.add({.name = fmt::format("{}, {}", attack.name, how),
                     .body =
                         [&attack, keyed](Member& me) {
                             Target(me, attack, keyed).run();
                             judge(me, attack, keyed);
                         },
                     .members = kAttacked,
                     .environment = {{"FI_MCASTCOLL_STATS", prefix}, setting},
                     .places = attack.places,
                     .only_mcastcoll = true,
                     .outsider =
                         [&attack, keyed](Board& board, const Options& options) {
                             attack.by({board, options, keyed});
                         },
                     .after = [prefix, counted = keyed ? attack.refused
                                                       : nullptr] { check_refused(prefix, counted); }});
    };
    for (const Attack& attack : kAttackList) {
        add(attack, "without", false, {"FI_MCASTCOLL_SECURITY", "off"});
        add(attack, "with a secret", true, {"FI_MCASTCOLL_KEY_FILE", key_file});
        if (attack.by_munge && !munged.empty())
            add(attack, "with a secret by MUNGE", true, {"FI_MCASTCOLL_KEY_FILE", "munge:" + munged});
    }
}

}  // namespace mcastcoll::fabtest
