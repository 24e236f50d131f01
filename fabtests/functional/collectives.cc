// Every collective of libfabric, in every allowed datatype and operator, compared with a plain reference:
// counts around every limit, every root, in place, message form, many in flight in several groups.
// fi_query_collective() must report exactly the combinations that work.
#include <algorithm>
#include <array>
#include <numeric>

#include "exercise.h"
#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;

constexpr std::array kMoves = {FI_BROADCAST, FI_ALLGATHER, FI_GATHER, FI_SCATTER, FI_ALLTOALL};
constexpr std::array kReductions = {FI_REDUCE, FI_ALLREDUCE, FI_REDUCE_SCATTER};
constexpr std::array kRooted = {FI_BROADCAST, FI_REDUCE, FI_GATHER, FI_SCATTER};

bool is_rooted(fi_collective_op collective) {
    return std::find(kRooted.begin(), kRooted.end(), collective) != kRooted.end();
}

void perform(Member& me, const Join& group, const Job& job) {
    const Exercise exercise(me, job);
    me.finish(exercise.post(me, group));
    exercise.check();
}

// Runs every datatype with every operator, with two counts, or with many under --large.
void every_datatype(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    std::uint64_t seed = me.options().seed;
    std::vector<std::size_t> counts = {3, 500};
    if (me.options().large) counts = {0, 1, 2, 5, 17, 1000, 8191, 50'001};
    const auto perform_next = [&](fi_collective_op collective, const Datatype& type, fi_op op) {
        for (const std::size_t count : counts) {
            seed = mix(seed);
            perform(me, *group,
                    {.collective = collective,
                     .type = type.type,
                     .op = op,
                     .count = count,
                     .root = static_cast<unsigned>(seed % me.size()),
                     .in_place = seed / 64 % 3 == 0,
                     .seed = seed,
                     .message = seed / 512 % 4 == 0});
        }
    };
    for (const Datatype& type : datatypes()) {
        for (const fi_collective_op collective : kMoves) perform_next(collective, type, FI_SUM);
        for (const Operator& op : operators())
            for (const fi_collective_op collective : kReductions)
                if (type.allows(op.op)) perform_next(collective, type, op.op);
    }
    me.meet();
}

// Counts: zero, fewer elements than members, one more and one less than an even division, and values around a
// fragment, a slot and a window.
void counts_and_roots(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const std::size_t n = me.size();
    std::vector<std::size_t> counts = {0, 1, n - 1, n, n + 1, 350, 2048, 8193, 100'003};
    if (me.options().large) counts.insert(counts.end(), {7, 255, 4095, 65'537, 1'000'003});
    const auto perform_all = [&](fi_collective_op collective, fi_datatype type) {
        for (const std::size_t count : counts)
            for (const bool in_place : {false, true})
                for (unsigned root = 0; root < me.size(); ++root) {
                    Job job{.collective = collective, .type = type, .count = count, .root = root};
                    job.in_place = in_place;
                    job.seed = mix(me.options().seed, count, 2 * root + in_place);
                    perform(me, *group, job);
                    if (!is_rooted(collective) || (count > 10'000 && !me.options().large)) break;
                }
    };
    for (const fi_collective_op collective : kMoves) perform_all(collective, FI_UINT8);
    for (const fi_collective_op collective : kReductions) perform_all(collective, FI_INT32);
    for (const fi_collective_op collective : {FI_GATHER, FI_SCATTER, FI_ALLTOALL, FI_REDUCE_SCATTER})
        perform(me, *group, {.collective = collective, .type = FI_INT16, .count = 999, .offset = 1});
    perform(me, *group, {.collective = FI_BARRIER});
    me.meet();
}

// Runs operations, up to `window` of them in flight, finished in an order that each member draws for itself.
void run_mixed(Member& me, std::size_t window, std::size_t groups_wanted) {
    struct Open {
        std::unique_ptr<Exercise> exercise;
        Ticket* ticket;
    };
    const std::uint64_t given = me.options().operations;
    const std::uint64_t operations = given != 0 ? given : me.options().large ? 5000 : 200;
    const auto set = me.all_members();
    std::vector<std::unique_ptr<Join>> groups;
    while (groups.size() < groups_wanted) groups.push_back(me.join(set.get()));
    std::vector<Open> open;
    std::uint64_t own = mix(me.options().seed, me.rank());
    const auto finish_one = [&] {
        own = mix(own);
        const std::size_t index = own % open.size();
        me.finish(*open[index].ticket);
        open[index].exercise->check();
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
    };
    for (std::uint64_t i = 0; i < operations; ++i) {
        const Job job = draw_any_job(me.size(), mix(me.options().seed, i, window + groups_wanted), 200'000);
        auto exercise = std::make_unique<Exercise>(me, job);
        Ticket& ticket = exercise->post(me, *groups[mix(job.seed, 9) % groups.size()]);
        open.push_back({std::move(exercise), &ticket});
        if (open.size() >= window) finish_one();
    }
    while (!open.empty()) finish_one();
    me.meet();
}

// Message form, with buffers in non-contiguous pieces.
void scattered_messages(Member& me) {
    constexpr std::size_t kPiece = 700;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const auto call = [&](fi_collective_op collective, std::vector<fi_ioc> in, std::vector<fi_ioc> out) {
        me.finish(me.start("the message form", [&](Ticket* ticket) {
            fi_msg_collective message{};
            message.msg_iov = in.data();
            message.iov_count = in.size();
            message.coll_addr = group->address();
            message.root_addr = 1;
            message.coll = collective;
            message.datatype = FI_UINT32;
            message.op = FI_SUM;
            message.context = ticket;
            return me.ep()->collective->msg(me.ep(), &message, out.data(), nullptr, out.size(), 0);
        }));
    };
    // The second half precedes the first, with a gap between.
    std::vector<std::uint32_t> in(3 * kPiece), out(3 * kPiece, 7);
    const auto halves = [&](std::vector<std::uint32_t>& of) {
        return std::vector<fi_ioc>{{of.data() + 2 * kPiece, kPiece}, {of.data(), kPiece}};
    };
    const auto at = [&](std::vector<std::uint32_t>& of, std::size_t i) -> std::uint32_t& {
        return i < kPiece ? of[2 * kPiece + i] : of[i - kPiece];
    };
    const auto check_hole = [&](std::vector<std::uint32_t>& of, std::uint32_t wanted) {
        CHECK(std::all_of(of.begin() + kPiece, of.begin() + 2 * kPiece, [&](auto e) { return e == wanted; }));
    };
    for (std::uint32_t i = 0; i < 2 * kPiece; ++i) at(in, i) = i + me.rank();
    call(FI_ALLREDUCE, halves(in), halves(out));
    const std::uint32_t n = me.size();
    for (std::uint32_t i = 0; i < 2 * kPiece; ++i)
        if (at(out, i) != n * i + n * (n - 1) / 2) fail("element {} of the allreduce is wrong", i);
    check_hole(out, 7);
    call(FI_BROADCAST, halves(in), {});
    for (std::uint32_t i = 0; i < 2 * kPiece; ++i)
        if (at(in, i) != i + 1) fail("element {} of the broadcast is wrong", i);
    check_hole(in, 0);
    std::vector<std::uint32_t> all(2 * kPiece * n + 1);
    call(FI_ALLGATHER, halves(in), {{all.data(), 5}, {all.data() + 6, 2 * kPiece * n - 5}});
    for (std::uint32_t i = 0; i < 2 * kPiece * n; ++i)
        if (all[i + (i < 5 ? 0 : 1)] != i % (2 * kPiece) + 1) fail("element {} of the allgather is wrong", i);
    call(FI_BARRIER, {}, {});
    Ticket& ticket = me.new_ticket();
    CHECK_RETURNS(-FI_EINVAL, me.ep()->collective->msg(me.ep(), nullptr, nullptr, nullptr, 0, 0));
    me.drop(ticket);
    me.meet();
}

// Combinations rejected by a query are refused; every other combination completes.
void queries_are_true(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    std::array<std::byte, 512> in{}, out{};
    const auto judge = [&](fi_collective_op collective, fi_datatype type, fi_op op) {
        fi_collective_attr attr{};
        attr.op = op;
        attr.datatype = type;
        const int said = fi_query_collective(me.domain(), collective, &attr, 0);
        if (said == 0) {
            CHECK(attr.max_members >= 256 && attr.datatype_attr.count * attr.datatype_attr.size >= 1 << 20);
            CHECK(type == FI_VOID || attr.datatype_attr.size == datatype_of(type).bytes);
        }
        Ticket& ticket = me.new_ticket();
        fi_msg_collective message{};
        const fi_ioc input{in.data(), 0}, result{out.data(), 0};
        fi_ioc results = result;
        message.msg_iov = &input;
        message.iov_count = 1;
        message.coll_addr = group->address();
        message.coll = collective;
        message.datatype = type;
        message.op = op;
        message.context = &ticket;
        const ssize_t did = me.ep()->collective->msg(me.ep(), &message, &results, nullptr, 1, 0);
        if (did != said)
            fail("collective {} of datatype {} with operator {}: the query said {}, the call {}",
                 static_cast<int>(collective), static_cast<int>(type), static_cast<int>(op), describe(said),
                 describe(did));
        did == 0 ? me.finish(ticket) : me.drop(ticket);
    };
    std::vector<fi_datatype> types = {FI_VOID};
    for (const Datatype& type : datatypes()) types.push_back(type.type);
    for (const fi_datatype type : types) {
        for (const fi_collective_op collective : kMoves) judge(collective, type, FI_NOOP);
        for (const fi_collective_op collective : kReductions)
            for (int op = FI_MIN; op <= FI_ATOMIC_WRITE; ++op)
                judge(collective, type, static_cast<fi_op>(op));
    }
    judge(FI_BARRIER, FI_VOID, FI_NOOP);
    me.meet();
}

// Works without the copies that an Exercise keeps, which would double the memory.
void a_gigabyte(Member& me) {
    constexpr std::size_t kBytes = std::size_t{1} << 30, kWords = kBytes / sizeof(std::uint64_t);
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    std::vector<std::uint64_t> all(kWords);
    const auto check = [&](const char* what, std::uint64_t seed) {
        for (std::size_t i = 0; i < kWords; ++i)
            if (all[i] != (seed ^ i * 0x9e3779b97f4a7c15U)) fail("word {} of the {} is wrong", i, what);
        std::fill(all.begin(), all.end(), 0);
    };
    const auto fill = [&](std::size_t begin, std::size_t end, std::uint64_t seed) {
        for (std::size_t i = begin; i < end; ++i) all[i] = seed ^ i * 0x9e3779b97f4a7c15U;
    };
    if (me.rank() == 1) fill(0, kWords, 1);
    me.finish(me.broadcast(*group, all.data(), kBytes, 1));
    check("broadcast", 1);
    const std::size_t part = kWords / me.size();
    if (part * me.size() != kWords) all.resize(kWords), fill(part * me.size(), kWords, 2);
    fill(part * me.rank(), part * (me.rank() + 1), 2);
    me.finish(me.allgather(*group, all.data() + part * me.rank(), all.data(), part, FI_UINT64));
    check("allgather", 2);
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_collectives", "All collectives against a reference");
    const auto add = [&](const char* name, std::function<void(Member&)> body, bool large = false) {
        program.add({.name = name, .body = std::move(body), .only_mcastcoll = true, .only_large = large});
    };
    add("every datatype and operator", every_datatype);
    add("counts and roots", counts_and_roots);
    add("one at a time", [](Member& me) { run_mixed(me, 1, 1); });
    add("many in flight", [](Member& me) { run_mixed(me, 12, 1); });
    add("many groups", [](Member& me) { run_mixed(me, 24, 4); });
    add("messages in pieces", scattered_messages);
    add("queries are true", queries_are_true);
    add("a gigabyte", a_gigabyte, true);
    return program.run(argc, argv);
}
