#include "ofi/request.h"

#include <fmt/format.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>

#include "reduce/kernels.h"
#include "reduce/slices.h"

namespace mcastcoll::ofi {
namespace {

// Flags that change nothing here: completion is when the buffer may be used again and holds the result.
constexpr std::uint64_t kKnownFlags = FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
                                      FI_DELIVERY_COMPLETE | FI_MORE | FI_COLLECTIVE | FI_COMMIT_COMPLETE;

enum class Needs : std::uint8_t { nothing, datatype, operation };

struct Served {
    fi_collective_op name;
    Kind kind;
    Needs needs;
    Shape shape;
};

// The station may still refuse one for a group, with -FI_ENOSYS on all members alike. In the order of Kind.
constexpr std::array kCollectives = {
    Served{FI_BROADCAST, Kind::broadcast, Needs::datatype, {.result = Extent::part, .rooted = true}},
    Served{FI_BARRIER, Kind::barrier, Needs::nothing, {}},
    Served{FI_REDUCE,
           Kind::reduce,
           Needs::operation,
           {.input = Extent::part, .result = Extent::part, .rooted = true, .only_root_gets = true}},
    Served{FI_ALLREDUCE, Kind::allreduce, Needs::operation, {.input = Extent::part, .result = Extent::part}},
    Served{
        FI_ALLGATHER, Kind::allgather, Needs::datatype, {.input = Extent::part, .result = Extent::all_parts}},
    Served{FI_GATHER,
           Kind::gather,
           Needs::datatype,
           {.input = Extent::part, .result = Extent::all_parts, .rooted = true, .only_root_gets = true}},
    Served{FI_SCATTER,
           Kind::scatter,
           Needs::datatype,
           {.input = Extent::all_parts, .result = Extent::part, .rooted = true, .only_root_gives = true}},
    Served{FI_ALLTOALL,
           Kind::alltoall,
           Needs::datatype,
           {.input = Extent::all_parts, .result = Extent::all_parts}},
    Served{FI_REDUCE_SCATTER,
           Kind::reduce_scatter,
           Needs::operation,
           {.input = Extent::part, .result = Extent::slice}},
};
static_assert([] {
    for (std::size_t i = 0; i < kCollectives.size(); ++i)
        if (kCollectives[i].kind != static_cast<Kind>(i)) return false;
    return true;
}());

const Served* find_collective(fi_collective_op name) {
    const auto* found = std::find_if(kCollectives.begin(), kCollectives.end(),
                                     [&](const Served& one) { return one.name == name; });
    return found == kCollectives.end() ? nullptr : found;
}

bool is_operator(fi_op op) {
    return op < FI_ATOMIC_OP_LAST || op == FI_NOOP;
}

// Datatype, operator and count become bytes and a combiner.
Result<void> measure(const Call& call, Needs needs, Request& request) {
    const auto width = datatype_bytes(call.datatype);
    if (!width) return Error{FI_EINVAL, fmt::format("{} is no datatype", static_cast<int>(call.datatype))};
    if (call.count > SIZE_MAX / *width)
        return Error{FI_EINVAL, fmt::format("{} elements of {} bytes are too many", call.count, *width)};
    request.bytes = call.count * *width;
    request.combiner.element_bytes = static_cast<std::uint32_t>(*width);
    if (needs != Needs::operation) return {};
    if (!is_operator(call.op))
        return Error{FI_EINVAL, fmt::format("{} is no operator", static_cast<int>(call.op))};
    const auto kernel = combiner(call.datatype, call.op);
    if (!kernel)
        return Error{FI_EOPNOTSUPP, fmt::format("no reduction of datatype {} with operator {}",
                                                static_cast<int>(call.datatype), static_cast<int>(call.op))};
    request.combiner = *kernel;
    return {};
}

// What every member needs; the rest takes the group to know.
Result<void> check_buffers(const Request& request) {
    const Shape& shape = shape_of(request.kind);
    if (request.bytes == 0) return {};
    if (shape.input != Extent::nothing && !shape.only_root_gives && request.input == nullptr)
        return Error{FI_EINVAL, "the input is NULL"};
    const bool result = shape.result == Extent::part || shape.result == Extent::all_parts;
    if (result && !shape.only_root_gets && request.buffer == nullptr)
        return Error{FI_EINVAL, "the buffer for the result is NULL"};
    return {};
}

// Where input and result may be the same memory.
const std::byte* place_in_place(const Shape& shape, const Request& request, std::size_t self) {
    const std::byte* const result = request.buffer;
    if (shape.input == Extent::part && shape.result == Extent::all_parts)
        return result + request.bytes * self;
    if (shape.input == Extent::all_parts && shape.result == Extent::part)
        return result - request.bytes * self;
    return result;
}

}  // namespace

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
    return first < second ? second - first < a_bytes : first - second < b_bytes;
}

Result<Request> make_request(const Call& call) {
    if (call.collective > FI_GATHER)
        return Error{FI_EINVAL, fmt::format("{} is no collective", static_cast<int>(call.collective))};
    const Served* served = find_collective(call.collective);
    if (served == nullptr) return Error{FI_ENOSYS, "there is no such collective"};
    if ((call.flags & ~kKnownFlags) != 0)
        return Error{FI_EINVAL, fmt::format("unknown flags {:#x}", call.flags & ~kKnownFlags)};
    Request request;
    request.kind = served->kind;
    request.input = static_cast<const std::byte*>(call.input);
    request.buffer = static_cast<std::byte*>(call.buffer);
    request.group = call.group;
    request.root = call.root < index_of(kNoRank) ? rank_of(call.root) : kNoRank;
    request.flags = call.flags;
    request.context = call.context;
    if (served->needs != Needs::nothing)
        if (auto measured = measure(call, served->needs, request); !measured) return measured.error();
    if (auto checked = check_buffers(request); !checked) return checked.error();
    return request;
}

Result<Request> make_request(const fi_mcastcoll_request& request, fi_addr_t group) {
    if (request.size < sizeof request)
        return Error{FI_EINVAL, fmt::format("the request's size is {}, must be {} or more", request.size,
                                            sizeof request)};
    return make_request({.collective = request.collective,
                         .input = request.input,
                         .buffer = request.buffer,
                         .count = request.count,
                         .datatype = request.datatype,
                         .op = request.op,
                         .group = group,
                         .root = request.root,
                         .flags = 0,
                         .context = nullptr});
}

std::size_t extent_bytes(Extent extent, const Request& request, std::size_t self, std::size_t members) {
    switch (extent) {
        case Extent::nothing:
            return 0;
        case Extent::part:
            return request.bytes;
        case Extent::all_parts:
            return request.bytes * members;
        case Extent::slice:
            break;
    }
    const std::size_t width = request.combiner.element_bytes;
    return slice_of(self, members, request.bytes / width, width).bytes;
}

const Shape& shape_of(Kind kind) {
    return kCollectives[static_cast<std::size_t>(kind)].shape;
}

Result<void> fit_to_group(Request& request, Rank self, std::size_t members) {
    if (!request.input_bytes && !request.result_bytes) return {};
    const Shape& shape = shape_of(request.kind);
    if (request.kind == Kind::alltoall) {
        const std::size_t block = request.combiner.element_bytes * members;
        if (request.bytes % block != 0)
            return Error{FI_EINVAL, fmt::format("{} elements cannot be dealt to {} members",
                                                request.bytes / request.combiner.element_bytes, members)};
        request.bytes /= members;
    }
    const auto all_parts_fit = [&] { return request.bytes <= SIZE_MAX / members; };
    const auto check = [&](const char* what, Extent extent, bool used,
                           const std::optional<std::size_t>& said) -> Result<void> {
        if (!used || !said || (extent == Extent::all_parts && !all_parts_fit())) return {};
        const std::size_t needed = extent_bytes(extent, request, index_of(self), members);
        if (*said == needed) return {};
        return Error{FI_EINVAL, fmt::format("{} has {} bytes, must have {}", what, *said, needed)};
    };
    const bool is_root = request.root == self;
    if (auto fine = check("the input", shape.input, is_root || !shape.only_root_gives, request.input_bytes);
        !fine)
        return fine;
    return check("the result", shape.result, is_root || !shape.only_root_gets, request.result_bytes);
}

Result<void> check_in_group(const Request& request, Rank self, std::size_t members) {
    const Shape& shape = shape_of(request.kind);
    if (shape.rooted && index_of(request.root) >= members)
        return Error{FI_EINVAL,
                     fmt::format("the root is {}, must be a rank below {}", index_of(request.root), members)};
    if (request.bytes > SIZE_MAX / members &&
        (shape.input == Extent::all_parts || shape.result == Extent::all_parts))
        return Error{FI_EINVAL,
                     fmt::format("{} bytes for each of {} members are too many", request.bytes, members)};
    const std::size_t rank = index_of(self);
    const bool is_root = request.root == self;
    const auto used = [&](Extent extent, bool only_root) {
        return only_root && !is_root ? 0 : extent_bytes(extent, request, rank, members);
    };
    const std::size_t input = used(shape.input, shape.only_root_gives);
    const std::size_t result = used(shape.result, shape.only_root_gets);
    if (input > 0 && request.input == nullptr) return Error{FI_EINVAL, "the input is NULL"};
    if (result > 0 && request.buffer == nullptr) return Error{FI_EINVAL, "the buffer for the result is NULL"};
    if (input == 0 || result == 0 || request.input == place_in_place(shape, request, rank)) return {};
    if (overlap(request.input, input, request.buffer, result))
        return Error{FI_EINVAL, "input and result overlap, but not as they may"};
    return {};
}

int supports(fi_collective_op name, fi_datatype datatype, fi_op op) {
    const Served* served = find_collective(name);
    if (served == nullptr) return -FI_ENOSYS;
    switch (served->needs) {
        case Needs::nothing:
            return 0;
        case Needs::datatype:
            return datatype_bytes(datatype) ? 0 : -FI_EOPNOTSUPP;
        case Needs::operation:
            return combiner(datatype, op) ? 0 : -FI_EOPNOTSUPP;
    }
    return -FI_ENOSYS;
}

std::optional<std::size_t> datatype_bytes(fi_datatype datatype) {
    if (datatype == FI_VOID) return 1;
    return element_bytes(datatype);
}

}  // namespace mcastcoll::ofi
