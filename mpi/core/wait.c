#include "core/wait.h"

#include <signal.h>
#include <time.h>

int64_t mcc_now_ns(clockid_t clock) {
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

double mcc_now_s(void) {
    return (double)mcc_now_ns(CLOCK_MONOTONIC) * 1e-9;
}

void mcc_nap(long ns) {
    const struct timespec time = {.tv_nsec = ns};
    (void)nanosleep(&time, NULL);
}

bool mcc_start_thread(pthread_t* thread, void* (*function)(void*)) {
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = 0 == pthread_create(thread, NULL, function, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

int mcc_queue_descriptor(MccProvider* p) {
    int descriptor = -1;
    return 0 == fi_control(&p->cq->fid, FI_GETWAIT, &descriptor) ? descriptor : -1;
}

bool mcc_queue_is_quiet(MccProvider* p, int descriptor) {
    struct fid* queue = &p->cq->fid;
    return descriptor >= 0 && 0 == fi_trywait(p->fabric, &queue, 1);
}
