// Bad arguments: each gets its error at once and harms nothing; what is not there says so; what is there can
// be asked for.
#include <rdma/fi_cm.h>

#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;

// The group still works: everybody broadcasts once.
void still_works(Member& me, const Join& group) {
    for (unsigned root = 0; root < me.size(); ++root) {
        const std::uint64_t seed = mix(me.options().seed, root);
        Buffer buffer(256 * me.size());
        buffer.poison();
        if (me.rank() == root) buffer.fill(seed);
        me.finish(me.broadcast(group, buffer.data(), buffer.size(), root));
        buffer.check(seed, "a broadcast behind bad arguments");
    }
    me.finish(me.barrier(group));
}

// Refused at once, with this error, and never completed: finishing later operations would find its context.
template <typename Call>
void refused(Member& me, long error, const char* what, Call call) {
    Ticket& ticket = me.new_ticket();
    const long result = call(&ticket);
    me.drop(ticket);
    if (result != error) fail("{} returned {} instead of {}", what, describe(result), describe(error));
}

void bad_broadcasts(Member& me) {
    const auto set = me.everybody();
    const auto group = me.join(set.get());
    const fi_addr_t mc = group->address();
    char bytes[64] = {};
    const auto broadcast = [&](void* buffer, std::size_t count, fi_addr_t address, fi_addr_t root,
                               fi_datatype type, std::uint64_t flags) {
        return [=, &me](void* context) {
            return fi_broadcast(me.ep(), buffer, count, nullptr, address, root, type, flags, context);
        };
    };
    refused(me, -FI_EINVAL, "root behind the last member", broadcast(bytes, 64, mc, me.size(), FI_UINT8, 0));
    refused(me, -FI_EINVAL, "root FI_ADDR_UNSPEC", broadcast(bytes, 64, mc, FI_ADDR_UNSPEC, FI_UINT8, 0));
    refused(me, -FI_EINVAL, "no buffer", broadcast(nullptr, 64, mc, 0, FI_UINT8, 0));
    refused(me, -FI_EINVAL, "no such group", broadcast(bytes, 64, mc + 12345, 0, FI_UINT8, 0));
    refused(me, -FI_EINVAL, "group FI_ADDR_UNSPEC", broadcast(bytes, 64, FI_ADDR_UNSPEC, 0, FI_UINT8, 0));
    refused(me, -FI_EINVAL, "no such datatype",
            broadcast(bytes, 64, mc, 0, static_cast<fi_datatype>(200), 0));
    refused(me, -FI_EINVAL, "a count that overflows", broadcast(bytes, SIZE_MAX / 2, mc, 0, FI_UINT64, 0));
    still_works(me, *group);
    me.meet();
}

void bad_barriers(Member& me) {
    const auto set = me.everybody();
    const auto group = me.join(set.get());
    refused(me, -FI_EINVAL, "barrier of no such group",
            [&](void* context) { return fi_barrier(me.ep(), group->address() + 777, context); });
    refused(me, -FI_EINVAL, "barrier of FI_ADDR_NOTAVAIL",
            [&](void* context) { return fi_barrier(me.ep(), FI_ADDR_NOTAVAIL, context); });
    still_works(me, *group);
    me.meet();
}

void closed_group(Member& me) {
    const auto set = me.everybody();
    const auto group = me.join(set.get());
    auto gone = me.join(set.get());
    still_works(me, *gone);
    const fi_addr_t old = gone->address();
    gone.reset();
    char bytes[8] = {};
    refused(me, -FI_EINVAL, "broadcast in a closed group", [&](void* context) {
        return fi_broadcast(me.ep(), bytes, 8, nullptr, old, 0, FI_UINT8, 0, context);
    });
    refused(me, -FI_EINVAL, "barrier in a closed group",
            [&](void* context) { return fi_barrier(me.ep(), old, context); });
    still_works(me, *group);
    me.meet();
}

// A group with an operation under way cannot be closed; the operation is not lost by the attempt.
void busy_group(Member& me) {
    const auto set = me.everybody();
    const auto group = me.join(set.get());
    if (me.rank() == 0) {
        Ticket& ticket = me.barrier(*group);
        CHECK_RETURNS(-FI_EBUSY, fi_close(&group->mc->fid));
        me.meet();
        me.finish(ticket);
    } else {
        me.meet();
        me.finish(me.barrier(*group));
    }
    still_works(me, *group);
    me.meet();
}

void bad_joins(Member& me) {
    const auto set = me.everybody();
    const auto group = me.join(set.get());
    fi_context2 context{};
    fid_mc* mc = nullptr;
    CHECK_RETURNS(-FI_EINVAL, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, nullptr, 0, &mc, &context));
    CHECK_RETURNS(-FI_EINVAL,
                  fi_join_collective(me.ep(), group->address() + 4321, set.get(), 0, &mc, &context));
    const auto nobody = me.nobody();
    CHECK_RETURNS(-FI_EINVAL, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, nobody.get(), 0, &mc, &context));
    // A set without the caller.
    const auto others = me.set_of({(me.rank() + 1) % me.size()});
    CHECK_RETURNS(-FI_EINVAL, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, others.get(), 0, &mc, &context));
    CHECK(mc == nullptr);
    still_works(me, *group);
    me.meet();
}

void bad_sets(Member& me) {
    const auto set = me.everybody();
    fid_av_set* raw = nullptr;
    CHECK(fi_av_set(me.av(), nullptr, &raw, nullptr) == -FI_EINVAL);
    fi_av_set_attr attr{};
    attr.count = me.size();
    attr.stride = 1;
    attr.start_addr = me.address_of(0);
    attr.end_addr = me.address_of(me.size() - 1) + 7;  // not in the address vector
    CHECK_RETURNS(-FI_EINVAL, fi_av_set(me.av(), &attr, &raw, nullptr));
    attr.end_addr = FI_ADDR_NOTAVAIL;
    CHECK_RETURNS(-FI_EINVAL, fi_av_set(me.av(), &attr, &raw, nullptr));
    // A range that ends before it starts is empty, and nobody can join that.
    attr.start_addr = me.address_of(1);
    attr.end_addr = me.address_of(0);
    CHECK_RETURNS(0, fi_av_set(me.av(), &attr, &raw, nullptr));
    const Fid<fid_av_set> empty(raw);
    fid_mc* mc = nullptr;
    CHECK_RETURNS(-FI_EINVAL, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, empty.get(), 0, &mc, nullptr));
    CHECK_RETURNS(-FI_EINVAL, fi_av_set_insert(set.get(), FI_ADDR_NOTAVAIL));
    CHECK(fi_av_set_insert(set.get(), me.address_of(0)) < 0);  // it is there already
    CHECK(fi_av_set_remove(set.get(), FI_ADDR_NOTAVAIL) < 0);
    const auto group = me.join(set.get());
    still_works(me, *group);
    me.meet();
}

void unsupported(Member& me) {
    const auto set = me.everybody();
    const auto group = me.join(set.get());
    const fi_addr_t mc = group->address();
    std::vector<std::uint64_t> in(8 * me.size()), out(8 * me.size());
    const auto try_all = [&](fi_datatype type, std::size_t count) {
        fid_ep* ep = me.ep();
        refused(me, -FI_ENOSYS, "fi_alltoall", [&](void* context) {
            return fi_alltoall(ep, in.data(), count, nullptr, out.data(), nullptr, mc, type, 0, context);
        });
        refused(me, -FI_ENOSYS, "fi_allreduce", [&](void* context) {
            return fi_allreduce(ep, in.data(), count, nullptr, out.data(), nullptr, mc, type, FI_SUM, 0,
                                context);
        });
        refused(me, -FI_ENOSYS, "fi_allgather", [&](void* context) {
            return fi_allgather(ep, in.data(), count, nullptr, out.data(), nullptr, mc, type, 0, context);
        });
        refused(me, -FI_ENOSYS, "fi_reduce_scatter", [&](void* context) {
            return fi_reduce_scatter(ep, in.data(), count, nullptr, out.data(), nullptr, mc, type, FI_SUM, 0,
                                     context);
        });
        refused(me, -FI_ENOSYS, "fi_reduce", [&](void* context) {
            return fi_reduce(ep, in.data(), count, nullptr, out.data(), nullptr, mc, 0, type, FI_SUM, 0,
                             context);
        });
        refused(me, -FI_ENOSYS, "fi_scatter", [&](void* context) {
            return fi_scatter(ep, in.data(), count, nullptr, out.data(), nullptr, mc, 0, type, 0, context);
        });
        refused(me, -FI_ENOSYS, "fi_gather", [&](void* context) {
            return fi_gather(ep, in.data(), count, nullptr, out.data(), nullptr, mc, 0, type, 0, context);
        });
    };
    try_all(FI_UINT64, 8);
    try_all(FI_UINT8, 0);
    still_works(me, *group);
    me.meet();
}

void query(Member& me) {
    const auto ask = [&](fi_collective_op operation, fi_datatype type, fi_op op, std::uint64_t flags,
                         fi_collective_attr& attr) {
        attr = {};
        attr.op = op;
        attr.datatype = type;
        return fi_query_collective(me.domain(), operation, &attr, flags);
    };
    fi_collective_attr attr{};
    CHECK_RETURNS(0, ask(FI_BROADCAST, FI_UINT8, FI_NOOP, 0, attr));
    CHECK(attr.max_members >= 256 || !me.options().is_mcastcoll());
    CHECK_RETURNS(0, ask(FI_BARRIER, FI_VOID, FI_NOOP, 0, attr));
    CHECK(attr.max_members >= 256 || !me.options().is_mcastcoll());
    if (!me.options().is_mcastcoll()) return;
    for (const fi_datatype type : {FI_INT8, FI_DOUBLE, FI_LONG_DOUBLE_COMPLEX})
        CHECK_RETURNS(0, ask(FI_BROADCAST, type, FI_NOOP, 0, attr));
    for (const fi_collective_op operation :
         {FI_ALLTOALL, FI_ALLREDUCE, FI_ALLGATHER, FI_REDUCE_SCATTER, FI_REDUCE, FI_SCATTER, FI_GATHER}) {
        const int result = ask(operation, FI_UINT64, FI_SUM, 0, attr);
        if (result != -FI_ENOSYS && result != -FI_EOPNOTSUPP)
            fail("fi_query_collective of operation {} returned {}", static_cast<int>(operation),
                 describe(result));
    }
    CHECK(ask(static_cast<fi_collective_op>(15), FI_UINT8, FI_NOOP, 0, attr) < 0);
    CHECK(ask(FI_BROADCAST, static_cast<fi_datatype>(200), FI_NOOP, 0, attr) < 0);
    CHECK(fi_query_collective(me.domain(), FI_BROADCAST, nullptr, 0) < 0);
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_args", "Bad arguments, operations that are not there, and what can be asked for");
    program.add({.name = "bad broadcasts", .body = bad_broadcasts, .only_mcastcoll = true});
    program.add({.name = "bad barriers", .body = bad_barriers, .only_mcastcoll = true});
    program.add({.name = "closed groups", .body = closed_group, .only_mcastcoll = true});
    program.add({.name = "closing a busy group", .body = busy_group, .only_mcastcoll = true});
    program.add({.name = "bad joins", .body = bad_joins, .only_mcastcoll = true});
    program.add({.name = "bad sets", .body = bad_sets, .only_mcastcoll = true});
    program.add({.name = "operations that are not there", .body = unsupported, .only_mcastcoll = true});
    program.add({"queries", query});
    return program.run(argc, argv);
}
