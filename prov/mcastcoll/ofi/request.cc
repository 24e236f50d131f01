#include "ofi/request.h"

#include <fmt/format.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "reduce/kernels.h"
#include "reduce/slices.h"
#include "wire/join.h"

namespace mcastcoll::ofi {
namespace {

// Accepted flags without effect: an operation always completes when the buffer may be reused and contains the
// result.
constexpr std::uint64_t kKnownFlags = FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
                                      FI_DELIVERY_COMPLETE | FI_MORE | FI_COLLECTIVE | FI_COMMIT_COMPLETE;

// The maximum length reported by fi_query_collective(); also stated in README.md.
constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

enum class Needs : std::uint8_t { nothing, datatype, operation };

// The used amount of a buffer, in parts of Request::bytes.
enum class Extent : std::uint8_t { nothing, part, all_parts, slice };

// The role of the root: the root sends the buffer (broadcast), only the root has an input (gives), or only
// the root has a result (gets). The root's buffers are ignored on other members.
enum class Root : std::uint8_t { none, sends, gives, gets };

struct Served {
    fi_collective_op name;
    Kind kind;
    Needs needs;
    Extent input, result;
    Root root;
};

// In the order of Kind. A group may still refuse a collective, with -FI_ENOSYS on all members.
constexpr std::array kCollectives = [] {
    using enum Extent;
    return std::array{
        Served{FI_BROADCAST, Kind::broadcast, Needs::datatype, nothing, part, Root::sends},
        Served{FI_BARRIER, Kind::barrier, Needs::nothing, nothing, nothing, Root::none},
        Served{FI_REDUCE, Kind::reduce, Needs::operation, part, part, Root::gets},
        Served{FI_ALLREDUCE, Kind::allreduce, Needs::operation, part, part, Root::none},
        Served{FI_ALLGATHER, Kind::allgather, Needs::datatype, part, all_parts, Root::none},
        Served{FI_GATHER, Kind::gather, Needs::datatype, part, all_parts, Root::gets},
        Served{FI_SCATTER, Kind::scatter, Needs::datatype, all_parts, part, Root::gives},
        Served{FI_ALLTOALL, Kind::alltoall, Needs::datatype, all_parts, all_parts, Root::none},
        Served{FI_REDUCE_SCATTER, Kind::reduce_scatter, Needs::operation, part, slice, Root::none},
    };
}();
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

// Bytes of one element in a gather or a broadcast; FI_VOID counts bytes. Empty for an invalid datatype.
std::optional<std::size_t> datatype_bytes(fi_datatype datatype) {
    if (datatype == FI_VOID) return 1;
    return reduce::element_bytes(datatype);
}

// Converts datatype, operator and count to bytes and a combiner.
Result<void> measure(const Call& call, Needs needs, Request& request) {
    const auto width = datatype_bytes(call.datatype);
    if (!width) return Error{FI_EINVAL, fmt::format("{} is not a datatype", static_cast<int>(call.datatype))};
    if (call.count > SIZE_MAX / *width)
        return Error{FI_EINVAL, fmt::format("{} elements of {} bytes are too many", call.count, *width)};
    request.bytes = call.count * *width;
    request.combiner.element_bytes = static_cast<std::uint32_t>(*width);
    if (needs != Needs::operation) return {};
    if (static_cast<int>(call.op) >= int{FI_ATOMIC_OP_LAST} && call.op != FI_NOOP)
        return Error{FI_EINVAL, fmt::format("{} is not an operator", static_cast<int>(call.op))};
    const auto kernel = reduce::combiner(call.datatype, call.op);
    if (!kernel)
        return Error{FI_EOPNOTSUPP, fmt::format("no reduction of datatype {} with operator {}",
                                                static_cast<int>(call.datatype), static_cast<int>(call.op))};
    request.combiner = *kernel;
    return {};
}

// The input address of an operation in place.
const std::byte* place_in_place(const Served& served, const Request& request, std::size_t self) {
    const std::byte* const result = request.buffer;
    if (served.input == Extent::part && served.result == Extent::all_parts)
        return result + request.bytes * self;
    if (served.input == Extent::all_parts && served.result == Extent::part)
        return result - request.bytes * self;
    return result;
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
    return reduce::slice_of(self, members, request.bytes / width, width).bytes;
}

// A whole buffer; the count is in elements.
struct Whole {
    std::byte* start = nullptr;  // null: empty buffer
    std::size_t count = 0;
    bool together = true;  // each piece begins where the previous one ends
};

Result<Whole> survey(const char* what, Pieces pieces, std::size_t width) {
    if (pieces.count > 0 && pieces.list == nullptr)
        return Error{FI_EINVAL, fmt::format("the list of {} pieces of {} is NULL", pieces.count, what)};
    Whole whole;
    for (std::size_t i = 0; i < pieces.count; ++i) {
        const fi_ioc& piece = pieces.list[i];
        if (piece.count == 0) continue;  // its address does not matter
        if (piece.addr == nullptr) return Error{FI_EINVAL, fmt::format("piece {} of {} is NULL", i, what)};
        if (piece.count > SIZE_MAX / width - whole.count)
            return Error{FI_EINVAL, fmt::format("the pieces of {} are too long", what)};
        auto* start = static_cast<std::byte*>(piece.addr);
        if (whole.start == nullptr) whole.start = start;
        whole.together = whole.together && start == whole.start + whole.count * width;
        whole.count += piece.count;
    }
    return whole;
}

// Copies the pieces, one after the other, into a new buffer.
std::unique_ptr<std::byte[]> collect(Pieces pieces, std::size_t bytes, std::size_t width) {
    std::unique_ptr<std::byte[]> copy(new std::byte[bytes]);
    std::byte* at = copy.get();
    for (std::size_t i = 0; i < pieces.count; ++i) {
        const std::size_t length = pieces.list[i].count * width;
        if (length > 0) std::memcpy(at, pieces.list[i].addr, length);
        at += length;
    }
    return copy;
}

std::vector<Copies::Target> targets_of(Pieces pieces, std::size_t width) {
    std::vector<Copies::Target> targets;
    for (std::size_t i = 0; i < pieces.count; ++i)
        if (pieces.list[i].count > 0)
            targets.push_back({static_cast<std::byte*>(pieces.list[i].addr), pieces.list[i].count * width});
    return targets;
}

Copies& copies_of(Request& request) {
    if (!request.copies) request.copies = std::make_shared<Copies>();
    return *request.copies;
}

}  // namespace

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
    return first < second ? second - first < a_bytes : first - second < b_bytes;
}

Result<Request> make_request(const Call& call) {
    if (call.collective > FI_GATHER)
        return Error{FI_EINVAL, fmt::format("{} is not a collective", static_cast<int>(call.collective))};
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
    return request;
}

Result<Request> make_request(const fi_mcastcoll_request& request, fi_addr_t group) {
    if (request.size < sizeof request)
        return Error{FI_EINVAL, fmt::format("the request's size is {}, but must be {} or more", request.size,
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

Result<void> fit_to_group(Request& request, Rank self, std::size_t members) {
    const Served& served = kCollectives[static_cast<std::size_t>(request.kind)];
    if (request.kind == Kind::alltoall && (request.input_bytes || request.result_bytes)) {
        if (request.bytes % (request.combiner.element_bytes * members) != 0)
            return Error{FI_EINVAL, fmt::format("{} elements cannot be divided among {} members",
                                                request.bytes / request.combiner.element_bytes, members)};
        request.bytes /= members;
    }
    if (served.root != Root::none && index_of(request.root) >= members)
        return Error{FI_EINVAL, fmt::format("the root is {}, but must be a rank below {}",
                                            index_of(request.root), members)};
    if ((served.input == Extent::all_parts || served.result == Extent::all_parts) &&
        request.bytes > SIZE_MAX / members)
        return Error{FI_EINVAL,
                     fmt::format("{} bytes for each of {} members are too many", request.bytes, members)};
    // Bytes of a buffer used by this member.
    const auto used = [&](const char* what, Extent extent, Root only, const void* memory,
                          const std::optional<std::size_t>& said) -> Result<std::size_t> {
        if (served.root == only && request.root != self) return std::size_t{0};
        const std::size_t needed = extent_bytes(extent, request, index_of(self), members);
        if (said && *said != needed)
            return Error{FI_EINVAL, fmt::format("{} has {} bytes, but must have {}", what, *said, needed)};
        if (needed > 0 && memory == nullptr) return Error{FI_EINVAL, fmt::format("{} is NULL", what)};
        return needed;
    };
    const auto input = used("the input", served.input, Root::gives, request.input, request.input_bytes);
    if (!input) return input.error();
    const auto result =
        used("the buffer for the result", served.result, Root::gets, request.buffer, request.result_bytes);
    if (!result) return result.error();
    if (input.value() == 0 || result.value() == 0 ||
        request.input == place_in_place(served, request, index_of(self)))
        return {};
    if (overlap(request.input, input.value(), request.buffer, result.value()))
        return Error{FI_EINVAL, "input and result overlap in a way that is not supported"};
    return {};
}

int query_collective(fid_domain*, fi_collective_op name, fi_collective_attr* attr,
                     std::uint64_t flags) noexcept {
    if (attr == nullptr || attr->mode != 0 || flags != 0) return -FI_EINVAL;
    const Served* served = find_collective(name);
    if (served == nullptr) return -FI_ENOSYS;
    const auto width = datatype_bytes(attr->datatype);
    if (served->needs != Needs::nothing && !width) return -FI_EOPNOTSUPP;
    if (served->needs == Needs::operation && !reduce::combiner(attr->datatype, attr->op))
        return -FI_EOPNOTSUPP;
    attr->datatype_attr = {.count = kMaxBytes / width.value_or(1), .size = width.value_or(1)};
    attr->max_members = FI_MCASTCOLL_MAX_MEMBERS;
    return 0;
}

void Copies::deliver() const {
    const std::byte* from = result.get();
    for (const Target& target : targets) {
        std::memcpy(target.to, from, target.bytes);
        from += target.bytes;
    }
}

Result<Request> make_request(const fi_msg_collective& message, Pieces results, std::uint64_t flags) {
    Pieces inputs{message.msg_iov, message.iov_count};
    const std::size_t width =
        // Invalid datatypes are rejected by make_request() below.
        datatype_bytes(message.datatype).value_or(1);
    if (message.coll == FI_BARRIER) inputs = results = {};
    if (message.coll == FI_BROADCAST) {
        results = inputs;
        inputs = {};
    }
    const auto input = survey("the input", inputs, width);
    if (!input) return input.error();
    const auto result = survey("the result", results, width);
    if (!result) return result.error();
    const bool from_result = message.coll == FI_SCATTER || message.coll == FI_BROADCAST;
    auto made = make_request({.collective = message.coll,
                              .input = input.value().start,
                              .buffer = result.value().start,
                              .count = (from_result ? result : input).value().count,
                              .datatype = message.datatype,
                              .op = message.op,
                              .group = message.coll_addr,
                              .root = message.root_addr,
                              .flags = flags,
                              .context = message.context});
    if (!made) return made;
    Request request = std::move(made).value();
    request.input_bytes = input.value().count * width;
    request.result_bytes = result.value().count * width;
    if (!input.value().together) {
        Copies& copies = copies_of(request);
        copies.input = collect(inputs, *request.input_bytes, width);
        request.input = copies.input.get();
    }
    if (!result.value().together) {
        Copies& copies = copies_of(request);
        // A broadcast's buffer may be the data to send. In other collectives the result buffer is not read
        // and may not be readable.
        if (message.coll == FI_BROADCAST)
            copies.result = collect(results, *request.result_bytes, width);
        else
            copies.result = std::make_unique<std::byte[]>(*request.result_bytes);
        copies.targets = targets_of(results, width);
        request.buffer = copies.result.get();
    }
    return request;
}

}  // namespace mcastcoll::ofi
