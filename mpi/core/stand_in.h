// A thread that stands in for the program's own: it makes the provider's progress while none of them is
// about.
//
// Why it exists: a member that has left an operation may have to repair others' losses while its program
// computes or waits where nobody calls the provider. The thread sleeps until no thread of the program has
// come by for a while. A timer tells it, which every such thread keeps putting off: while they do it does not
// wake at all. While it stands in it sleeps on the descriptor of the provider's queue. It makes no MPI calls,
// so that the program's thread level does not matter.

#ifndef MCASTCOLL_MPI_CORE_STAND_IN_H
#define MCASTCOLL_MPI_CORE_STAND_IN_H

#include <stdatomic.h>

#include "core/provider.h"

typedef struct {
    MccProvider* provider;
    int64_t away_ns;  // and a tick of the coarse clock, which is so cheap that every call can look at it
    // In place of the program, with the lock: what there is to do. In so many milliseconds it is called
    // again, even if nothing comes for the provider; -1: it need not be.
    int (*turn)(void);

    atomic_bool runs, stops;
    atomic_bool stands_in;
    atomic_int inside;  // threads that make all progress themselves
    _Atomic int64_t rings_at_ns;
    int alarm;
    pthread_t thread;
} MccStandIn;

// From now on, for who is away for so long, up to a tick more. False: no thread can be made.
bool mcc_stand_in_start(MccStandIn* s, MccProvider* p, int64_t away_ns, int (*turn)(void));
void mcc_stand_in_stop(MccStandIn* s);  // the lock is not held
// A thread of the program's is here. Without the lock or with it.
void mcc_seen(MccStandIn* s);
// One that stays, and makes progress by itself, whether or not it looks in here.
static inline void mcc_enter(MccStandIn* s) {
    (void)atomic_fetch_add(&s->inside, 1);
    if (atomic_load_explicit(&s->stands_in, memory_order_relaxed)) atomic_store(&s->stands_in, false);
}
static inline void mcc_leave(MccStandIn* s) {
    (void)atomic_fetch_sub(&s->inside, 1);
    mcc_seen(s);
}

#endif
