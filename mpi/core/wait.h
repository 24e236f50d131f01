// Time, naps, and threads beside the program's own.

#ifndef MCASTCOLL_MPI_CORE_WAIT_H
#define MCASTCOLL_MPI_CORE_WAIT_H

#include <pthread.h>

#include "core/provider.h"

int64_t mcc_now_ns(clockid_t clock);
double mcc_now_s(void);
void mcc_nap(long ns);

// Signals are the program's, not this thread's.
bool mcc_start_thread(pthread_t* thread, void* (*function)(void*));

// What is readable when something has come for the provider, or -1.
int mcc_queue_descriptor(MccProvider* p);
// True: a thread may sleep on the descriptor until then. The lock that guards the provider is held.
bool mcc_queue_is_quiet(MccProvider* p, int descriptor);

#endif
