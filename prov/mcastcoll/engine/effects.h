// What goes into an engine and what comes out of it.
#pragma once

#include <cstdint>
#include <iterator>

#include "base/collective.h"
#include "wire/packet.h"

namespace mcastcoll::engine {

// Begins with everybody's word, or vector, up a tree to rank 0 ...
constexpr bool gathers(CollectiveKind kind) {
    return kind != CollectiveKind::broadcast;
}
// ... and ends with a release by rank 0, which carries the result.
constexpr bool releases(CollectiveKind kind) {
    return kind == CollectiveKind::barrier || kind == CollectiveKind::allreduce;
}
constexpr bool reduces(CollectiveKind kind) {
    return kind == CollectiveKind::reduce || kind == CollectiveKind::allreduce;
}
enum class Phase : std::uint8_t {
    forming,  // waiting until every member listens
    probing,  // multicasting probes and listening to the others'
    voting,   // the vote is sent, the verdict is not in
    active,
    failed,
    left,
};

struct Effect {
    enum class Kind : std::uint8_t {
        multicast,  // send header and payload to the group's address of `range`
        message,    // send header and payload to `to`, reliably
        complete,   // the operation has ended; status 0 or a positive FI_E* code
        gathered,   // rank 0 may change the buffer of the held operation, then release() it
        watch,      // tell on_peer_lost() should the process of rank `to` be gone
        joined,     // the verdict is in, operations run
        failed,     // the group has failed: status, and `to` is the rank that was lost or kNoRank
        left,       // everybody has closed the group, the engine can be destroyed
    };
    Kind kind = Kind::complete;
    Rank to = kNoRank;
    wire::HeaderBytes header{};
    Bytes payload{};  // a view that holds until the next call into the engine
    OperationId operation{};
    int status = 0;
    std::uint32_t range = 0;
};

// What the caller can take now. An engine keeps what is not allowed and offers it again.
struct Allowed {
    bool multicast = true;
    bool message = true;
};

struct Counters {
    // multicast
    std::uint64_t datagrams_sent = 0, datagrams_received = 0, probes_sent = 0, probes_received = 0,
                  fragments_relayed = 0;
    // what came of the fragments
    std::uint64_t fragments_by_multicast = 0, fragments_repaired = 0, duplicates = 0, unposted_dropped = 0,
                  beyond_window = 0;
    // messages
    std::uint64_t messages_sent = 0, messages_received = 0, asks_sent = 0, asks_received = 0, data_sent = 0,
                  fragments_supplied = 0, reports_sent = 0, gathers_sent = 0, contributions_sent = 0,
                  contributions_received = 0, credits_sent = 0;
    // policies
    std::uint64_t hand_ons = 0, nacks_sent = 0, nacks_received = 0, fragments_resent = 0,
                  watermark_asks_sent = 0, entered_sent = 0, roots_held = 0, policy_changes = 0;
    // dropped
    std::uint64_t bad_packet = 0, bad_checksum = 0, foreign_group = 0, foreign_epoch = 0, bad_sender = 0,
                  own_copies = 0, stale_operation = 0, future_operation = 0, bad_fragment = 0,
                  unexpected_kind = 0;
    // operations
    std::uint64_t operations_submitted = 0, operations_completed = 0, operations_failed = 0, checkpoints = 0;
    // elections about the multicast, in mid-run
    std::uint64_t appeals_sent = 0, elections = 0, verdicts = 0, lane_demotions = 0, lane_promotions = 0;
};

// Every counter by name: one list for printing, summing and testing.
struct NamedCounter {
    const char* name;
    std::uint64_t Counters::*member;
};
inline constexpr NamedCounter kCounters[] = {
    {"datagrams_sent", &Counters::datagrams_sent},
    {"datagrams_received", &Counters::datagrams_received},
    {"probes_sent", &Counters::probes_sent},
    {"probes_received", &Counters::probes_received},
    {"fragments_relayed", &Counters::fragments_relayed},
    {"fragments_by_multicast", &Counters::fragments_by_multicast},
    {"fragments_repaired", &Counters::fragments_repaired},
    {"duplicates", &Counters::duplicates},
    {"unposted_dropped", &Counters::unposted_dropped},
    {"beyond_window", &Counters::beyond_window},
    {"messages_sent", &Counters::messages_sent},
    {"messages_received", &Counters::messages_received},
    {"asks_sent", &Counters::asks_sent},
    {"asks_received", &Counters::asks_received},
    {"data_sent", &Counters::data_sent},
    {"fragments_supplied", &Counters::fragments_supplied},
    {"reports_sent", &Counters::reports_sent},
    {"gathers_sent", &Counters::gathers_sent},
    {"contributions_sent", &Counters::contributions_sent},
    {"contributions_received", &Counters::contributions_received},
    {"credits_sent", &Counters::credits_sent},
    {"hand_ons", &Counters::hand_ons},
    {"nacks_sent", &Counters::nacks_sent},
    {"nacks_received", &Counters::nacks_received},
    {"fragments_resent", &Counters::fragments_resent},
    {"floor_asks_sent", &Counters::watermark_asks_sent},
    {"entered_sent", &Counters::entered_sent},
    {"roots_held", &Counters::roots_held},
    {"policy_changes", &Counters::policy_changes},
    {"bad_packet", &Counters::bad_packet},
    {"bad_checksum", &Counters::bad_checksum},
    {"foreign_group", &Counters::foreign_group},
    {"foreign_epoch", &Counters::foreign_epoch},
    {"bad_sender", &Counters::bad_sender},
    {"own_copies", &Counters::own_copies},
    {"stale_operation", &Counters::stale_operation},
    {"future_operation", &Counters::future_operation},
    {"bad_fragment", &Counters::bad_fragment},
    {"unexpected_kind", &Counters::unexpected_kind},
    {"operations_submitted", &Counters::operations_submitted},
    {"operations_completed", &Counters::operations_completed},
    {"operations_failed", &Counters::operations_failed},
    {"checkpoints", &Counters::checkpoints},
    {"appeals_sent", &Counters::appeals_sent},
    {"elections", &Counters::elections},
    {"verdicts", &Counters::verdicts},
    {"lane_demotions", &Counters::lane_demotions},
    {"lane_promotions", &Counters::lane_promotions},
};

inline void add(Counters& sum, const Counters& one) {
    for (const NamedCounter& counter : kCounters) sum.*counter.member += one.*counter.member;
}

static_assert(sizeof(Counters) == std::size(kCounters) * sizeof(std::uint64_t),
              "a counter is missing from the list");

}  // namespace mcastcoll::engine
