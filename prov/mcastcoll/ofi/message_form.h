// The message form of the collectives, fi_ops_collective.msg: one structure that names the collective, and
// buffers in pieces.
//
// libfabric's manual has the structure and no words about it, and no other provider has the call, so this is
// what we make of it. Pieces are the memory itself: together they have as many elements as the plain call
// reads or writes, which for an alltoall, or the root of a scatter, is a part for every member. A broadcast
// has its one buffer in `msg_iov`, and no result. Buffers that only the root has (a scatter's input, the
// result of a gather or reduce) may be left out by the others, and a barrier has none.
//
// Levels want each buffer in one piece. Pieces that follow each other in memory are one; others are copied,
// the result when the operation is over.
#pragma once

#include <rdma/fi_collective.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "ofi/request.h"

namespace mcastcoll::ofi {

struct Pieces {
    const fi_ioc* list = nullptr;
    std::size_t count = 0;
};

// In one piece what the application has in several. It goes with the operation.
struct Copies {
    struct Target {
        std::byte* to;
        std::size_t bytes;
    };
    std::unique_ptr<std::byte[]> input, result;
    std::vector<Target> targets;  // where the result belongs

    void deliver() const;
};

// As make_request(const Call&).
Result<Request> make_request(const fi_msg_collective& message, Pieces results, std::uint64_t flags);

}  // namespace mcastcoll::ofi
