// The progress thread makes the provider's progress while no thread of the program does.
//
// A member that has finished an operation may have to retransmit to others while its program computes, or
// waits where the provider is not called. The thread sleeps until no thread of the program has called
// mcc_note_progress() for some time. A timer measures this time, and each call of mcc_note_progress() puts
// the timer off, so that the thread does not wake at all while the program makes progress. While active, the
// thread sleeps on the descriptor of the provider's queue. The thread makes no MPI calls, so the program's
// MPI thread level does not matter.

#ifndef MCASTCOLL_MPI_CORE_PROGRESS_THREAD_H
#define MCASTCOLL_MPI_CORE_PROGRESS_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/provider.h"

typedef struct {
    MccProvider* provider;
    int64_t idle_ns;  // plus one tick of the coarse clock, which is cheap enough to be read in every call
    // The work of the active thread, called with the lock. Returns the milliseconds after which it must be
    // called again even without an event of the provider, or -1 for no limit.
    int (*poll_provider)(void);

    atomic_bool runs, stops;
    atomic_bool active;
    atomic_int inside;  // threads of the program inside the provider, which make progress by themselves
    _Atomic int64_t due_at_ns;
    int timer;
    pthread_t thread;
} MccProgressThread;

// Starts the thread, which becomes active when the program has been away for idle_ns and up to one tick more.
// False: the thread cannot be created.
bool mcc_progress_thread_start(MccProgressThread* t, MccProvider* p, int64_t idle_ns,
                               int (*poll_provider)(void));
void mcc_progress_thread_stop(MccProgressThread* t);  // the lock is not held
// Reports that a thread of the program is making progress. With or without the lock.
void mcc_note_progress(MccProgressThread* t);
// Reports that a thread of the program enters the provider, where the thread makes progress by itself without
// calling mcc_note_progress(). Returns whether there is a progress thread, for mcc_leave().
static inline bool mcc_enter(MccProgressThread* t) {
    if (!atomic_load_explicit(&t->runs, memory_order_acquire)) return false;
    (void)atomic_fetch_add(&t->inside, 1);
    if (atomic_load_explicit(&t->active, memory_order_relaxed)) atomic_store(&t->active, false);
    return true;
}
// Reports that the thread leaves the provider. `entered`: the result of mcc_enter().
static inline void mcc_leave(MccProgressThread* t, bool entered) {
    if (!entered) return;
    (void)atomic_fetch_sub(&t->inside, 1);
    mcc_note_progress(t);
}

#endif
