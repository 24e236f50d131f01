// Reductions and allgathers: every datatype with every operator, every root, counts around every limit, many
// in flight among broadcasts and barriers, each element checked at each member; and the same bits on all
// members, every time. reduce_blocking.cc has the blocking calls of the provider's extension.
#include <algorithm>
#include <array>

#include "reduce_cases.h"
#include "support/program.h"

namespace mcastcoll::fabtest {

Job draw_job(const Member& me, std::uint64_t seed, std::size_t largest_bytes) {
    constexpr std::array kCollectives = {FI_ALLREDUCE, FI_REDUCE, FI_BROADCAST, FI_BARRIER, FI_ALLGATHER};
    Job job;
    job.seed = seed;
    job.collective = kCollectives[mix(seed, 1) % kCollectives.size()];
    const Datatype& type = datatypes()[mix(seed, 2) % datatypes().size()];
    job.type = type.type;
    std::uint64_t draw = mix(seed, 3);
    do {
        draw = mix(draw);
        job.op = operators()[draw % operators().size()].op;
    } while (!type.allows(job.op));
    const unsigned shift = static_cast<unsigned>(mix(seed, 4) % 21);
    job.count = std::min(largest_bytes, mix(seed, 5) % (std::size_t{2} << shift)) / type.bytes;
    job.root = static_cast<unsigned>(mix(seed, 6) % me.size());
    job.in_place = mix(seed, 7) % 3 == 0;
    return job;
}

}  // namespace mcastcoll::fabtest

namespace {

using namespace mcastcoll::fabtest;
using std::chrono::milliseconds;

void perform(Member& me, const Join& group, const Job& job) {
    Exercise exercise(me, job);
    me.finish(exercise.post(me, group));
    exercise.check();
}

void every_operator(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    std::uint64_t seed = me.options().seed;
    for (const Datatype& type : datatypes()) {
        for (const Operator& op : operators()) {
            if (!type.allows(op.op)) continue;
            for (const std::size_t count : {3, 1000}) {
                Job job{.type = type.type, .op = op.op, .count = count, .seed = seed = mix(seed)};
                perform(me, *group, job);
                job.collective = FI_REDUCE;
                job.root = static_cast<unsigned>(seed % me.size());
                perform(me, *group, job);
            }
            if (!type.rounds || (op.op != FI_SUM && op.op != FI_PROD)) continue;
            perform(me, *group,
                    {.type = type.type, .op = op.op, .values = Values::rough, .count = 777, .seed = seed});
        }
    }
    me.meet();
}

constexpr std::array<std::size_t, 14> kCounts = {0,    1,    2,    3,    7,     8,      9,
                                                 1000, 1399, 4096, 8193, 20000, 100000, 100003};

void allreduces(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (const std::size_t count : kCounts) {
        for (const bool in_place : {false, true}) {
            const std::uint64_t seed = mix(me.options().seed, count, in_place);
            perform(me, *group, {.type = FI_INT32, .count = count, .in_place = in_place, .seed = seed});
            perform(me, *group,
                    {.type = FI_DOUBLE, .op = FI_MIN, .count = count, .in_place = in_place, .seed = seed});
            perform(me, *group,
                    {.type = FI_UINT8, .op = FI_BXOR, .count = count, .in_place = in_place, .seed = seed});
        }
    }
    for (const std::size_t offset : {1, 2, 4})
        perform(me, *group, {.type = FI_INT64, .count = 5000, .offset = offset, .seed = offset});
    me.meet();
}

void reduces(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (const std::size_t count : kCounts) {
        for (unsigned root = 0; root < me.size(); ++root) {
            const std::uint64_t seed = mix(me.options().seed, count, root);
            Job job{.collective = FI_REDUCE, .type = FI_INT16, .count = count, .root = root, .seed = seed};
            perform(me, *group, job);
            job.in_place = true;
            job.seed = mix(seed);
            perform(me, *group, job);
            job.type = FI_LONG_DOUBLE;
            job.op = FI_MAX;
            if (count < 20000) perform(me, *group, job);
        }
    }
    me.meet();
}

void megabytes(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (const std::size_t count : {std::size_t{1} << 20, (std::size_t{1} << 20) + 1}) {
        Job job{.type = FI_INT32, .count = count, .seed = mix(me.options().seed, count)};
        perform(me, *group, job);
        job.in_place = true;
        perform(me, *group, job);
        job.collective = FI_REDUCE;
        job.root = static_cast<unsigned>(count + 1) % me.size();
        perform(me, *group, job);
    }
    me.meet();
}

void allgathers(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (const std::size_t count : kCounts) {
        for (const bool in_place : {false, true}) {
            Job job{.collective = FI_ALLGATHER, .type = FI_UINT8, .count = count, .in_place = in_place};
            job.seed = mix(me.options().seed, count, in_place);
            perform(me, *group, job);
            job.type = FI_DOUBLE_COMPLEX;
            perform(me, *group, job);
        }
    }
    perform(me, *group, {.collective = FI_ALLGATHER, .type = FI_INT16, .count = 999, .offset = 1});
    perform(me, *group, {.collective = FI_ALLGATHER, .type = FI_UINT64, .count = (1 << 19) + 3, .seed = 1});
    me.meet();
}

// Runs operations, up to `window` of them in flight, finished in random order.
void run_mixed(Member& me, std::size_t operations, std::size_t window, bool several_groups) {
    if (quick()) operations /= 3;
    if (const std::uint64_t given = me.options().operations; given != 0) operations = given;
    struct Open {
        std::unique_ptr<Exercise> exercise;
        Ticket* ticket;
    };
    const auto set = me.all_members();
    std::vector<std::unique_ptr<Join>> groups;
    for (int i = 0; i < (several_groups ? 3 : 1); ++i) groups.push_back(me.join(set.get()));
    std::vector<Open> open;
    // Each member draws its own order of waits: the order must not matter.
    std::uint64_t own = mix(me.options().seed, me.rank());
    const auto finish_one = [&] {
        own = mix(own);
        const std::size_t index = own % open.size();
        me.finish(*open[index].ticket);
        open[index].exercise->check();
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
    };
    for (std::size_t i = 0; i < operations; ++i) {
        const Job job = draw_job(me, mix(me.options().seed, i, operations + window), 200'000);
        auto exercise = std::make_unique<Exercise>(me, job);
        Ticket& ticket = exercise->post(me, *groups[mix(job.seed, 8) % groups.size()]);
        open.push_back({std::move(exercise), &ticket});
        if (open.size() >= window) finish_one();
    }
    while (!open.empty()) finish_one();
    me.meet();
}

void one_at_a_time(Member& me) {
    run_mixed(me, me.options().large ? 5'000 : 200, 1, false);
}

void many_in_flight(Member& me) {
    run_mixed(me, me.options().large ? 5'000 : 300, 12, false);
}

// Keeps more operations in flight than the shared memory of a host, or an engine, can hold.
void a_hundred_in_flight(Member& me) {
    run_mixed(me, me.options().large ? 5'000 : 300, 200, false);
}

void many_groups(Member& me) {
    run_mixed(me, me.options().large ? 5'000 : 300, 12, true);
}

// Results on which several members, groups and runs of this program must agree: digests of sums with
// roundings that depend on the order. The launcher owns the digests, which so outlive the cases.
struct Digests {
    Board* board = nullptr;

    void compare(std::size_t word, std::uint64_t digest, const Exercise& exercise) const {
        std::uint64_t expected = 0;
        if (!board->words.at(word).compare_exchange_strong(expected, digest) && expected != digest)
            fail("{}: not the bits that another member, or the run before, got", exercise.describe());
    }
};

void same_bits(Member& me, const Digests& digests) {
    const auto set = me.all_members();
    std::size_t word = 0;
    for (int round = 0; round < (quick() ? 2 : 3); ++round) {
        const auto group = me.join(set.get());
        word = 0;
        for (const fi_datatype type : {FI_FLOAT, FI_DOUBLE, FI_LONG_DOUBLE, FI_FLOAT_COMPLEX}) {
            for (const std::size_t count : {1, 30, 1000, 30'000, 100'000}) {
                for (const fi_collective_op collective : {FI_ALLREDUCE, FI_REDUCE}) {
                    Job job{.collective = collective, .type = type, .values = Values::rough, .count = count};
                    job.op = count == 30 ? FI_PROD : FI_SUM;
                    job.root = static_cast<unsigned>(count) % me.size();
                    job.seed = mix(me.options().seed, count);
                    Exercise exercise(me, job);
                    // Over the rounds, each member is sometimes the first to arrive and sometimes the last.
                    me.idle(milliseconds(mix(count, me.rank(), static_cast<std::uint64_t>(round)) % 4));
                    me.finish(exercise.post(me, *group));
                    exercise.check();
                    ++word;
                    if (collective == FI_ALLREDUCE || me.rank() == job.root)
                        digests.compare(word, exercise.digest(), exercise);
                }
            }
        }
        me.meet();
    }
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_reduce", "Reductions and allgathers, with completions and blocking");
    const SharedBoard kept;
    const Digests digests{&*kept};
    const auto add = [&](const char* name, std::function<void(Member&)> body) {
        program.add({.name = name, .body = std::move(body), .only_mcastcoll = true});
    };
    add("every datatype and operator", every_operator);
    add("allreduces", allreduces);
    add("reduces to every root", reduces);
    add("allgathers", allgathers);
    add("megabytes", megabytes);
    add("one at a time", one_at_a_time);
    add("many in flight", many_in_flight);
    add("hundreds in flight", a_hundred_in_flight);
    add("many groups", many_groups);
    add("the same bits", [&](Member& me) { same_bits(me, digests); });
    add("the same bits in another run", [&](Member& me) { same_bits(me, digests); });
    add("blocking", blocking);
    add("blocking among others", blocking_mixed);
    add("blocking in several threads", blocking_in_threads);
    add("blocking in a group of one", blocking_alone);
    add("blocking calls that are refused", blocking_refusals);
    add("blocking before the join is complete", blocking_too_early);
    add("blocking behind too many", blocking_too_many);
    const auto add_failing = [&](const char* name, void (*body)(Member&), std::vector<unsigned> victims,
                                 std::map<std::string, std::string> environment) {
        program.add({.name = name,
                     .body = body,
                     .victims = std::move(victims),
                     .environment = std::move(environment),
                     .only_mcastcoll = true});
    };
    add_failing("blocking while lengths disagree", blocking_lengths_disagree, {},
                {{"FI_MCASTCOLL_STALL_TIMEOUT", "3"}});
    add_failing("a member dies while others block", blocking_member_dies, {1}, {});
    add_failing("a blocking call waits too long", blocking_stalled, {},
                {{"FI_MCASTCOLL_STALL_TIMEOUT", "1"}});
    return program.run(argc, argv);
}
