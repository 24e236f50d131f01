// Open MPI's threads are pthreads (absent/README.md).

#ifndef MCASTCOLL_ABSENT_THREADS_PTHREADS_THREADS_H
#define MCASTCOLL_ABSENT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define OPAL_THREAD_YIELD_WHEN_IDLE_DEFAULT false

static inline void opal_thread_yield(void) {
    (void)sched_yield();
}

#endif
