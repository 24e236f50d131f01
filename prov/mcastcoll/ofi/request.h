// One collective operation, in the same form for all kinds of calls, and the checks before a call becomes a
// Request. One table in request.cc lists the collectives.
//
// In place: if input and result have the same length, or the result is a slice of the reduced vector, both
// may begin at the same address. If one is a member's part of the other (gather, allgather, scatter), the
// smaller buffer may lie at the position of that part. Any other overlap is an error. libfabric does not
// specify this and has no flag for it.
#pragma once

#include <rdma/fi_collective.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "levels/level.h"
#include "mcastcoll/mcastcoll.h"

namespace mcastcoll::ofi {

using levels::Kind;

struct Copies;

// An operation with the checked arguments of a call. combiner.element_bytes is the size of the datatype for
// every kind with a datatype.
struct Request : Collective {
    fi_addr_t group = FI_ADDR_NOTAVAIL;
    std::uint64_t flags = 0;
    void* context = nullptr;
    // Total lengths of the buffers, from the message form.
    std::optional<std::size_t> input_bytes{}, result_bytes{};
    std::shared_ptr<Copies> copies{};  // for buffers in several pieces
};

// The application's call in libfabric's terms. Fields that a collective does not need are ignored.
struct Call {
    fi_collective_op collective = FI_BARRIER;
    const void* input = nullptr;
    void* buffer = nullptr;
    std::size_t count = 0;
    fi_datatype datatype = FI_VOID;
    fi_op op = FI_NOOP;
    fi_addr_t group = FI_ADDR_NOTAVAIL;
    fi_addr_t root = 0;
    std::uint64_t flags = 0;
    void* context = nullptr;
};

// Makes a request from a call. Errors: ENOSYS, no such collective; EOPNOTSUPP, not with this datatype and
// operator; EINVAL.
Result<Request> make_request(const Call& call);
// Makes a request from the arguments of fi_mcastcoll_group_ops.run, with the same errors.
Result<Request> make_request(const fi_mcastcoll_request& request, fi_addr_t group);
bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes);
// Makes the checks that need the rank and the number of members. An error may concern this member alone or
// all members. In the message form the size of an alltoall's part follows from the number of members, and the
// lengths must match the group.
Result<void> fit_to_group(Request& request, Rank self, std::size_t members);

// Implements fi_query_collective() by table look-ups. Returns 0, -FI_ENOSYS or -FI_EOPNOTSUPP. The datatype
// of a barrier, and the operator of any collective that only moves data, are ignored.
int query_collective(fid_domain* domain, fi_collective_op collective, fi_collective_attr* attr,
                     std::uint64_t flags) noexcept;

// The message form of the collectives, fi_ops_collective.msg: one structure with the name of the collective,
// and buffers in pieces.
//
// libfabric's manual lists the structure without explanation, and no other provider implements the call, so
// this is the provider's own interpretation. The pieces of a buffer have together as many elements as the
// plain call reads or writes: for an alltoall, and for the root of a scatter, one part for every member. A
// broadcast has its single buffer in `msg_iov`, and no result. Buffers used only by the root (a scatter's
// input, the result of a gather or reduce) may be omitted elsewhere. A barrier has no buffers.
//
// The levels need each buffer in one piece. Pieces adjacent in memory count as one. Other inputs are copied
// before the operation, and results are copied back when the operation completes.

// A buffer in pieces.
struct Pieces {
    const fi_ioc* list = nullptr;
    std::size_t count = 0;
};

// Contiguous copies of buffers passed in several pieces. The copies live as long as the operation.
struct Copies {
    struct Target {
        std::byte* to;
        std::size_t bytes;
    };
    std::unique_ptr<std::byte[]> input, result;
    std::vector<Target> targets;  // destinations of the result

    void deliver() const;
};

// Makes a request from the message form, with the same errors as make_request(const Call&).
Result<Request> make_request(const fi_msg_collective& message, Pieces results, std::uint64_t flags);

}  // namespace mcastcoll::ofi
