/* What the measuring programs share, whatever they measure: the clock, the data of an operation, and what is
 * said of its times.
 *
 * Why it exists: a stack is compared with another at the level of libfabric and at that of MPI, by two
 * programs. Both must fill and check the same way and sum up the same way, or the figures are not of the same
 * thing. Plain C, in a header, so that the MPI program can be compiled by any MPI's compiler and the other
 * one is C++.
 *
 * The data: each block that one rank has for another is numbered, and its words follow from that number. So
 * no two operations have the same bytes anywhere, and a receiver needs to be told nothing. Reductions add
 * small whole numbers, of which every order of adding gives the same sum. */
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
    kPerfLeastSamples = 3,
    kPerfGuardBytes = 8,
    kPerfGuardValue = 0xa5
};

static inline double perf_now_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* NULL where there is none. A page more than asked for, so that guards fit behind. */
static inline uint8_t* perf_memory(uint64_t bytes) {
    void* p = NULL;
    if (posix_memalign(&p, 4096, bytes + 4096) != 0) return NULL;
    memset(p, 0, bytes + 4096);
    return (uint8_t*)p;
}

/* The block that `from` has for `to` in the operation `serial`; where all get the same, `to` is 0. */
static inline uint64_t perf_block(uint64_t serial, int size, int from, int to) {
    return (serial * (uint64_t)size + (uint64_t)from) * (uint64_t)size + (uint64_t)to;
}

static inline uint64_t perf_word(uint64_t block, uint64_t place) {
    const uint64_t x = place * UINT64_C(0x9e3779b97f4a7c15) + block * UINT64_C(0xc2b2ae3d27d4eb4f);
    return x ^ (x >> 29);
}

static inline void perf_fill(uint8_t* to, uint64_t bytes, uint64_t block) {
    for (uint64_t at = 0; at < bytes; at += 8) {
        const uint64_t word = perf_word(block, at);
        memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}

static inline bool perf_holds(const uint8_t* data, uint64_t bytes, uint64_t block) {
    bool wrong = false;
    for (uint64_t at = 0; at < bytes; at += 8) {
        const uint64_t word = perf_word(block, at);
        wrong |= memcmp(data + at, &word, bytes - at < 8 ? bytes - at : 8) != 0;
    }
    return !wrong;
}

static inline double perf_addend(uint64_t serial, uint64_t element) {
    return (double)(((serial + element) & 1023) + 1);
}

/* What `rank` adds, elements `first` and on; and whether the sum over `ranks` ranks, from 0 on, is there. */
static inline void perf_fill_addends(uint8_t* to, uint64_t elements, uint64_t serial, int rank) {
    for (uint64_t e = 0; e < elements; ++e) {
        const double value = (double)(rank + 1) * perf_addend(serial, e);
        memcpy(to + e * sizeof(value), &value, sizeof(value));
    }
}

static inline bool perf_holds_sums(const uint8_t* data, uint64_t first, uint64_t elements, uint64_t serial,
                                   int ranks) {
    const double factor = (double)ranks * (ranks + 1) / 2;
    bool wrong = false;
    for (uint64_t e = 0; e < elements; ++e) {
        double value;
        memcpy(&value, data + e * sizeof(value), sizeof(value));
        wrong |= value != factor * perf_addend(serial, first + e);
    }
    return !wrong;
}

static inline void perf_spoil(uint8_t* buffer, uint64_t bytes) {
    memset(buffer, kPerfGuardValue, bytes + kPerfGuardBytes);
}

static inline bool perf_guarded(const uint8_t* buffer, uint64_t bytes) {
    for (int i = 0; i < kPerfGuardBytes; ++i)
        if (buffer[bytes + (uint64_t)i] != kPerfGuardValue) return false;
    return true;
}

/* What an operation does with its data. */
enum {
    kPerfRooted = 1,  /* all wait for what the root has */
    kPerfToRoot = 2,  /* the root alone gets the result */
    kPerfReduces = 4, /* adds doubles */
    kPerfSpreads = 8, /* each gets a part of the sum */
    kPerfDeals = 16,  /* has a block for each rank */
    kPerfTakes = 32   /* gets a block from each rank */
};

/* One rank's side of the operations of one cell. */
struct perf_side {
    int does, rank, size, root;
    int summed;                       /* ranks whose addends are in the sum, from 0 on */
    uint64_t bytes;                   /* as the user gave them: see mcastcoll-perf(1) */
    uint64_t elements;                /* of reductions: doubles of the whole vector */
    uint64_t own_first, own_elements; /* of them, what this rank gets */
    uint64_t send_bytes, receive_bytes;
    uint8_t *send, *receive;
    uint64_t serial; /* no two operations have the same data */
};

/* How many elements of a sum that is spread `rank` gets: one more for the first few where that does not come
 * out even. */
static inline uint64_t perf_part(const struct perf_side* s, int rank) {
    const uint64_t size = (uint64_t)s->size;
    return s->elements / size + ((uint64_t)rank < s->elements % size ? 1 : 0);
}

/* How long the buffers are; what stands before them in the struct is known. */
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

/* New data for the operation `serial`, and a result that is wrong as yet. */
static inline void perf_prepare(struct perf_side* s) {
    const bool at_root = s->rank == s->root, rooted = (s->does & kPerfRooted) != 0;
    perf_spoil(s->receive, s->receive_bytes);
    if (s->does & kPerfReduces) {
        perf_fill_addends(s->send, s->elements, s->serial, s->rank);
    } else if (s->does & kPerfDeals) {
        for (int to = 0; to < s->size && (at_root || !rooted); ++to)
            perf_fill(s->send + (uint64_t)to * s->bytes, s->bytes,
                      perf_block(s->serial, s->size, s->rank, to));
    } else if (at_root || !rooted) {
        perf_fill(rooted ? s->receive : s->send, s->bytes, perf_block(s->serial, s->size, s->rank, 0));
    }
}

/* Whether the right data has come, and nothing behind it. */
static inline bool perf_verify(const struct perf_side* s) {
    if (!perf_guarded(s->receive, s->receive_bytes)) return false;
    if ((s->does & kPerfToRoot) && s->rank != s->root) return true;
    if (s->does & kPerfReduces)
        return perf_holds_sums(s->receive, s->own_first, s->own_elements, s->serial, s->summed);
    const int to = s->does & kPerfDeals ? s->rank : 0;
    if (s->does & kPerfRooted)
        return perf_holds(s->receive, s->bytes, perf_block(s->serial, s->size, s->root, to));
    bool good = true;
    for (int from = 0; from < s->size; ++from)
        good &= perf_holds(s->receive + (uint64_t)from * s->bytes, s->bytes,
                           perf_block(s->serial, s->size, from, to));
    return good;
}

/* How many operations come next, by one rank's clock: half of what the time left allows, so that a bad guess
 * costs little. */
static inline uint64_t perf_next_count(uint64_t warmed, uint64_t done, double begin_us, double end_us) {
    const double now = perf_now_us(), left = end_us - now;
    if (done == kPerfMaxSamples || (left <= 0 && done >= kPerfLeastSamples)) return 0;
    const double each = (now - begin_us) / (double)(done + warmed), half = left / each / 2;
    if (half < 1) return 1;
    return half < (double)(kPerfMaxSamples - done) ? (uint64_t)half : kPerfMaxSamples - done;
}

static inline int perf_by_value(const void* a, const void* b) {
    double x, y;
    memcpy(&x, a, sizeof(x)), memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* One way of looking at an operation's times. */
struct perf_figure {
    double min, p10, median, p90, p99;
};

/* Sorts the samples. */
static inline struct perf_figure perf_sum_up(double* samples, uint64_t count) {
    qsort(samples, count, sizeof(*samples), perf_by_value);
    const struct perf_figure f = {samples[0], samples[count / 10], samples[count / 2],
                                  samples[count - 1 - count / 10], samples[count - 1 - count / 100]};
    return f;
}

/* What rank 0 says of one cell. overlap_percent is negative where it means nothing. */
struct perf_result {
    const char* operation;
    uint64_t bytes, samples, bad;
    uint64_t operations; /* with those that do not count */
    int ranks;
    struct perf_figure last,
        max; /* the last rank's end minus the start; the longest of all ranks' own times */
    double overlap_percent;
};

static inline void perf_print_figure(const char* name, struct perf_figure f) {
    printf("\"%s\": {\"min\": %.3f, \"p10\": %.3f, \"median\": %.3f, \"p90\": %.3f, \"p99\": %.3f}, ", name,
           f.min, f.p10, f.median, f.p90, f.p99);
}

static inline void perf_print(const struct perf_result* r) {
    printf("{\"operation\": \"%s\", \"bytes\": %llu, ", r->operation, (unsigned long long)r->bytes);
    perf_print_figure("last_us", r->last);
    perf_print_figure("max_us", r->max);
    if (r->overlap_percent >= 0) printf("\"overlap_percent\": %.1f, ", r->overlap_percent);
    printf("\"samples\": %llu, \"bad\": %llu, \"operations\": %llu, \"ranks\": %d}\n",
           (unsigned long long)r->samples, (unsigned long long)r->bad, (unsigned long long)r->operations,
           r->ranks);
    fflush(stdout);
}

#endif
