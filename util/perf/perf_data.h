/* Common parts of the measuring programs, so that their figures are comparable: the clock, the data of an
 * operation, the number of operations measured, and the summary of times. Plain C in a header, so that any
 * MPI's compiler can compile the MPI program, while the other program is C++.
 *
 * The data: each block from one rank to another is numbered, and its words follow from that number. So no two
 * operations have the same bytes anywhere, and a receiver can check a block by its number alone. Reductions
 * add small whole numbers, so the sum does not depend on the order of adding. */
#ifndef MCASTCOLL_UTIL_PERF_DATA_H
#define MCASTCOLL_UTIL_PERF_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    kPerfMaxSamples = 20000,
    kPerfWarmup = 4,
    kPerfMinSamples = 3,
    kPerfGuardBytes = 8,
    kPerfGuardValue = 0xa5
};

static inline double perf_now_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Returns memory, a page more than requested for the guards behind the data; NULL on failure. */
static inline uint8_t* perf_memory(uint64_t bytes) {
    void* p = NULL;
    if (posix_memalign(&p, 4096, bytes + 4096) != 0) return NULL;
    memset(p, 0, bytes + 4096);
    return (uint8_t*)p;
}

/* The block from `from` to `to` in the operation `serial`; `to` is 0 if all ranks get the same block. */
static inline uint64_t perf_block(uint64_t serial, int size, int from, int to) {
    return (serial * (uint64_t)size + (uint64_t)from) * (uint64_t)size + (uint64_t)to;
}

/* Writes the block to `data`, or else checks whether `data` has the block. */
static inline bool perf_words(uint8_t* data, uint64_t bytes, uint64_t block, bool writes) {
    bool wrong = false;
    for (uint64_t at = 0; at < bytes; at += 8) {
        const uint64_t x = at * UINT64_C(0x9e3779b97f4a7c15) + block * UINT64_C(0xc2b2ae3d27d4eb4f);
        const uint64_t word = x ^ (x >> 29), size = bytes - at < 8 ? bytes - at : 8;
        if (writes) memcpy(data + at, &word, size);
        wrong |= memcmp(data + at, &word, size) != 0;
    }
    return !wrong;
}

/* An element of rank 0's addend; the other ranks add multiples of it. */
static inline double perf_addend(uint64_t serial, uint64_t element) {
    return (double)(((serial + element) & 1023) + 1);
}

/* Data flow of an operation. */
enum {
    kPerfRooted = 1,  /* all wait for the root's data */
    kPerfToRoot = 2,  /* only the root gets the result */
    kPerfReduces = 4, /* adds doubles */
    kPerfSpreads = 8, /* each rank gets a part of the sum */
    kPerfDeals = 16,  /* has a block for each rank */
    kPerfTakes = 32   /* gets a block from each rank */
};

/* One rank's side of the operations of one cell. */
struct perf_side {
    int does, rank, size, root;
    int summed;                       /* number of ranks in the sum, from rank 0 on */
    uint64_t bytes;                   /* as given by the user: see mcastcoll-perf(1) */
    uint64_t elements;                /* of reductions: doubles of the whole vector */
    uint64_t own_first, own_elements; /* this rank's part of them */
    uint64_t send_bytes, receive_bytes;
    uint8_t *send, *receive;
    uint64_t serial; /* no two operations have the same data */
};

/* Number of elements of a scattered sum for `rank`: one more for the first few ranks if the division leaves a
 * remainder. */
static inline uint64_t perf_part(const struct perf_side* s, int rank) {
    const uint64_t size = (uint64_t)s->size;
    return s->elements / size + ((uint64_t)rank < s->elements % size ? 1 : 0);
}

/* Computes the buffer sizes from the fields before them. */
static inline void perf_lay_out(struct perf_side* s) {
    const uint64_t size = (uint64_t)s->size;
    s->summed = s->size;
    s->own_first = 0;
    s->own_elements = s->elements;
    s->send_bytes = s->receive_bytes = s->does & kPerfReduces ? s->elements * 8 : s->bytes;
    if (s->does & kPerfDeals) s->send_bytes = s->bytes * size;
    if (s->does & kPerfTakes) s->receive_bytes = s->bytes * size;
    if (!(s->does & kPerfSpreads)) return;
    for (int r = 0; r < s->rank; ++r) s->own_first += perf_part(s, r);
    s->own_elements = perf_part(s, s->rank);
    s->receive_bytes = s->own_elements * 8;
}

/* Fills in new data for the operation `serial`, and invalidates the result. */
static inline void perf_prepare(struct perf_side* s) {
    const bool at_root = s->rank == s->root, rooted = (s->does & kPerfRooted) != 0;
    memset(s->receive, kPerfGuardValue, s->receive_bytes + kPerfGuardBytes);
    if (s->does & kPerfReduces) {
        for (uint64_t e = 0; e < s->elements; ++e) {
            const double value = (double)(s->rank + 1) * perf_addend(s->serial, e);
            memcpy(s->send + e * sizeof(value), &value, sizeof(value));
        }
    } else if (s->does & kPerfDeals) {
        for (int to = 0; to < s->size && (at_root || !rooted); ++to)
            perf_words(s->send + (uint64_t)to * s->bytes, s->bytes,
                       perf_block(s->serial, s->size, s->rank, to), true);
    } else if (at_root || !rooted) {
        perf_words(rooted ? s->receive : s->send, s->bytes, perf_block(s->serial, s->size, s->rank, 0), true);
    }
}

/* Whether this rank's part of the sum is right. */
static inline bool perf_holds_sums(const struct perf_side* s) {
    const double factor = (double)s->summed * (s->summed + 1) / 2;
    bool wrong = false;
    for (uint64_t e = 0; e < s->own_elements; ++e) {
        double value;
        memcpy(&value, s->receive + e * sizeof(value), sizeof(value));
        wrong |= value != factor * perf_addend(s->serial, s->own_first + e);
    }
    return !wrong;
}

/* Whether the received data is right, and the guards behind it are unchanged. */
static inline bool perf_verify(const struct perf_side* s) {
    bool good = true;
    for (int i = 0; i < kPerfGuardBytes; ++i)
        good &= s->receive[s->receive_bytes + (uint64_t)i] == kPerfGuardValue;
    if ((s->does & kPerfToRoot) && s->rank != s->root) return good;
    if (s->does & kPerfReduces) return good && perf_holds_sums(s);
    const bool rooted = (s->does & kPerfRooted) != 0;
    for (int from = rooted ? s->root : 0; from < (rooted ? s->root + 1 : s->size); ++from)
        good &= perf_words(s->receive + (rooted ? 0 : (uint64_t)from * s->bytes), s->bytes,
                           perf_block(s->serial, s->size, from, s->does & kPerfDeals ? s->rank : 0), false);
    return good;
}

/* Runs the operations of one cell: a few for warm-up (fewer if they are slow), then as many as the time
 * allows, in steps of half the remaining estimate, so that a wrong estimate costs little. `run` runs some
 * operations and stores their times from `slot` on; it returns false if the operation does not exist. `agree`
 * returns rank 0's value on every rank. Returns the number of timed operations. */
static inline uint64_t perf_measure(double seconds, void* bench,
                                    bool (*run)(void* bench, uint64_t slot, uint64_t count),
                                    uint64_t (*agree)(void* bench, uint64_t own)) {
    const double begin = perf_now_us();
    uint64_t warmed = 0, done = 0, count;
    do {
        if (!run(bench, 0, 1)) return 0;
    } while (agree(bench, ++warmed < kPerfWarmup && perf_now_us() - begin < seconds * 1e5));
    do {
        const double spent = perf_now_us() - begin, left = seconds * 1e6 - spent,
                     allowed = (double)(kPerfMaxSamples - done);
        const double half = left / (spent / (double)(done + warmed)) / 2;
        const bool enough = allowed < 1 || (left <= 0 && done >= kPerfMinSamples);
        count = agree(bench, enough ? 0 : half < 1 ? 1 : (uint64_t)(half < allowed ? half : allowed));
        if (count != 0 && !run(bench, done, count)) return 0;
        done += count;
    } while (count != 0);
    return done;
}

static inline int perf_by_value(const void* a, const void* b) {
    double x, y;
    memcpy(&x, a, sizeof(x)), memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* Statistics of an operation's times. */
struct perf_figure {
    double min, p10, median, p90, p99;
};

/* Returns the statistics of the samples, which it sorts. */
static inline struct perf_figure perf_sum_up(double* samples, uint64_t count) {
    qsort(samples, count, sizeof(*samples), perf_by_value);
    const struct perf_figure f = {samples[0], samples[count / 10], samples[count / 2],
                                  samples[count - 1 - count / 10], samples[count - 1 - count / 100]};
    return f;
}

/* Rank 0's result of one cell. Negative overlap_percent or lost: not applicable. */
struct perf_result {
    const char* operation;
    const char* unavailable; /* why there are no figures, or NULL */
    uint64_t bytes, samples, bad;
    uint64_t operations; /* including warm-up */
    int ranks;
    /* last: the last rank's end minus the start. max: the longest of all ranks' own times. */
    struct perf_figure last, max;
    double overlap_percent;
    int64_t lost; /* operations excluded for lost datagrams, on a stack without repair */
    uint64_t lost_datagrams;
};

static inline void perf_print_figure(const char* name, struct perf_figure f) {
    printf("\"%s\": {\"min\": %.3f, \"p10\": %.3f, \"median\": %.3f, \"p90\": %.3f, \"p99\": %.3f}, ", name,
           f.min, f.p10, f.median, f.p90, f.p99);
}

static inline void perf_print(const struct perf_result* r) {
    printf("{\"operation\": \"%s\", \"bytes\": %llu, ", r->operation, (unsigned long long)r->bytes);
    if (r->unavailable != NULL) {
        printf("\"unavailable\": \"%s\"}\n", r->unavailable);
        fflush(stdout);
        return;
    }
    perf_print_figure("last_us", r->last);
    perf_print_figure("max_us", r->max);
    if (r->overlap_percent >= 0) printf("\"overlap_percent\": %.1f, ", r->overlap_percent);
    if (r->lost >= 0)
        printf("\"lost\": %lld, \"lost_datagrams\": %llu, ", (long long)r->lost,
               (unsigned long long)r->lost_datagrams);
    printf("\"samples\": %llu, \"bad\": %llu, \"operations\": %llu, \"ranks\": %d}\n",
           (unsigned long long)r->samples, (unsigned long long)r->bad, (unsigned long long)r->operations,
           r->ranks);
    fflush(stdout);
}

#endif
