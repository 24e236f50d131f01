// Inputs and outputs of an engine.
#pragma once

#include "base/collective.h"
#include "wire/packet.h"

namespace mcastcoll::engine {

// The operation begins with a gather of readiness, or of vectors, up a tree to rank 0.
constexpr bool gathers(CollectiveKind kind) {
    return kind != CollectiveKind::broadcast;
}
// The operation ends with a release by rank 0, which carries the result.
constexpr bool releases(CollectiveKind kind) {
    return kind == CollectiveKind::barrier || kind == CollectiveKind::allreduce;
}
constexpr bool reduces(CollectiveKind kind) {
    return kind == CollectiveKind::reduce || kind == CollectiveKind::allreduce;
}
enum class Phase : std::uint8_t {
    forming,  // until all members listen
    probing,  // sending and receiving probes
    voting,   // vote sent, no reachability map yet
    active,
    failed,
    left,
};

// The payload of a multicast stays valid until this many more multicasts have been made, so that a caller can
// send several in one call.
inline constexpr std::size_t kSentTogether = 64;

struct Effect {
    enum class Kind : std::uint8_t {
        multicast,  // send header and payload to the group's address of `range`
        message,    // send header and payload to `to`, reliably
        complete,   // the operation has ended; status 0 or a positive FI_E* code
        gathered,   // rank 0 may change the buffer of the held operation, then call release()
        watch,      // call on_peer_lost() if the process of rank `to` dies
        joined,     // the reachability map is here, operations can run
        failed,     // the group has failed: status, and `to` is the rank that was lost or kNoRank
        left,       // all members have closed the group; the engine can be destroyed
    };
    Kind kind = Kind::complete;
    Rank to = kNoRank;
    wire::HeaderBytes header{};
    Bytes payload{};  // valid until the next call into the engine; of a multicast, see kSentTogether
    OperationId operation{};
    int status = 0;
    std::uint32_t range = 0;
};

// Kinds of effects that the caller can take now. The engine keeps other effects for a later call.
struct Allowed {
    bool multicast = true;
    bool message = true;
};

// All counters, by the names under which they are printed.
// clang-format off
#define MCC_COUNTERS(counter)                                                                         \
    /* multicast */                                                                                   \
    counter(datagrams_sent) counter(datagrams_received) counter(probes_sent) counter(probes_received) \
    counter(fragments_relayed) counter(copies_sent) counter(parity_sent)                              \
    /* outcome of fragments */                                                                        \
    counter(fragments_by_multicast) counter(fragments_repaired) counter(fragments_restored)           \
    counter(duplicates) counter(unposted_dropped) counter(beyond_window)                              \
    /* messages */                                                                                    \
    counter(messages_sent) counter(messages_received) counter(naks_sent) counter(naks_received)       \
    counter(data_sent) counter(fragments_supplied) counter(reports_sent) counter(gathers_sent)        \
    counter(contributions_sent) counter(contributions_received) counter(credits_sent)                 \
    /* policies */                                                                                    \
    counter(messages_forwarded) counter(root_naks_sent) counter(root_naks_received)                   \
    counter(fragments_resent) counter(watermark_requests_sent) counter(entered_sent)                  \
    counter(roots_held) counter(policy_changes) counter(redundancy_changes)                           \
    /* dropped input */                                                                               \
    counter(bad_packet) counter(bad_checksum) counter(foreign_group) counter(foreign_epoch)           \
    counter(bad_sender) counter(own_copies) counter(stale_operation) counter(future_operation)        \
    counter(bad_fragment) counter(unexpected_kind)                                                    \
    /* operations */                                                                                  \
    counter(operations_submitted) counter(operations_completed) counter(operations_failed)            \
    counter(checkpoints) counter(finished_early)                                                      \
    /* elections during operation */                                                                  \
    counter(election_requests_sent) counter(elections) counter(reachability_maps)                     \
    counter(multicast_demotions) counter(multicast_promotions)
// clang-format on

struct Counters {
#define MCC_COUNTER(name) std::uint64_t name = 0;
    MCC_COUNTERS(MCC_COUNTER)
#undef MCC_COUNTER
};

// Name and field of a counter, to print, sum and test all counters in a loop.
struct NamedCounter {
    const char* name;
    std::uint64_t Counters::*member;
};
inline constexpr NamedCounter kCounters[] = {
#define MCC_COUNTER(name) {#name, &Counters::name},
    MCC_COUNTERS(MCC_COUNTER)
#undef MCC_COUNTER
};

inline void add(Counters& sum, const Counters& one) {
    for (const NamedCounter& counter : kCounters) sum.*counter.member += one.*counter.member;
}

}  // namespace mcastcoll::engine
