// Collectives in the message form: how pieces are combined, and which lengths fit a group.
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include <array>
#include <numeric>

#include "ofi/request.h"

using namespace mcastcoll;
using namespace mcastcoll::ofi;

namespace {

struct Form {
    std::vector<fi_ioc> input, result;
    fi_msg_collective message{};

    explicit Form(fi_collective_op collective) {
        message.coll = collective;
        message.datatype = FI_INT32;
        message.op = FI_SUM;
        message.coll_addr = 7;
        message.root_addr = 1;
    }
    Result<Request> make() {
        message.msg_iov = input.data();
        message.iov_count = input.size();
        return make_request(message, {result.data(), result.size()}, 0);
    }
    // Returns 0 or the error for one member of a group of four with root 1.
    int code(std::size_t self) {
        auto made = make();
        if (!made) return made.error().code;
        Request request = std::move(made).value();
        auto fits = fit_to_group(request, rank_of(self), 4);
        return fits ? 0 : fits.error().code;
    }
};

std::array<int, 64> g_in{}, g_out{};

fi_ioc piece(std::array<int, 64>& of, std::size_t from, std::size_t count) {
    return {of.data() + from, count};
}

}  // namespace

TestSuite(message_form, .timeout = 300);

Test(message_form, pieces_that_follow_each_other_are_one) {
    Form form(FI_ALLREDUCE);
    form.input = {piece(g_in, 0, 3), piece(g_in, 40, 0), piece(g_in, 3, 5)};
    form.result = {piece(g_out, 8, 8)};
    const Request request = form.make().value();
    cr_assert(static_cast<const void*>(request.input) == g_in.data());
    cr_assert(static_cast<void*>(request.buffer) == g_out.data() + 8);
    cr_assert_eq(request.bytes, 32);
    cr_assert(request.copies == nullptr);
}

Test(message_form, others_are_copied_and_delivered) {
    std::iota(g_in.begin(), g_in.end(), 100);
    g_out.fill(-1);
    Form form(FI_ALLREDUCE);
    form.input = {piece(g_in, 10, 2), piece(g_in, 0, 1)};
    form.result = {piece(g_out, 20, 1), piece(g_out, 5, 2)};
    const Request request = form.make().value();
    cr_assert_eq(request.bytes, 12);
    const auto* input = reinterpret_cast<const int*>(request.input);
    cr_assert(input[0] == 110 && input[1] == 111 && input[2] == 100);
    auto* result = reinterpret_cast<int*>(request.buffer);
    std::iota(result, result + 3, 1);
    cr_assert_eq(g_out[20], -1, "not before it is over");
    request.copies->deliver();
    cr_assert(g_out[20] == 1 && g_out[5] == 2 && g_out[6] == 3);
    cr_assert_eq(std::count(g_out.begin(), g_out.end(), -1), 61);
}

Test(message_form, a_broadcast_has_one_buffer) {
    Form form(FI_BROADCAST);
    form.input = {piece(g_in, 1, 4)};
    const Request request = form.make().value();
    cr_assert(static_cast<void*>(request.buffer) == g_in.data() + 1);
    cr_assert_eq(request.bytes, 16);
    cr_assert_eq(form.code(3), 0);
}

Test(message_form, lengths_must_fit_the_group) {
    const auto code = [](fi_collective_op collective, std::size_t input, std::size_t result,
                         std::size_t self) {
        Form form(collective);
        if (input > 0) form.input = {piece(g_in, 0, input)};
        if (result > 0) form.result = {piece(g_out, 0, result)};
        return form.code(self);
    };
    for (const std::size_t self : {0, 1}) {
        const bool root = self == 1;
        cr_assert_eq(code(FI_ALLREDUCE, 6, 6, self), 0);
        cr_assert_eq(code(FI_ALLREDUCE, 6, 5, self), FI_EINVAL);
        cr_assert_eq(code(FI_ALLGATHER, 6, 24, self), 0);
        cr_assert_eq(code(FI_ALLGATHER, 6, 23, self), FI_EINVAL);
        cr_assert_eq(code(FI_REDUCE, 6, 0, self), root ? FI_EINVAL : 0);
        cr_assert_eq(code(FI_GATHER, 6, 24, self), 0);
        cr_assert_eq(code(FI_GATHER, 6, 6, self), root ? FI_EINVAL : 0);
        cr_assert_eq(code(FI_SCATTER, 24, 6, self), 0);
        cr_assert_eq(code(FI_SCATTER, 0, 6, self), root ? FI_EINVAL : 0);
        cr_assert_eq(code(FI_ALLTOALL, 24, 24, self), 0);
        cr_assert_eq(code(FI_ALLTOALL, 22, 22, self), FI_EINVAL);
        cr_assert_eq(code(FI_ALLTOALL, 24, 20, self), FI_EINVAL);
        // Slices of 9: 3, 2, 2 and 2.
        cr_assert_eq(code(FI_REDUCE_SCATTER, 9, self == 0 ? 3 : 2, self), 0);
        cr_assert_eq(code(FI_REDUCE_SCATTER, 9, self == 0 ? 2 : 3, self), FI_EINVAL);
    }
    cr_assert_eq(code(FI_BARRIER, 0, 0, 0), 0);
}

Test(message_form, bad_pieces) {
    Form form(FI_ALLREDUCE);
    form.input = {{nullptr, 3}};
    form.result = {piece(g_out, 0, 3)};
    cr_assert_eq(form.make().error().code, FI_EINVAL);
    form.input = {piece(g_in, 0, 3), piece(g_in, 0, SIZE_MAX / 4)};
    cr_assert_eq(form.make().error().code, FI_EINVAL);
    form.message.coll = static_cast<fi_collective_op>(FI_GATHER + 1);
    form.input.clear();
    cr_assert_eq(form.make().error().code, FI_EINVAL);
    form.message.coll = FI_ALLREDUCE;
    form.message.iov_count = 2;
    form.message.msg_iov = nullptr;
    cr_assert_eq(make_request(form.message, {}, 0).error().code, FI_EINVAL);
}
