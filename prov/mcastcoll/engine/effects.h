// What goes into an engine and what comes out of it.
#pragma once

#include <cstdint>

#include "wire/packet.h"
#include "wire/types.h"

namespace mcastcoll::engine {

enum class OperationKind : std::uint8_t { broadcast, barrier };

struct Operation {
    OperationKind kind = OperationKind::broadcast;
    Rank root{};
    std::byte* buffer = nullptr;  // bytes long, the caller's until the operation completes
    std::uint64_t bytes = 0;
    std::uint64_t cookie = 0;  // comes back in the completion
};

struct Effect {
    enum class Kind : std::uint8_t {
        multicast,  // send header and payload to the group's address
        message,    // send header and payload to `to`, reliably
        complete,   // the operation with this cookie has ended; status 0 or a positive FI_E* code
        watch,      // tell on_peer_lost() should the process of rank `to` be gone
        joined,     // the verdict is in, operations run
        failed,     // the group has failed: status, and `to` is the rank that was lost or kNoRank
        left,       // everybody has closed the group, the engine can be destroyed
    };
    Kind kind = Kind::complete;
    Rank to = kNoRank;
    wire::HeaderBytes header{};
    Bytes payload{};  // a view that holds until the next call into the engine
    std::uint64_t cookie = 0;
    int status = 0;
};

// What the caller can take now. An engine keeps what is not allowed and offers it again.
struct Allowed {
    bool multicast = true;
    bool message = true;
};

struct Counters {
    // multicast
    std::uint64_t datagrams_sent = 0, datagrams_received = 0, probes_sent = 0, probes_received = 0;
    // what came of the fragments
    std::uint64_t fragments_by_multicast = 0, fragments_repaired = 0, duplicates = 0, unposted_dropped = 0,
                  beyond_window = 0;
    // messages
    std::uint64_t messages_sent = 0, messages_received = 0, asks_sent = 0, asks_received = 0, data_sent = 0,
                  fragments_supplied = 0, reports_sent = 0, gathers_sent = 0;
    // dropped
    std::uint64_t bad_packet = 0, bad_checksum = 0, foreign_group = 0, foreign_epoch = 0, bad_sender = 0,
                  own_copies = 0, stale_operation = 0, future_operation = 0, bad_fragment = 0,
                  unexpected_kind = 0;
    // operations
    std::uint64_t operations_submitted = 0, operations_completed = 0, operations_failed = 0, checkpoints = 0;
};

// Applies a function to every counter and its name; one list for printing, summing and testing.
template <typename Function>
void for_each_counter(Counters& c, Function&& f) {
#define MCC_COUNTER(name) f(#name, c.name)
    MCC_COUNTER(datagrams_sent), MCC_COUNTER(datagrams_received), MCC_COUNTER(probes_sent),
        MCC_COUNTER(probes_received);
    MCC_COUNTER(fragments_by_multicast), MCC_COUNTER(fragments_repaired), MCC_COUNTER(duplicates);
    MCC_COUNTER(unposted_dropped), MCC_COUNTER(beyond_window);
    MCC_COUNTER(messages_sent), MCC_COUNTER(messages_received), MCC_COUNTER(asks_sent),
        MCC_COUNTER(asks_received);
    MCC_COUNTER(data_sent), MCC_COUNTER(fragments_supplied), MCC_COUNTER(reports_sent),
        MCC_COUNTER(gathers_sent);
    MCC_COUNTER(bad_packet), MCC_COUNTER(bad_checksum), MCC_COUNTER(foreign_group),
        MCC_COUNTER(foreign_epoch);
    MCC_COUNTER(bad_sender), MCC_COUNTER(own_copies), MCC_COUNTER(stale_operation),
        MCC_COUNTER(future_operation);
    MCC_COUNTER(bad_fragment), MCC_COUNTER(unexpected_kind);
    MCC_COUNTER(operations_submitted), MCC_COUNTER(operations_completed), MCC_COUNTER(operations_failed);
    MCC_COUNTER(checkpoints);
#undef MCC_COUNTER
}

}  // namespace mcastcoll::engine
