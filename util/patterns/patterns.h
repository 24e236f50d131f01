// Communication patterns with the features of the NAS kernels: building blocks for patterns, which define the
// sizes, partners and times of messages; and counters of TCP events on the process's connections.
#ifndef MCASTCOLL_UTIL_PATTERNS_H
#define MCASTCOLL_UTIL_PATTERNS_H

#include <stddef.h>
#include <stdint.h>

// tcp_watch.c: events on this process's own long connections, as reported by the kernel (TCP_INFO).
enum { kMaxWatched = 1024 };

struct tcp_watch {
    uint32_t long_us;  // threshold: a connection with a longer round trip is a long one
    struct {
        uint32_t sent;  // segments with data, at the last look
        uint8_t idle;   // at the last look
        uint8_t known;
    } at[kMaxWatched];  // by descriptor
    uint64_t idle_restarts;
    uint64_t looked_ms;
    int forgetful;  // whether the congestion window is reset after a pause, at the last look
};

struct tcp_sums {
    uint64_t connections, idle_restarts, retransmissions, duplicates, reordered;  // of long connections
    uint64_t all_connections, all_retransmissions;
};

void tcp_watch_look(struct tcp_watch* watch);
void tcp_watch_sum(struct tcp_watch* watch, struct tcp_sums* sums);

enum { kMaxLengths = 32 };  // limit of distinct message lengths between the halves of the ranks

// Messages from one half of the ranks to the other, by length.
struct crossings {
    int used;
    struct {
        uint64_t bytes, messages;
    } at[kMaxLengths];
};

struct run {
    int rank, size;
    int rows, columns;  // the ranks as a torus, row by row
    double speed;       // computing takes the given time divided by this
    double volume;      // factor on the lengths of all but small messages
    int iteration, step;
    unsigned char *out, *in;
    size_t room;  // of each
    uint64_t messages, bytes, digest, wrong;
    int counting;  // count messages without sending
    struct crossings crossings;
    struct tcp_watch watch;
};

struct kernel {
    const char* name;
    const char* what;
    int iterations;  // default
    size_t largest;  // bytes of one message, or of one part of an alltoall
    void (*iterate)(struct run* run);
};

// All kernels; the last entry has no name.
extern const struct kernel kKernels[];

// Building blocks of patterns. A negative peer means no message. compute() sleeps, and then checks the
// connections for idle restarts, since a burst of messages begins at its end.
void compute(struct run* run, double milliseconds);
int neighbour(const struct run* run, int rows, int columns);
void exchange(struct run* run, int to, int from, size_t bytes);  // sends and receives at once
void exchange_many(struct run* run, const int* peers, int count,
                   size_t bytes);                                        // with each peer, all at once
void receive_and_send(struct run* run, int to, int from, size_t bytes);  // receives, then sends
void exchange_all(struct run* run, size_t bytes);                        // alltoall, `bytes` per rank
void sum_up(struct run* run, size_t bytes);                              // allreduce

#endif
