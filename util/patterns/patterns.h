// Communication patterns with the features of the NAS kernels: what a pattern needs to say who sends how much
// to whom, and when; and what TCP does to the process's connections meanwhile.
#ifndef MCASTCOLL_UTIL_PATTERNS_H
#define MCASTCOLL_UTIL_PATTERNS_H

#include <stddef.h>
#include <stdint.h>

// tcp_watch.c: what happens to this process's own long connections, as the kernel tells it (TCP_INFO).
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

enum { kLengthsMost = 32 };  // as many lengths of messages as a kernel may send across the middle

// Messages from one half of the ranks to the other, by their length.
struct crossings {
    int used;
    struct {
        uint64_t bytes, messages;
    } at[kLengthsMost];
};

struct run {
    int rank, size;
    int rows, columns;  // the ranks as a torus, row by row
    double speed;       // computing takes the given time divided by this
    double volume;      // messages of more than small ones are so many times as long
    int iteration, step;
    unsigned char *out, *in;
    size_t room;  // of each
    uint64_t messages, bytes, digest, wrong;
    int counting;  // nothing is sent, only counted
    struct crossings crossings;
    struct tcp_watch watch;
};

struct kernel {
    const char* name;
    const char* what;
    int iterations;  // unless told otherwise
    size_t largest;  // bytes of one message, or of one alltoall's part
    void (*iterate)(struct run* run);
};

// In the order of the table; the last one has no name.
extern const struct kernel kKernels[];

// What patterns are made of.  A negative peer is nobody.  compute() also looks at the connections, since a
// burst begins where it ends.
void compute(struct run* run, double milliseconds);
int neighbour(const struct run* run, int rows, int columns);
void exchange(struct run* run, int to, int from, size_t bytes);  // both at once
void exchange_many(struct run* run, const int* peers, int count,
                   size_t bytes);                               // with each of them, all at once
void pass_on(struct run* run, int to, int from, size_t bytes);  // from, then to
void everybody(struct run* run, size_t bytes);                  // alltoall, so much for each
void sum_up(struct run* run, size_t bytes);                     // allreduce

#endif
