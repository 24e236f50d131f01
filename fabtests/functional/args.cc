// Invalid arguments: each call returns its error at once and has no side effects; queries report exactly what
// is supported.
#include <rdma/fi_cm.h>

#include <array>

#include "support/program.h"
#include "support/reduction.h"

namespace {

using namespace mcastcoll::fabtest;

// Checks that the group still works: every member broadcasts once.
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

// Checks that the call fails at once with this error and never completes: a late completion would surface in
// a later operation.
template <typename Call>
void refused(Member& me, long error, const char* what, Call call) {
    Ticket& ticket = me.new_ticket();
    const long result = call(&ticket);
    me.drop(ticket);
    if (result != error) fail("{} returned {} instead of {}", what, describe(result), describe(error));
}

// Like call_reduce(), has the arguments in the order that bad_reductions_of() uses.
ssize_t call_allreduce(fid_ep* ep, const void* input, void* result, std::size_t count, fi_addr_t group,
                       fi_datatype type, fi_op op, void* context) {
    return fi_allreduce(ep, input, count, nullptr, result, nullptr, group, type, op, 0, context);
}

ssize_t call_reduce(fid_ep* ep, fi_addr_t root, const void* input, void* result, std::size_t count,
                    fi_addr_t group, fi_datatype type, fi_op op, void* context) {
    return fi_reduce(ep, input, count, nullptr, result, nullptr, group, root, type, op, 0, context);
}

void bad_broadcasts(Member& me) {
    const auto set = me.all_members();
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

// The checks common to all reductions. `call` gets input, result, count, group, datatype, operator and
// context.
template <typename Call>
void bad_reductions_of(Member& me, fi_addr_t mc, const char* name, const Call& call) {
    std::array<std::uint64_t, 64> in{}, out{};
    const auto wrong = [&](long error, const char* what, const void* input, void* result, std::size_t count,
                           fi_addr_t group, fi_datatype type, fi_op op) {
        refused(me, error, fmt::format("{}: {}", name, what).c_str(),
                [&](void* context) { return call(input, result, count, group, type, op, context); });
    };
    const auto no_type = static_cast<fi_datatype>(200);
    const auto no_op = static_cast<fi_op>(200);
    const std::uint64_t* from = in.data();
    wrong(-FI_EINVAL, "no input", nullptr, out.data(), 64, mc, FI_UINT64, FI_SUM);
    wrong(-FI_EINVAL, "no result", from, nullptr, 64, mc, FI_UINT64, FI_SUM);
    wrong(-FI_EINVAL, "the result one behind the input", from, in.data() + 1, 63, mc, FI_UINT64, FI_SUM);
    wrong(-FI_EINVAL, "the result one before the input", from + 1, in.data(), 63, mc, FI_UINT64, FI_SUM);
    wrong(-FI_EINVAL, "no such datatype", from, out.data(), 64, mc, no_type, FI_SUM);
    wrong(-FI_EINVAL, "no such operator", from, out.data(), 64, mc, FI_UINT64, no_op);
    wrong(-FI_EINVAL, "no such group", from, out.data(), 64, mc + 12345, FI_UINT64, FI_SUM);
    wrong(-FI_EINVAL, "group FI_ADDR_UNSPEC", from, out.data(), 64, FI_ADDR_UNSPEC, FI_UINT64, FI_SUM);
    wrong(-FI_EINVAL, "a count that overflows", from, out.data(), SIZE_MAX / 2, mc, FI_UINT64, FI_SUM);
    wrong(-FI_EOPNOTSUPP, "FI_NOOP", from, out.data(), 64, mc, FI_UINT64, FI_NOOP);
    wrong(-FI_EOPNOTSUPP, "FI_ATOMIC_WRITE", from, out.data(), 64, mc, FI_UINT64, FI_ATOMIC_WRITE);
    wrong(-FI_EOPNOTSUPP, "FI_VOID", from, out.data(), 64, mc, FI_VOID, FI_SUM);
    wrong(-FI_EOPNOTSUPP, "bits of doubles", from, out.data(), 64, mc, FI_DOUBLE, FI_BOR);
    wrong(-FI_EOPNOTSUPP, "the least of complex numbers", from, out.data(), 8, mc, FI_DOUBLE_COMPLEX, FI_MIN);
    wrong(-FI_EOPNOTSUPP, "FI_NOOP of nothing", from, out.data(), 0, mc, FI_UINT64, FI_NOOP);
}

void bad_reductions(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    fid_ep* ep = me.ep();
    bad_reductions_of(me, group->address(), "fi_allreduce",
                      [&](auto... rest) { return call_allreduce(ep, rest...); });
    bad_reductions_of(me, group->address(), "fi_reduce to oneself",
                      [&](auto... rest) { return call_reduce(ep, me.rank(), rest...); });
    std::array<std::uint64_t, 64> in{}, out{};
    for (const fi_addr_t root : {fi_addr_t{me.size()}, FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL}) {
        for (const std::size_t count : {0, 64}) {
            refused(me, -FI_EINVAL, "fi_reduce to a root behind the last member", [&](void* context) {
                return call_reduce(ep, root, in.data(), out.data(), count, group->address(), FI_UINT64,
                                   FI_SUM, context);
            });
        }
    }
    still_works(me, *group);
    me.meet();
}

void bad_allgathers(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const fi_addr_t mc = group->address();
    constexpr std::size_t kPart = 16;
    std::vector<std::uint32_t> in(kPart), all(kPart * (me.size() + 1));
    const auto wrong = [&](const char* what, const void* input, void* result, std::size_t count,
                           fi_addr_t address, fi_datatype type) {
        refused(me, -FI_EINVAL, what, [&](void* context) {
            return fi_allgather(me.ep(), input, count, nullptr, result, nullptr, address, type, 0, context);
        });
    };
    const std::size_t own = kPart * me.rank();
    wrong("fi_allgather: no input", nullptr, all.data(), kPart, mc, FI_UINT32);
    wrong("fi_allgather: no result", in.data(), nullptr, kPart, mc, FI_UINT32);
    wrong("fi_allgather: no such datatype", in.data(), all.data(), kPart, mc, static_cast<fi_datatype>(200));
    wrong("fi_allgather: no such group", in.data(), all.data(), kPart, mc + 12345, FI_UINT32);
    wrong("fi_allgather: a count that overflows", in.data(), all.data(), SIZE_MAX / 2, mc, FI_UINT32);
    wrong("fi_allgather: parts that overflow", in.data(), all.data(), SIZE_MAX / 8, mc, FI_UINT32);
    wrong("fi_allgather: the input in another's place", all.data() + own + 1, all.data(), kPart, mc,
          FI_UINT32);
    still_works(me, *group);
    me.meet();
}

void bad_barriers(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    refused(me, -FI_EINVAL, "barrier of no such group",
            [&](void* context) { return fi_barrier(me.ep(), group->address() + 777, context); });
    refused(me, -FI_EINVAL, "barrier of FI_ADDR_NOTAVAIL",
            [&](void* context) { return fi_barrier(me.ep(), FI_ADDR_NOTAVAIL, context); });
    still_works(me, *group);
    me.meet();
}

void closed_group(Member& me) {
    const auto set = me.all_members();
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

// Closing a group with an operation in flight fails, and the operation completes all the same.
void busy_group(Member& me) {
    const auto set = me.all_members();
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
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    fi_context2 context{};
    fid_mc* mc = nullptr;
    CHECK_RETURNS(-FI_EINVAL, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, nullptr, 0, &mc, &context));
    CHECK_RETURNS(-FI_EINVAL,
                  fi_join_collective(me.ep(), group->address() + 4321, set.get(), 0, &mc, &context));
    const auto empty_set = me.empty_set();
    CHECK_RETURNS(-FI_EINVAL,
                  fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, empty_set.get(), 0, &mc, &context));
    // A set without the caller.
    const auto others = me.set_of({(me.rank() + 1) % me.size()});
    CHECK_RETURNS(-FI_EINVAL, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, others.get(), 0, &mc, &context));
    CHECK(mc == nullptr);
    still_works(me, *group);
    me.meet();
}

void bad_sets(Member& me) {
    const auto set = me.all_members();
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
    // A range that ends before its start is an empty set, which no member can join.
    attr.start_addr = me.address_of(1);
    attr.end_addr = me.address_of(0);
    CHECK_RETURNS(0, fi_av_set(me.av(), &attr, &raw, nullptr));
    const Fid<fid_av_set> empty(raw);
    fid_mc* mc = nullptr;
    CHECK_RETURNS(-FI_EINVAL, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, empty.get(), 0, &mc, nullptr));
    CHECK_RETURNS(-FI_EINVAL, fi_av_set_insert(set.get(), FI_ADDR_NOTAVAIL));
    CHECK(fi_av_set_insert(set.get(), me.address_of(0)) < 0);  // already in the set
    CHECK(fi_av_set_remove(set.get(), FI_ADDR_NOTAVAIL) < 0);
    const auto group = me.join(set.get());
    still_works(me, *group);
    me.meet();
}

// Makes invalid calls of gather, scatter, alltoall and reduce_scatter, and checks which members get the
// error.
void bad_blocks(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const fi_addr_t mc = group->address(), root = 1;
    const std::size_t n = me.size();
    std::vector<std::uint64_t> in(8 * n), out(8 * n);
    fid_ep* ep = me.ep();
    const auto rooted = [&](const char* what, auto function, const void* input, void* result,
                            std::size_t count, fi_addr_t its_root) {
        refused(me, -FI_EINVAL, what, [&](void* context) {
            return function(ep, input, count, nullptr, result, nullptr, mc, its_root, FI_UINT64, 0, context);
        });
    };
    rooted("fi_gather: no such root", &fi_gather, in.data(), out.data(), 8, n);
    rooted("fi_scatter: no such root", &fi_scatter, in.data(), out.data(), 8, n);
    rooted("fi_gather: no input", &fi_gather, nullptr, out.data(), 8, root);
    rooted("fi_scatter: no result", &fi_scatter, in.data(), nullptr, 8, root);
    rooted("fi_gather: parts that overflow", &fi_gather, in.data(), out.data(), SIZE_MAX / 8, root);
    rooted("fi_scatter: parts that overflow", &fi_scatter, in.data(), out.data(), SIZE_MAX / 8, root);
    if (me.rank() == root) {
        rooted("fi_gather: no result", &fi_gather, in.data(), nullptr, 8, root);
        rooted("fi_scatter: no input", &fi_scatter, nullptr, out.data(), 8, root);
        rooted("fi_gather: another's place", &fi_gather, out.data(), out.data(), 8, root);
        rooted("fi_scatter: another's place", &fi_scatter, in.data(), in.data() + 1, 8, root);
    }
    const auto wrong = [&](const char* what, const void* input, void* result, std::size_t count,
                           fi_datatype type) {
        refused(me, -FI_EINVAL, what, [&](void* context) {
            return fi_alltoall(ep, input, count, nullptr, result, nullptr, mc, type, 0, context);
        });
    };
    wrong("fi_alltoall: no input", nullptr, out.data(), 8, FI_UINT64);
    wrong("fi_alltoall: no result", in.data(), nullptr, 8, FI_UINT64);
    wrong("fi_alltoall: overlap", in.data(), in.data() + 1, 8, FI_UINT64);
    wrong("fi_alltoall: parts that overflow", in.data(), out.data(), SIZE_MAX / 8, FI_UINT64);
    wrong("fi_alltoall: no such datatype", in.data(), out.data(), 8, static_cast<fi_datatype>(200));
    const auto scattered = [&](const char* what, int code, const void* input, void* result, fi_op op) {
        refused(me, code, what, [&](void* context) {
            return fi_reduce_scatter(ep, input, 8 * n, nullptr, result, nullptr, mc, FI_UINT64, op, 0,
                                     context);
        });
    };
    scattered("fi_reduce_scatter: no input", -FI_EINVAL, nullptr, out.data(), FI_SUM);
    scattered("fi_reduce_scatter: no result", -FI_EINVAL, in.data(), nullptr, FI_SUM);
    scattered("fi_reduce_scatter: overlap", -FI_EINVAL, in.data(), in.data() + 1, FI_SUM);
    scattered("fi_reduce_scatter: no such operator", -FI_EINVAL, in.data(), out.data(),
              static_cast<fi_op>(99));
    scattered("fi_reduce_scatter: no reduction", -FI_EOPNOTSUPP, in.data(), out.data(), FI_NOOP);
    still_works(me, *group);
    me.meet();
}

// Every pair of datatype and operator is supported or not supported exactly as fi_atomic(3) defines.
template <typename Query>
void query_reductions(const Query& run_query) {
    fi_collective_attr attr{};
    for (const Datatype& type : datatypes()) {
        CHECK_RETURNS(0, run_query(FI_ALLGATHER, type.type, FI_NOOP, 0, attr));
        CHECK(attr.datatype_attr.size == type.bytes && attr.datatype_attr.count > 0);
        for (const fi_collective_op operation : {FI_ALLREDUCE, FI_REDUCE, FI_REDUCE_SCATTER}) {
            for (const Operator& op : operators()) {
                const int wanted = type.allows(op.op) ? 0 : -FI_EOPNOTSUPP;
                if (const int result = run_query(operation, type.type, op.op, 0, attr); result != wanted)
                    fail("fi_query_collective of reductions of {} with {} returned {} instead of {}",
                         type.name, op.name, describe(result), describe(wanted));
                if (wanted == 0) CHECK(attr.datatype_attr.size == type.bytes && attr.max_members >= 256);
            }
            for (const fi_op op : {FI_NOOP, FI_ATOMIC_READ, FI_ATOMIC_WRITE, FI_CSWAP})
                CHECK_RETURNS(-FI_EOPNOTSUPP, run_query(operation, type.type, op, 0, attr));
        }
    }
    for (const fi_collective_op operation : {FI_ALLREDUCE, FI_REDUCE})
        CHECK_RETURNS(-FI_EOPNOTSUPP, run_query(operation, FI_VOID, FI_SUM, 0, attr));
}

void query(Member& me) {
    const auto run_query = [&](fi_collective_op operation, fi_datatype type, fi_op op, std::uint64_t flags,
                               fi_collective_attr& attr) {
        attr = {};
        attr.op = op;
        attr.datatype = type;
        return fi_query_collective(me.domain(), operation, &attr, flags);
    };
    fi_collective_attr attr{};
    CHECK_RETURNS(0, run_query(FI_BROADCAST, FI_UINT8, FI_NOOP, 0, attr));
    CHECK(attr.max_members >= 256 || !me.options().is_mcastcoll());
    CHECK_RETURNS(0, run_query(FI_BARRIER, FI_VOID, FI_NOOP, 0, attr));
    CHECK(attr.max_members >= 256 || !me.options().is_mcastcoll());
    if (!me.options().is_mcastcoll()) return;
    for (const fi_datatype type : {FI_INT8, FI_DOUBLE, FI_LONG_DOUBLE_COMPLEX})
        CHECK_RETURNS(0, run_query(FI_BROADCAST, type, FI_NOOP, 0, attr));
    for (const fi_collective_op operation : {FI_ALLTOALL, FI_REDUCE_SCATTER, FI_SCATTER, FI_GATHER})
        CHECK_RETURNS(0, run_query(operation, FI_UINT64, FI_SUM, 0, attr));
    query_reductions(run_query);
    CHECK(run_query(static_cast<fi_collective_op>(15), FI_UINT8, FI_NOOP, 0, attr) < 0);
    CHECK(run_query(FI_BROADCAST, static_cast<fi_datatype>(200), FI_NOOP, 0, attr) < 0);
    CHECK(fi_query_collective(me.domain(), FI_BROADCAST, nullptr, 0) < 0);
}

// Collectives copy and combine in host memory, so an endpoint with FI_COLLECTIVE refuses device buffers, even
// if the inner provider accepts them.
void device_memory(Member& me) {
    using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;
    const auto run_query = [](std::uint64_t caps) {
        const Info hints(fi_allocinfo(), &fi_freeinfo);
        hints->caps = caps;
        hints->mode = ~std::uint64_t{0};
        hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
        hints->ep_attr->type = FI_EP_RDM;
        hints->fabric_attr->prov_name = strdup("mcastcoll");
        hints->fabric_attr->name = strdup("mcastcoll:shm:");
        fi_info* found = nullptr;
        const int result = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found);
        return std::pair(result, Info(result == 0 ? found : nullptr, &fi_freeinfo));
    };
    const auto [without, info] = run_query(FI_MSG | FI_HMEM);
    CHECK_RETURNS(0, without);
    CHECK((info->caps & FI_HMEM) != 0 && (info->caps & FI_COLLECTIVE) == 0);
    CHECK_RETURNS(-FI_ENODATA, run_query(FI_MSG | FI_HMEM | FI_COLLECTIVE).first);
    CHECK_RETURNS(-FI_ENODATA, run_query(FI_HMEM | FI_COLLECTIVE).first);
    for (const std::uint64_t caps : {std::uint64_t{FI_MSG | FI_COLLECTIVE}, std::uint64_t{0}}) {
        const auto [with, both] = run_query(caps);
        CHECK_RETURNS(0, with);
        CHECK((both->caps & FI_COLLECTIVE) != 0 && (both->caps & FI_HMEM) == 0);
    }
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_args", "Bad arguments, and queries");
    program.add({.name = "bad broadcasts", .body = bad_broadcasts, .only_mcastcoll = true});
    program.add({.name = "bad barriers", .body = bad_barriers, .only_mcastcoll = true});
    program.add({.name = "bad reductions", .body = bad_reductions, .only_mcastcoll = true});
    program.add({.name = "bad allgathers", .body = bad_allgathers, .only_mcastcoll = true});
    program.add({.name = "closed groups", .body = closed_group, .only_mcastcoll = true});
    program.add({.name = "closing a busy group", .body = busy_group, .only_mcastcoll = true});
    program.add({.name = "bad joins", .body = bad_joins, .only_mcastcoll = true});
    program.add({.name = "bad sets", .body = bad_sets, .only_mcastcoll = true});
    program.add({.name = "bad gathers and scatters", .body = bad_blocks, .only_mcastcoll = true});
    program.add({.name = "memory of devices", .body = device_memory, .only_mcastcoll = true});
    program.add({"queries", query});
    return program.run(argc, argv);
}
