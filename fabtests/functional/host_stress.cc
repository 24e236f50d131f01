// Stress for host::Team: members carry out the same random operations, with random pauses, and check every
// byte.
//
// All members draw the same operations from the seed, and each draws its own times. Contents are a function
// of operation, member and place, so that a byte of any other operation is detected. Sums of floats are
// compared bit by bit with sums computed in rank order.
#include <fmt/format.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "arguments/arguments.h"
#include "base/clock.h"
#include "config.h"
#include "host_members.h"
#include "host_shapes.h"

using namespace mcastcoll;
using host::Kind;
using host::Operation;

namespace {

constexpr Nanoseconds kBetweenLines = Nanoseconds::from_ms(5000);

struct Workload {
    std::uint64_t count = 20'000;
    std::uint64_t seed = 1;
    std::size_t max_bytes = 200'000;
    unsigned large_one_in = 1;
    unsigned window = 16;
    double pause_percent = 1;
    bool quiet = false;
};

std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
    return value ^ value >> 31;
}

struct Random {
    std::uint64_t state;
    std::uint64_t operator()() { return state = mix(state); }
    std::uint64_t below(std::uint64_t limit) { return (*this)() % limit; }
};

// Returns small numbers, whose sums depend on the order in the last bits only.
float element_of(std::uint64_t number, std::uint32_t member, std::size_t place) {
    const std::uint64_t value =
        (number * 0x9e3779b97f4a7c15ULL + member * 0xc2b2ae3d27d4eb4fULL + place) * 0xff51afd7ed558ccdULL;
    return static_cast<float>(value >> 40) * 1e-3F;
}

void add(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const float*>(one), *second = static_cast<const float*>(other);
    for (std::size_t i = 0; i < elements; ++i) static_cast<float*>(out)[i] = first[i] + second[i];
}

struct Task {
    std::uint64_t number = 0;
    test::Material<float> material;
    std::size_t grain = 0;  // bytes by which a root's buffer fills up at a time; 0: complete from the start
    Operation operation;
    float operator()(std::uint32_t member, std::size_t place) const {
        return element_of(number, member, place);
    }
};

class Member {
  public:
    Member(host::Team& team, const Workload& workload)
        : team_(team),
          workload_(workload),
          shared_{mix(workload.seed)},
          own_{mix(workload.seed * 977 + team.self() + 1)} {}

    int run() {
        said_at_ = begun_at_ = monotonic_now();
        for (std::uint64_t number = 0; number < workload_.count && failures_ == 0; ++number) {
            begin(number);
            if (static_cast<double>(own_.below(1'000'000)) < workload_.pause_percent * 1e4) pause();
            while (!open_.empty() && open_.size() >= window_) step();
            if (own_.below(64) == 0) window_ = 1 + own_.below(workload_.window);
            if (number % 4096 == 4095 && !workload_.quiet && team_.self() == 0) say(number + 1);
        }
        while (!open_.empty() && failures_ == 0) step();
        if (!workload_.quiet && team_.self() == 0) report();
        return failures_;
    }

  private:
    void draw(Task& task) {
        test::Party party = {test::kAllKinds[shared_.below(std::size(test::kAllKinds))],
                             static_cast<std::uint32_t>(shared_.below(team_.size())), 0, team_.self(),
                             team_.size()};
        unsigned order = static_cast<unsigned>(shared_.below(64));
        if (order >= 56 && shared_.below(workload_.large_one_in) != 0) order %= 56;
        // Mostly small, sometimes large, zero now and then.
        std::size_t limit = order < 40 ? 128 : order < 56 ? 4096 : order < 62 ? 65'536 : workload_.max_bytes;
        limit = std::min(limit, workload_.max_bytes);
        party.elements = shared_.below(limit / sizeof(float) + 1);
        if (party.kind >= Kind::allgather && party.kind != Kind::reduce_scatter) party.elements /= party.size;
        if (party.kind == Kind::barrier) party.elements = 0;
        // The result is in place on every member, on none, or on every second member.
        const std::uint64_t in_place = shared_.below(4);
        task.material.lay_out(party, in_place == 0 || (in_place == 1 && party.self % 2 == 0), task);
        task.grain = shared_.below(4) == 0 ? 1 + shared_.below(9000) : 0;
    }

    void begin(std::uint64_t number) {
        // Tasks are reused with their memory: long runs make no allocations.
        if (spare_.empty()) spare_.emplace_back();
        Task& task = open_.emplace_back(std::move(spare_.back()));
        spare_.pop_back();
        task.number = number;
        draw(task);
        Operation& operation = task.operation;
        operation = {};
        task.material.put_into(operation);
        operation.root = task.material.party.root;
        operation.combiner = {add, sizeof(float)};
        operation.ready = task.grain == 0 ? operation.bytes : 0;
        const bool grows = operation.kind == Kind::broadcast && task.grain != 0;
        if (open_.size() == 1 && !grows && own_.below(2) == 0) {
            if (const int code = team_.run(operation); code != 0)
                return fail(task, fmt::format("error {}", code));
        } else if (const int code = team_.post(operation); code != 0) {
            return fail(task, fmt::format("post: {}", code));
        }
        if (own_.below(8) == 0) team_.progress();
    }

    // Makes progress, and checks completed operations.
    void step() {
        for (Task& task : open_) {
            Operation& operation = task.operation;
            if (operation.done || operation.ready >= operation.bytes || operation.kind != Kind::broadcast ||
                operation.root != team_.self())
                continue;
            operation.ready = std::min(operation.bytes, operation.ready + task.grain);
            break;
        }
        // A thousand members polling five thousand times a second would use the whole processor time.
        const int longest_us = std::max(200, 10 * static_cast<int>(team_.size()));
        if (!team_.progress()) team_.wait_turn(nullptr, nullptr, Nanoseconds::from_us(longest_us));
        while (!open_.empty() && open_.front().operation.done) {
            check(open_.front());
            spare_.push_back(std::move(open_.front()));
            open_.pop_front();
        }
    }

    void check(const Task& task) {
        const Operation& operation = task.operation;
        if (operation.error != 0) return fail(task, fmt::format("error {}", operation.error));
        bytes_ += operation.bytes;
        for (std::size_t i = 0; i < task.material.shape.output; ++i) {
            const float wanted = task.material.expected(i, task, std::plus<float>());
            const float found = task.material.found(i);
            if (std::memcmp(&wanted, &found, sizeof wanted) == 0) continue;
            return fail(task, fmt::format("element {} is {} instead of {}", i, found, wanted));
        }
    }

    void fail(const Task& task, const std::string& what) {
        ++failures_;
        fmt::print(stderr, "member {}: operation {} ({}, root {}, {} bytes): {}\n", team_.self(), task.number,
                   name_of(task.operation.kind), task.operation.root, task.operation.bytes, what);
        team_.fail(EIO);
    }

    void pause() {
        const std::uint64_t kind = own_.below(8);
        if (kind == 0) ::usleep(static_cast<useconds_t>(own_.below(3000)));
        if (kind < 4) ::sched_yield();
        const Nanoseconds until = monotonic_now() + Nanoseconds::from_us(static_cast<int>(own_.below(30)));
        while (monotonic_now() < until) {
        }
    }

    double per_second(std::uint64_t count) const {
        return static_cast<double>(count) * 1e9 /
               static_cast<double>(std::max<std::int64_t>(1, (monotonic_now() - begun_at_).value));
    }

    void say(std::uint64_t count) {
        if (monotonic_now() - said_at_ < kBetweenLines) return;
        said_at_ = monotonic_now();
        fmt::print(stderr, "{} of {} operations, {:.0f} a second\n", count, workload_.count,
                   per_second(count));
    }

    void report() const {
        const host::TeamCounters& counters = team_.counters();
        fmt::print(
            "{}\n{} operations, {:.0f} a second, {} MiB checked; {} single copies, {} yields, {} sleeps\n",
            team_.explain(), workload_.count, per_second(workload_.count), bytes_ >> 20,
            counters.single_copies, counters.yields, counters.sleeps);
    }

    host::Team& team_;
    const Workload& workload_;
    Random shared_;
    Random own_;
    std::deque<Task> open_;
    std::vector<Task> spare_;
    Nanoseconds begun_at_{0}, said_at_{0};
    std::size_t window_ = 4;
    std::uint64_t bytes_ = 0;
    int failures_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    Workload workload;
    test::MembersOptions options;
    bool no_single_copy = false;
    std::uint64_t direct_from = 0;
    unsigned limit_s = 0;
    Arguments arguments("fi_mcc_host_stress", "Random collectives in shared memory, every byte checked",
                        PACKAGE_VERSION);
    arguments.option("-m,--members", options.count, "members, 1 to 1024").range(1U, host::kMaxMembers);
    arguments.flag("--threads", options.threads, "members are threads, not processes");
    arguments.option("-n,--count", workload.count, "operations");
    arguments.option("--seed", workload.seed, "of what is done");
    arguments.option("--max", workload.max_bytes, "largest operation in bytes");
    arguments
        .option("--large-one-in", workload.large_one_in,
                "so many operations that would be above 4 KiB are one; for long runs")
        .range(1, 1'000'000);
    arguments.option("--window", workload.window, "most operations open at once").range(1, 128);
    arguments.option("--pause", workload.pause_percent, "percent of operations after which a member pauses")
        .range(0.0, 100.0);
    arguments.option("--direct-from", direct_from,
                     "bytes from which on all copy straight between memories, 0: as usual");
    arguments.flag("--no-single-copy", no_single_copy, "never copy between processes");
    arguments.option("--slots", options.config.slots, "slots of a member, 0: as usual");
    arguments.option("--slot-bytes", options.config.slot_bytes, "of a slot, 0: as usual");
    arguments.option("--timeout", limit_s,
                     "seconds until it counts as hanging, 0: 200, and more for many operations");
    arguments.flag("--quiet", workload.quiet, "print failures only");
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    options.config.single_copy = !no_single_copy;
    options.config.thresholds = {.single_copy_from = direct_from,
                                 .blocks_direct_from = direct_from,
                                 .reduce_direct_from = direct_from};
    if (limit_s == 0) limit_s = 200 + static_cast<unsigned>(workload.count / 4000);
    ::alarm(limit_s);
    const int failures = test::run_members(options, [&](host::Team& team) {
        ::alarm(limit_s);
        return Member(team, workload).run();
    });
    if (failures > 0)
        fmt::print(stderr, "{} of {} members failed; again: --members {} --count {} --seed {} --max {}\n",
                   failures, options.count, options.count, workload.count, workload.seed, workload.max_bytes);
    return failures == 0 ? 0 : 1;
}
