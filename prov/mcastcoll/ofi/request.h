// One collective operation as a station gets it, however the application asked for it, and the checks that
// make one of what the application said. Which collectives there are is one table in here.
//
// In place: where input and result are equally long, or the result is a slice of what is reduced, they may
// begin at the same address. Where one is a member's part of the other (gather, allgather, scatter), it may
// lie where that part has its place. They may not overlap otherwise. libfabric says nothing about that, and
// has no flag for it.
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

// Its combiner's element_bytes is that of the datatype in any case.
struct Request : Collective {
    fi_addr_t group = FI_ADDR_NOTAVAIL;
    std::uint64_t flags = 0;
    void* context = nullptr;
    // Of the message form, which says how long both buffers are in all.
    std::optional<std::size_t> input_bytes{}, result_bytes{};
    std::shared_ptr<Copies> copies{};  // of buffers in several pieces
};

// What the application said, in libfabric's words. What a collective does not need is not looked at.
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

// Errors: ENOSYS, there is no such collective; EOPNOTSUPP, not with this datatype and operator; EINVAL.
Result<Request> make_request(const Call& call);
// As the above, from fi_mcastcoll_group_ops.run's arguments.
Result<Request> make_request(const fi_mcastcoll_request& request, fi_addr_t group);
bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes);
// The rest of the checks, which need to know the group. What they find wrong is wrong on this member alone,
// or on all. In the message form an alltoall's part follows from the number of members, and lengths must be
// what the group makes of them.
Result<void> fit_to_group(Request& request, Rank self, std::size_t members);

// fi_query_collective(), by a few table look-ups: 0, -FI_ENOSYS or -FI_EOPNOTSUPP. Barriers have no datatype
// and no operator, and what only moves data no operator: these are not looked at.
int query_collective(fid_domain* domain, fi_collective_op collective, fi_collective_attr* attr,
                     std::uint64_t flags) noexcept;

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
