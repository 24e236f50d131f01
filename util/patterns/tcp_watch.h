// What TCP does to this process's own long connections, as the kernel tells it (TCP_INFO).
//
// Idle restarts are no counter of the kernel's: it forgets the congestion window when it sends after a pause
// of more than the retransmission timeout with nothing under way.  So the watch looks before each burst,
// though not more often than each 10 ms, which connections are in that state, and counts those that have sent
// by the next look.
#ifndef MCASTCOLL_UTIL_PATTERNS_TCP_WATCH_H
#define MCASTCOLL_UTIL_PATTERNS_TCP_WATCH_H

#include <stdint.h>

enum { kWatchedMost = 1024 };

struct tcp_watch {
    uint32_t long_us;  // a connection with a longer round trip than this is a long one
    struct {
        uint32_t sent;  // segments with data, by the last look
        uint8_t idle;   // by the last look
        uint8_t known;
    } at[kWatchedMost];  // by descriptor
    uint64_t idle_restarts;
    uint64_t looked_ms;
    int forgetful;  // by the last look, whether the network's setting lets pauses cost windows
};

struct tcp_sums {
    uint64_t connections, idle_restarts, retransmissions, duplicates, reordered;  // of long ones
    uint64_t all_connections, all_retransmissions;
};

void tcp_watch_look(struct tcp_watch* watch);
void tcp_watch_sum(struct tcp_watch* watch, struct tcp_sums* sums);

#endif
