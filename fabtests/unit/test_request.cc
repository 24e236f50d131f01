// Requests of applications: the checks between libfabric's calls and a CollectiveEndpoint, all pure
// functions.
#include <criterion/criterion.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>

#include "ofi/request.h"

using namespace mcastcoll;
using namespace mcastcoll::ofi;

namespace {

std::array<double, 64> g_input{}, g_result{};  // only their addresses are used

std::byte* as_bytes(double* at) {
    return reinterpret_cast<std::byte*>(at);
}

Call good_call(fi_collective_op collective) {
    return {.collective = collective,
            .input = g_input.data(),
            .buffer = g_result.data(),
            .count = 8,
            .datatype = FI_DOUBLE,
            .op = FI_SUM,
            .group = 7,
            .root = 2,
            .flags = 0,
            .context = nullptr};
}

int code(const Call& call) {
    const auto request = make_request(call);
    return request ? 0 : request.error().code;
}

int supports(fi_collective_op collective, fi_datatype datatype, fi_op op) {
    fi_collective_attr attr{};
    attr.datatype = datatype;
    attr.op = op;
    return query_collective(nullptr, collective, &attr, 0);
}

template <typename Change>
int code_with(fi_collective_op collective, Change change) {
    Call call = good_call(collective);
    change(call);
    return code(call);
}

Request good_request(fi_collective_op collective) {
    return make_request(good_call(collective)).value();
}

int group_code(Request request, std::size_t self, std::size_t members) {
    const auto checked = fit_to_group(request, rank_of(self), members);
    return checked ? 0 : checked.error().code;
}

constexpr std::array kAll = {FI_BARRIER, FI_BROADCAST, FI_REDUCE,   FI_ALLREDUCE,     FI_ALLGATHER,
                             FI_GATHER,  FI_SCATTER,   FI_ALLTOALL, FI_REDUCE_SCATTER};
constexpr std::array kReductions = {FI_REDUCE, FI_ALLREDUCE, FI_REDUCE_SCATTER};

}  // namespace

TestSuite(request, .timeout = 300);

Test(request, says_what_the_call_said) {
    const std::array kinds = {Kind::barrier,   Kind::broadcast, Kind::reduce,
                              Kind::allreduce, Kind::allgather, Kind::gather,
                              Kind::scatter,   Kind::alltoall,  Kind::reduce_scatter};
    for (std::size_t i = 0; i < kAll.size(); ++i) {
        const Request request = good_request(kAll[i]);
        cr_assert_eq(request.kind, kinds[i]);
        cr_assert_eq(request.group, 7);
        cr_assert_eq(request.bytes, kAll[i] == FI_BARRIER ? 0 : 64);
        const bool reduces = std::count(kReductions.begin(), kReductions.end(), kAll[i]) > 0;
        cr_assert_eq(request.combiner.combine != nullptr, reduces);
        if (kAll[i] != FI_BARRIER) cr_assert_eq(request.combiner.element_bytes, 8);
    }
}

Test(request, there_are_nine_collectives) {
    for (const fi_collective_op one : kAll) cr_assert_eq(code(good_call(one)), 0);
    cr_assert_eq(code(good_call(static_cast<fi_collective_op>(15))), FI_EINVAL);
}

Test(request, bad_enumerators_flags_and_sizes) {
    for (const fi_collective_op one : kAll) {
        cr_assert_eq(code_with(one, [](Call& c) { c.flags = FI_COMPLETION | FI_MORE; }), 0);
        cr_assert_eq(code_with(one, [](Call& c) { c.flags = FI_PEEK; }), FI_EINVAL);
        if (one == FI_BARRIER) continue;
        cr_assert_eq(code_with(one, [](Call& c) { c.datatype = static_cast<fi_datatype>(200); }), FI_EINVAL);
        cr_assert_eq(code_with(one, [](Call& c) { c.count = SIZE_MAX / 8 + 1; }), FI_EINVAL);
    }
    for (const fi_collective_op one : kReductions) {
        cr_assert_eq(code_with(one, [](Call& c) { c.op = static_cast<fi_op>(99); }), FI_EINVAL);
        cr_assert_eq(code_with(one, [](Call& c) { c.op = FI_BXOR; }), FI_EOPNOTSUPP);
        cr_assert_eq(code_with(one, [](Call& c) { c.op = FI_ATOMIC_WRITE; }), FI_EOPNOTSUPP);
        cr_assert_eq(code_with(one, [](Call& c) { c.datatype = FI_VOID; }), FI_EOPNOTSUPP);
    }
    for (const fi_collective_op one : {FI_BROADCAST, FI_ALLGATHER, FI_GATHER, FI_SCATTER, FI_ALLTOALL})
        cr_assert_eq(code_with(one, [](Call& c) { c.datatype = FI_VOID; }), 0);
}

Test(request, null_buffers) {
    // Rank 2 is the root.
    const auto codes = [](fi_collective_op collective, bool no_input) {
        Call call = good_call(collective);
        if (no_input)
            call.input = nullptr;
        else
            call.buffer = nullptr;
        if (const int early = code(call); early != 0) return std::array{early, early};
        const Request request = make_request(call).value();
        return std::array{group_code(request, 1, 4), group_code(request, 2, 4)};
    };
    constexpr std::array all_ranks = {FI_EINVAL, FI_EINVAL}, root_only = {0, FI_EINVAL}, none = {0, 0};
    for (const fi_collective_op one : kAll) {
        const bool no_input = one == FI_BARRIER || one == FI_BROADCAST;
        cr_assert(codes(one, true) == (no_input ? none : one == FI_SCATTER ? root_only : all_ranks));
        const bool root_gets = one == FI_REDUCE || one == FI_GATHER;
        cr_assert(codes(one, false) == (one == FI_BARRIER ? none : root_gets ? root_only : all_ranks));
    }
    const auto nothing = [](Call& c) {
        c.input = c.buffer = nullptr;
        c.count = 0;
    };
    for (const fi_collective_op one : kAll) cr_assert_eq(code_with(one, nothing), 0);
    // A member with an empty slice needs no buffer for it.
    Request request = good_request(FI_REDUCE_SCATTER);
    request.buffer = nullptr;
    cr_assert_eq(group_code(request, 8, 9), 0);
    cr_assert_eq(group_code(request, 7, 9), FI_EINVAL);
}

Test(request, roots_are_ranks) {
    for (const fi_collective_op one : {FI_BROADCAST, FI_REDUCE, FI_GATHER, FI_SCATTER}) {
        for (const fi_addr_t root : {fi_addr_t{4}, fi_addr_t{1} << 32, fi_addr_t{FI_ADDR_NOTAVAIL}}) {
            Call call = good_call(one);
            call.root = root;
            cr_assert_eq(group_code(make_request(call).value(), 0, 4), FI_EINVAL);
        }
        Request request = good_request(one);
        request.root = rank_of(3);
        cr_assert_eq(group_code(request, 0, 4), 0);
    }
    Request request = good_request(FI_ALLREDUCE);
    request.root = rank_of(99);
    cr_assert_eq(group_code(request, 0, 4), 0, "not looked at");
}

Test(request, input_and_result_are_apart_or_the_same) {
    for (const fi_collective_op one : {FI_REDUCE, FI_ALLREDUCE}) {
        Request request = good_request(one);
        request.input = request.buffer;
        cr_assert_eq(group_code(request, 2, 4), 0);
        request.input = as_bytes(g_result.data() + 8);
        cr_assert_eq(group_code(request, 2, 4), 0);
        for (const double* input : {g_result.data() + 1, g_result.data() + 7}) {
            request.input = as_bytes(const_cast<double*>(input));
            cr_assert_eq(group_code(request, 2, 4), FI_EINVAL);
            request.buffer = as_bytes(const_cast<double*>(input));
            request.input = as_bytes(g_result.data());
            cr_assert_eq(group_code(request, 2, 4), FI_EINVAL);
            request.buffer = as_bytes(g_result.data());
        }
    }
    Request request = good_request(FI_REDUCE);
    request.input = as_bytes(g_result.data() + 1);
    cr_assert_eq(group_code(request, 1, 4), 0, "only the root's result is looked at");
}

Test(request, allgather_in_place) {
    Request request = good_request(FI_ALLGATHER);
    for (std::size_t self = 0; self < 4; ++self)
        for (std::size_t part = 0; part < 5; ++part) {
            request.input = as_bytes(g_result.data() + 8 * part);
            cr_assert_eq(group_code(request, self, 4), part == self || part == 4 ? 0 : FI_EINVAL);
        }
    request.bytes = SIZE_MAX / 3;
    cr_assert_eq(group_code(request, 0, 4), FI_EINVAL, "the sum of all parts overflows");
}

Test(request, gather_and_scatter_in_place) {
    for (std::size_t part = 0; part < 5; ++part) {
        Request gather = good_request(FI_GATHER), scatter = good_request(FI_SCATTER);
        gather.input = as_bytes(g_result.data() + 8 * part);
        scatter.buffer = as_bytes(g_input.data() + 8 * part);
        const int wanted = part == 2 || part == 4 ? 0 : FI_EINVAL;
        cr_assert_eq(group_code(gather, 2, 4), wanted);
        cr_assert_eq(group_code(scatter, 2, 4), wanted);
        cr_assert_eq(group_code(gather, 1, 4), 0, "the others have no result");
        cr_assert_eq(group_code(scatter, 1, 4), 0, "the others have no input");
    }
    for (const fi_collective_op one : {FI_GATHER, FI_SCATTER, FI_ALLTOALL}) {
        Request request = good_request(one);
        request.bytes = SIZE_MAX / 3;
        cr_assert_eq(group_code(request, 1, 4), FI_EINVAL, "the sum of all parts overflows on all alike");
    }
}

Test(request, alltoall_and_reduce_scatter_in_place) {
    for (const fi_collective_op one : {FI_ALLTOALL, FI_REDUCE_SCATTER}) {
        Request request = good_request(one);
        request.buffer = as_bytes(g_input.data());
        cr_assert_eq(group_code(request, 1, 4), 0);
        request.buffer = as_bytes(g_input.data() + 2);  // position of the slice
        cr_assert_eq(group_code(request, 1, 4), FI_EINVAL);
        request.buffer = as_bytes(g_input.data() + 8);
        cr_assert_eq(group_code(request, 1, 4), one == FI_ALLTOALL ? FI_EINVAL : 0);
        request.buffer = as_bytes(g_input.data() + 32);
        cr_assert_eq(group_code(request, 1, 4), 0);
    }
}

Test(request, from_the_extension) {
    fi_mcastcoll_request given{};
    given.size = sizeof given;
    given.collective = FI_ALLREDUCE;
    given.input = g_input.data();
    given.buffer = g_result.data();
    given.count = 3;
    given.datatype = FI_INT32;
    given.op = FI_MAX;
    const auto request = make_request(given, 11);
    cr_assert(request.ok());
    cr_assert_eq(request.value().bytes, 12);
    cr_assert_eq(request.value().group, 11);
    given.size = sizeof given - 1;
    cr_assert_eq(make_request(given, 11).error().code, FI_EINVAL);
    given.size = sizeof given + 64;  // as of a program built with a later header
    cr_assert(make_request(given, 11).ok());
}

Test(request, results_of_a_query) {
    cr_assert_eq(supports(FI_BARRIER, FI_VOID, FI_NOOP), 0);
    cr_assert_eq(supports(FI_BROADCAST, FI_LONG_DOUBLE_COMPLEX, FI_NOOP), 0);
    cr_assert_eq(supports(FI_BROADCAST, static_cast<fi_datatype>(200), FI_NOOP), -FI_EOPNOTSUPP);
    cr_assert_eq(supports(static_cast<fi_collective_op>(15), FI_INT8, FI_NOOP), -FI_ENOSYS);
    for (const fi_collective_op one : {FI_BROADCAST, FI_ALLGATHER, FI_GATHER, FI_SCATTER, FI_ALLTOALL})
        for (const fi_op op : {FI_NOOP, FI_SUM, FI_CSWAP}) cr_assert_eq(supports(one, FI_INT8, op), 0);
    for (const fi_collective_op one : kReductions) {
        cr_assert_eq(supports(one, FI_DOUBLE, FI_SUM), 0);
        cr_assert_eq(supports(one, FI_DOUBLE, FI_BXOR), -FI_EOPNOTSUPP);
        cr_assert_eq(supports(one, FI_VOID, FI_SUM), -FI_EOPNOTSUPP);
    }
}
