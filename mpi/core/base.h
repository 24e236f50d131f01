// What everything here stands on: the time, an order of numbers, a digest of terms, and a member's word when
// a group forms. How that travels is each face's own business.

#ifndef MCASTCOLL_MPI_CORE_BASE_H
#define MCASTCOLL_MPI_CORE_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline int64_t mcc_now_ns(clockid_t clock) {
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline double mcc_now_s(void) {
    return (double)mcc_now_ns(CLOCK_MONOTONIC) * 1e-9;
}

// A digest of the terms that must be the same everywhere: FNV-1a, to begin with kMccDigest.
#define kMccDigest UINT64_C(0xcbf29ce484222325)
static inline uint64_t mcc_digest(uint64_t state, const void* data, size_t bytes) {
    const uint8_t* p = data;
    for (size_t i = 0; i < bytes; ++i) state = (state ^ p[i]) * UINT64_C(0x100000001b3);
    return state;
}

// A member's word: 0, or its error (a positive FI_E code) and rank. The largest of all is what they agree on.
static inline int64_t mcc_word(int error, int rank) {
    return 0 == error ? 0 : (int64_t)error << 32 | (int64_t)rank;
}
static inline int mcc_word_error(int64_t word) {
    return (int)(word >> 32);
}
static inline int mcc_word_rank(int64_t word) {
    return (int)(word & INT32_MAX);
}

// For qsort().
static inline int mcc_compare(const void* a, const void* b) {
    const uint64_t first = *(const uint64_t*)a, second = *(const uint64_t*)b;
    return (first > second) - (first < second);
}

#endif
