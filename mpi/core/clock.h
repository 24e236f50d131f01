// The time.

#ifndef MCASTCOLL_MPI_CORE_CLOCK_H
#define MCASTCOLL_MPI_CORE_CLOCK_H

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

#endif
