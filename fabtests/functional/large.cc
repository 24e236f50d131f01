// One group with any number of members: the join, broadcasts from up to a hundred roots, barrier, allreduce
// and allgather, each byte checked, groups of the rows and columns, and the close; other groups lose a
// member. Reports the time of joins, the memory of a process, and the traffic.
//
// Members poll and yield: where a thousand share two cores, members that sleep in poll() take several times
// as long, because each wakes up every millisecond to check its host's shared memory.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;
using std::chrono::microseconds;

constexpr unsigned kMaxRoots = 100;
// Words of the board: sums over all members.
enum Word : std::size_t {
    kBegun,
    kJoinUs,
    kPssBefore,
    kPssJoined,
    kPssWorked,
    kMaxPssWorked,
    kMulticasts,
    kSegments,
    kSplitBegun,
    kSplitUs,
    kDiedAt,
    kErrorUs
};

// Limit for the time until a member's death is known to the others. It only separates late from never: a
// thousand processes share the cores.
constexpr std::chrono::seconds kErrorWithin{120};

void raise(std::atomic<std::uint64_t>& word, std::uint64_t value) {
    for (std::uint64_t seen = word; seen < value && !word.compare_exchange_weak(seen, value);) {
    }
}

std::uint64_t now_us() {
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch() / microseconds(1));
}

// Returns this process's share of memory (PSS) in KiB: shared pages are divided among the processes with a
// mapping.
std::uint64_t pss_kib() {
    std::ifstream rollup("/proc/self/smaps_rollup");
    for (std::string word; rollup >> word;)
        if (word == "Pss:") {
            std::uint64_t kib = 0;
            rollup >> kib;
            return kib;
        }
    fail("no Pss in /proc/self/smaps_rollup");
}

// A monotonic counter of this host's network, such as OutDatagrams of Udp.
std::uint64_t network_count(const std::string& protocol, const std::string& name) {
    std::ifstream table("/proc/net/snmp");
    std::string names, values;
    while (std::getline(table, names) && std::getline(table, values)) {
        if (!names.starts_with(protocol + ":")) continue;
        std::istringstream name_words(names), value_words(values);
        for (std::string word, value; name_words >> word && value_words >> value;)
            if (word == name) return std::stoull(value);
    }
    fail("no {} of {} in /proc/net/snmp", name, protocol);
}

class Large {
  public:
    explicit Large(Member& me) : me_(me), set_(me.all_members()) {
        count(kPssBefore, pss_kib());
        multicasts_ = network_count("Udp", "OutDatagrams");
        segments_ = network_count("Tcp", "OutSegs");
        begin(kBegun, "joining");
        group_ = me.start_join(set_.get());
        me.finish(*group_);
        raise(word(kJoinUs), now_us() - word(kBegun));
        me.meet();
        count(kPssJoined, pss_kib());
    }

    void broadcasts() {
        me_.stage("broadcasting");
        const unsigned roots = std::min(kMaxRoots, me_.size());
        for (unsigned i = 0; i < roots; ++i) {
            const unsigned root = i * me_.size() / roots;
            Buffer buffer(kSizes[i % kSizes.size()]);
            const std::uint64_t seed = mix(me_.options().seed, root);
            me_.rank() == root ? buffer.fill(seed) : buffer.poison();
            me_.finish(me_.broadcast(*group_, buffer.data(), buffer.size(), root));
            buffer.check(seed, "a broadcast");
        }
    }

    void barrier() {
        me_.stage("in the barrier");
        me_.finish(me_.barrier(*group_));
    }

    void allreduce() {
        me_.stage("in allreduce");
        for (const std::size_t values : {std::size_t{1}, std::size_t{1000}}) {
            std::vector<std::uint64_t> mine(values), sums(values);
            for (std::size_t i = 0; i < values; ++i) mine[i] = mix(me_.rank(), i);
            me_.finish(me_.allreduce(*group_, mine.data(), sums.data(), values, FI_UINT64, FI_SUM));
            for (std::size_t i = 0; i < values; ++i) {
                std::uint64_t right = 0;
                for (unsigned rank = 0; rank < me_.size(); ++rank) right += mix(rank, i);
                if (sums[i] != right) fail("value {} of an allreduce is {} instead of {}", i, sums[i], right);
            }
        }
    }

    void allgather() {
        me_.stage("in allgather");
        constexpr std::size_t kEach = 4;
        std::vector<std::uint64_t> mine(kEach), all(kEach * me_.size());
        for (std::size_t i = 0; i < kEach; ++i) mine[i] = mix(me_.rank(), i);
        me_.finish(me_.allgather(*group_, mine.data(), all.data(), kEach, FI_UINT64));
        for (unsigned rank = 0; rank < me_.size(); ++rank)
            for (std::size_t i = 0; i < kEach; ++i)
                if (all[rank * kEach + i] != mix(rank, i)) fail("word {} of member {} is wrong", i, rank);
    }

    // A matrix of members, as square as possible: each member joins its row and then its column.
    void split() {
        unsigned width = 1;
        for (unsigned i = 2; i * i <= me_.size(); ++i)
            if (me_.size() % i == 0) width = i;
        std::vector<unsigned> row, column;
        for (unsigned rank = 0; rank < me_.size(); ++rank) {
            if (rank / width == me_.rank() / width) row.push_back(rank);
            if (rank % width == me_.rank() % width) column.push_back(rank);
        }
        const auto row_set = me_.set_of(row), column_set = me_.set_of(column);
        begin(kSplitBegun, "joining rows and columns");
        const auto row_group = me_.join(row_set.get()), column_group = me_.join(column_set.get());
        raise(word(kSplitUs), now_us() - word(kSplitBegun));
        for (const auto& [group, ranks] : {std::pair(&row_group, &row), std::pair(&column_group, &column)}) {
            std::uint64_t mine = mix(me_.rank(), 7), sum = 0, right = 0;
            for (const unsigned rank : *ranks) right += mix(rank, 7);
            me_.finish(me_.allreduce(**group, &mine, &sum, 1, FI_UINT64, FI_SUM));
            if (sum != right) fail("the sum over a row or column is {} instead of {}", sum, right);
        }
        me_.meet();
    }

    // Kills a member; all open operations must end on every other member.
    void lose(unsigned victim) {
        me_.meet();
        if (me_.rank() == victim) {
            word(kDiedAt) = now_us();
            kill(getpid(), SIGKILL);
        }
        me_.stage("in a barrier with a member that dies");
        Ticket& ticket = me_.new_ticket();
        const ssize_t refused = fi_barrier(me_.ep(), group_->address(), &ticket);
        if (refused != 0) me_.drop(ticket);
        if (refused == 0 && (!me_.settle(ticket, kErrorWithin) || ticket.error == 0))
            fail("a barrier did not end with an error within {} s of a member's death", kErrorWithin.count());
        raise(word(kErrorUs), now_us() - word(kDiedAt));
        group_.reset();
        me_.meet(me_.size() - 1);
        if (me_.rank() + 1 == me_.size())
            fmt::print("     {} members: a death was known to all within {:.0f} ms\n", me_.size(),
                       static_cast<double>(word(kErrorUs)) / 1000);
    }

    void leave() {
        const std::uint64_t pss = pss_kib();
        count(kPssWorked, pss);
        raise(word(kMaxPssWorked), pss);
        me_.stage("leaving");
        me_.meet();
        // All members of a host read the same counters.
        raise(word(kMulticasts), network_count("Udp", "OutDatagrams") - multicasts_);
        raise(word(kSegments), network_count("Tcp", "OutSegs") - segments_);
        group_.reset();
        me_.meet();
        if (me_.rank() == 0) report_times();
    }

  private:
    static constexpr std::array<std::size_t, 4> kSizes{8, 1000, 20'000, 100'000};

    std::atomic<std::uint64_t>& word(Word word) { return me_.board().words[word]; }
    void count(Word total, std::uint64_t value) { word(total) += value; }
    std::uint64_t mean(Word total) { return word(total) / me_.size(); }

    // Begins a measurement: all members meet, and the first to continue stores the time.
    void begin(Word at, const char* stage) {
        me_.meet();
        std::uint64_t unset = 0;
        word(at).compare_exchange_strong(unset, now_us());
        me_.stage(stage);
    }

    void report_times() {
        fmt::print(
            "     {} members: the join took {:.0f} ms, those of rows and columns {:.0f} ms; a process had {} "
            "KiB before it, {} with the group, {} "
            "after work (most: {}); the host that sent most sent {} datagrams and {} segments of TCP\n",
            me_.size(), static_cast<double>(word(kJoinUs)) / 1000, static_cast<double>(word(kSplitUs)) / 1000,
            mean(kPssBefore), mean(kPssJoined), mean(kPssWorked), word(kMaxPssWorked).load(),
            word(kMulticasts).load(), word(kSegments).load());
    }

    Member& me_;
    Fid<fid_av_set> set_;
    std::unique_ptr<Join> group_;
    std::uint64_t multicasts_ = 0, segments_ = 0;
};

void everything(Member& me) {
    Large group(me);
    group.broadcasts();
    group.barrier();
    group.allreduce();
    group.allgather();
    group.split();
    group.leave();
}

template <unsigned kVictim>
void death(Member& me) {
    Large group(me);
    group.barrier();
    group.lose(kVictim);
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_large", "one group of as many members as wished");
    program.add({"everything", everything});
    program.add({.name = "a member dies", .body = death<1>, .victims = {1}, .only_mcastcoll = true});
    program.add({.name = "rank 0 dies", .body = death<0>, .victims = {0}, .only_mcastcoll = true});
    return program.run(argc, argv);
}
