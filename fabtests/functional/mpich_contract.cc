// MPICH's requirements on a provider with collectives (src/mpid/ch4/netmod/ofi/coll of its main branch): the
// same calls in the same order, with the same arguments, and the same handling of every return value.
//
// MPICH's requests and joins have contexts of its own layout: the context of an operation is an array of
// fi_context inside a request, the context of a join is a structure the provider must not write to. Queues
// are only polled: the completion queue for requests, the event queue in every progress call. -FI_ENOSYS and
// -FI_EOPNOTSUPP of a call let MPICH fall back; any other error, -FI_EAGAIN included, ends the program, and
// so does a completion that MPICH cannot assign.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;

// MPICH's structures, with the same order of members.
struct Request {
    std::array<char, 16> header{};
    std::array<fi_context, 2> context{};
    int event_id = 0;
    bool completed = false;
    int error = 0;
};

struct JoinRequest {
    bool completed = false;
    int error = 0;
    std::array<std::uint64_t, 4> untouched{0x5eed, 0x5eed, 0x5eed, 0x5eed};
};

constexpr int kEvent = 4711;

struct Communicator {
    Fid<fid_av_set> set;
    Fid<fid_mc> mc;
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    unsigned rank = 0, size = 0;
};

class Mpich {
  public:
    explicit Mpich(Member& me) : me_(me) {
        CHECK(me.domain()->ops->query_collective != nullptr);
        CHECK(me.ep()->collective != nullptr);
        CHECK(me.av()->ops->av_set != nullptr);
    }

    // Opens an empty set with a count, adds members, gets its address, joins, and waits for the join.
    Communicator create(const std::vector<unsigned>& ranks) {
        Communicator comm;
        fi_av_set_attr attr{};
        attr.count = ranks.size();
        attr.start_addr = FI_ADDR_NOTAVAIL;
        attr.end_addr = FI_ADDR_NOTAVAIL;
        attr.stride = 0;
        attr.flags = FI_BROADCAST_SET | FI_ALLREDUCE_SET;
        fid_av_set* set = nullptr;
        CHECK_RETURNS(0, fi_av_set(me_.av(), &attr, &set, nullptr));
        comm.set.reset(set);
        for (const unsigned rank : ranks) {
            if (rank == me_.rank()) comm.rank = comm.size;
            ++comm.size;
            CHECK_RETURNS(0, fi_av_set_insert(set, me_.address_of(rank)));
        }
        fi_addr_t set_address = FI_ADDR_UNSPEC;
        CHECK_RETURNS(0, fi_av_set_addr(set, &set_address));
        JoinRequest joined;
        fid_mc* mc = nullptr;
        CHECK_RETURNS(0, fi_join_collective(me_.ep(), set_address, set, 0, &mc, &joined));
        comm.mc.reset(mc);
        wait("a join", [&] { return joined.completed; });
        CHECK(joined.error == 0);
        for (const std::uint64_t word : joined.untouched) CHECK(word == 0x5eed);
        comm.address = fi_mc_addr(mc);
        return comm;
    }

    // MPICH queries before every call, so the query must be cheap and complete.
    bool query(const Communicator& comm, fi_collective_op collective, fi_datatype datatype, fi_op op) {
        fi_collective_attr attr{};
        attr.op = op;
        attr.datatype = datatype;
        attr.mode = 0;
        if (fi_query_collective(me_.domain(), collective, &attr, 0) != 0) return false;
        CHECK(attr.max_members >= comm.size);
        return true;
    }

    // Starts a broadcast and waits for it. Returns false where MPICH would fall back.
    bool broadcast(const Communicator& comm, void* buffer, std::size_t count, fi_datatype datatype,
                   unsigned root) {
        if (!query(comm, FI_BROADCAST, datatype, FI_NOOP)) return false;
        Request request;
        request.event_id = kEvent;
        return finish(request, fi_broadcast(me_.ep(), buffer, count, nullptr, comm.address, root, datatype, 0,
                                            request.context.data()));
    }

    bool allreduce(const Communicator& comm, const void* input, void* result, std::size_t count,
                   fi_datatype datatype, fi_op op) {
        if (!query(comm, FI_ALLREDUCE, datatype, op)) return false;
        Request request;
        request.event_id = kEvent;
        return finish(request, fi_allreduce(me_.ep(), input, count, nullptr, result, nullptr, comm.address,
                                            datatype, op, 0, request.context.data()));
    }

  private:
    bool finish(Request& request, ssize_t posted) {
        if (posted == -FI_ENOSYS || posted == -FI_EOPNOTSUPP) return false;
        if (posted != 0) fail("a collective returned {}, which ends MPICH's program", describe(posted));
        current_ = &request;
        wait("a collective", [&] { return request.completed; });
        current_ = nullptr;
        CHECK(request.error == 0);
        CHECK(request.event_id == kEvent);
        for (const char byte : request.header) CHECK(byte == 0);
        return true;
    }

    template <typename Holds>
    void wait(const char* what, Holds holds) {
        const auto deadline = Clock::now() + std::chrono::seconds(me_.options().wait_s);
        while (!holds()) {
            read_completions();
            read_events();
            if (Clock::now() > deadline) fail("{} did not end within {} s", what, me_.options().wait_s);
            sched_yield();
        }
    }

    Request& request_of(void* context) {
        if (current_ == nullptr || context != current_->context.data())
            fail("a completion has the context {}, which no request has", context);
        return *current_;
    }

    void read_completions() {
        std::array<fi_cq_tagged_entry, 8> entries{};
        const ssize_t got = fi_cq_read(me_.cq(), entries.data(), entries.size());
        if (got == -FI_EAGAIN) return;
        if (got == -FI_EAVAIL) {
            fi_cq_err_entry error{};
            CHECK(fi_cq_readerr(me_.cq(), &error, 0) == 1);
            Request& request = request_of(error.op_context);
            request.error = error.err;
            request.completed = true;
            return;
        }
        if (got < 0) fail("fi_cq_read returned {}", describe(got));
        for (ssize_t i = 0; i < got; ++i)
            request_of(entries[static_cast<std::size_t>(i)].op_context).completed = true;
    }

    void read_events() {
        for (;;) {
            std::uint32_t event = 0;
            fi_eq_entry entry{};
            const ssize_t got = fi_eq_read(me_.eq(), &event, &entry, sizeof entry, 0);
            if (got > 0) {
                if (event == FI_JOIN_COMPLETE && entry.context != nullptr)
                    static_cast<JoinRequest*>(entry.context)->completed = true;
            } else if (got == -FI_EAVAIL) {
                fi_eq_err_entry error{};
                CHECK(fi_eq_readerr(me_.eq(), &error, 0) > 0);
                CHECK(error.context != nullptr);
                auto& request = *static_cast<JoinRequest*>(error.context);
                request.error = error.err != 0 ? error.err : FI_EIO;
                request.completed = true;
            } else {
                CHECK(got == -FI_EAGAIN);
                return;
            }
        }
    }

    Member& me_;
    Request* current_ = nullptr;
};

constexpr std::array kDatatypes = {FI_INT8,   FI_UINT8, FI_INT16,  FI_UINT16, FI_INT32,
                                   FI_UINT32, FI_INT64, FI_UINT64, FI_FLOAT,  FI_DOUBLE};
constexpr std::array kOperators = {FI_SUM, FI_MAX,  FI_MIN,  FI_PROD, FI_BAND,
                                   FI_BOR, FI_BXOR, FI_LAND, FI_LOR,  FI_LXOR};

std::vector<unsigned> all_ranks(const Member& me) {
    std::vector<unsigned> ranks;
    for (unsigned i = 0; i < me.size(); ++i) ranks.push_back(i);
    return ranks;
}

void check_broadcast(Member& me, Mpich& mpich, const Communicator& comm, std::size_t bytes, unsigned root,
                     std::uint64_t seed) {
    Buffer buffer(bytes);
    buffer.poison();
    if (comm.rank == root) buffer.fill(seed);
    if (!mpich.broadcast(comm, buffer.data(), bytes, FI_UINT8, root)) {
        CHECK(!me.options().is_mcastcoll());
        return;
    }
    buffer.check(seed, "MPICH's broadcast");
}

// Checks a sum of ranks, which every member can compute; MPI_IN_PLACE passes the same buffer twice.
void check_sum(Member& me, Mpich& mpich, const Communicator& comm, std::size_t count, bool in_place) {
    std::vector<std::int64_t> input(count), result(count);
    for (std::size_t i = 0; i < count; ++i) input[i] = static_cast<std::int64_t>(i) + comm.rank;
    if (in_place) result = input;
    if (!mpich.allreduce(comm, in_place ? result.data() : input.data(), result.data(), count, FI_INT64,
                         FI_SUM)) {
        CHECK(!me.options().is_mcastcoll());
        return;
    }
    const std::int64_t n = comm.size;
    for (std::size_t i = 0; i < count; ++i)
        CHECK(result[i] == n * static_cast<std::int64_t>(i) + n * (n - 1) / 2);
}

void calls_in_order(Member& me) {
    Mpich mpich(me);
    const Communicator world = mpich.create(all_ranks(me));
    for (std::uint64_t round = 0; round < (me.options().large ? 3000U : 120U); ++round) {
        const std::uint64_t draw = mix(me.options().seed, round);
        const std::size_t bytes = draw % (std::uint64_t{2} << (draw >> 32) % 19);
        const auto root = static_cast<unsigned>(round % me.size());
        check_broadcast(me, mpich, world, bytes, root, draw);
        check_sum(me, mpich, world, bytes / 16, round % 2 == 1);
    }
    me.meet();
}

// Every call of MPICH works, or fails on every member with an error known to MPICH.
void every_datatype(Member& me) {
    Mpich mpich(me);
    const Communicator world = mpich.create(all_ranks(me));
    for (const fi_datatype type : kDatatypes) {
        std::array<double, 8> moved{};  // 8 elements of the largest datatype
        CHECK(mpich.broadcast(world, moved.data(), 8, type, 0) || !me.options().is_mcastcoll());
        for (const fi_op op : kOperators) {
            std::array<double, 8> input{}, result{};
            (void)mpich.allreduce(world, input.data(), result.data(), 8, type, op);
        }
    }
    me.meet();
}

// Communicators created by all members at the same time, of different members in different orders, used in
// turns, and freed in mid-run.
void communicators(Member& me) {
    Mpich mpich(me);
    const Communicator world = mpich.create(all_ranks(me));
    for (unsigned round = 0; round < 6; ++round) {
        std::vector<unsigned> half;
        for (unsigned i = 0; i < me.size(); ++i) {
            const unsigned rank = round % 2 == 1 ? me.size() - 1 - i : i;
            if (rank % 2 == me.rank() % 2) half.push_back(rank);
        }
        // MPICH creates no group for a single member.
        Communicator part;
        if (half.size() >= 2) part = mpich.create(half);
        for (unsigned i = 0; i < 5; ++i) {
            if (part.mc) check_sum(me, mpich, part, 1 + 100 * i, false);
            check_sum(me, mpich, world, 1 + 50 * i, true);
            if (part.mc)
                check_broadcast(me, mpich, part, 3000 * i, i % part.size, mix(round, i, me.rank() % 2));
        }
    }
    me.meet();
}

const std::map<std::string, std::string> kLoss = {{"FI_MCASTCOLL_FAULT", "loss=5,seed=3"}};

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_mpich", "The calls of MPICH's own libfabric collectives, in its order");
    program.add({"calls in order", calls_in_order});
    program.add({.name = "calls in order, 5 % lost", .body = calls_in_order, .environment = kLoss});
    program.add({"every datatype and operator", every_datatype});
    program.add({.name = "communicators", .body = communicators, .environment = kLoss});
    program.add({.name = "over FI_AV_MAP", .body = calls_in_order, .opening = {.av_type = FI_AV_MAP}});
    return program.run(argc, argv);
}
