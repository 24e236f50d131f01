#include "ofi/message_form.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <optional>

namespace mcastcoll::ofi {
namespace {

// Of one buffer, in elements.
struct Whole {
    std::byte* start = nullptr;  // null: there is nothing
    std::size_t count = 0;
    bool together = true;  // every piece follows the one before
};

Result<Whole> survey(const char* what, Pieces pieces, std::size_t width) {
    if (pieces.count > 0 && pieces.list == nullptr)
        return Error{FI_EINVAL, fmt::format("the list of {} pieces of {} is NULL", pieces.count, what)};
    Whole whole;
    for (std::size_t i = 0; i < pieces.count; ++i) {
        const fi_ioc& piece = pieces.list[i];
        if (piece.count == 0) continue;  // wherever it is
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

// The pieces, one after the other, in memory of their own.
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
        datatype_bytes(message.datatype).value_or(1);  // what is none is found out below
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
        // Of a broadcast this may be what is sent.
        copies.result = collect(results, *request.result_bytes, width);
        copies.targets = targets_of(results, width);
        request.buffer = copies.result.get();
    }
    return request;
}

}  // namespace mcastcoll::ofi
