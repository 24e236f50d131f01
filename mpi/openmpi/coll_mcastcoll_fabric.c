// Opens the provider, handles its completions, and decides when its queue is polled.
//
// A thread that waits for an operation polls the queue itself and calls opal_progress() in between. While any
// group exists, a callback of opal_progress() polls, so that this rank retransmits to others while it waits
// in another MPI call: in every call while non-blocking operations are open, otherwise at most in every
// eighth call and at intervals of 0.25 to 4 ms. If the program does not call opal_progress(), the progress
// thread polls (core/progress_thread.h). The progress thread completes no requests, since completion may
// call back into MPI.

#include "coll_mcastcoll.h"

// Most other providers use libfabric's own collectives, which see only the addresses inserted before the
// first set of the address vector is made. So every address must be inserted before that.
bool mcc_fabric_is_eager(void) {
    return 0 != strcmp(mcc_component.provider, "mcastcoll");
}

// Opens the provider and reports missing collectives.
static bool open_fabric(const char* provider, size_t peers, char* reason) {
    MccComponent* c = &mcc_component;
    // The progress thread sleeps on a descriptor if the provider has one.
    const bool sleeps = c->progress_thread;
    if (!(sleeps && mcc_provider_open(&c->fabric, provider, peers, FI_WAIT_FD, reason)) &&
        !mcc_provider_open(&c->fabric, provider, peers, FI_WAIT_NONE, reason))
        return false;
    reason[0] = '\0';  // set by the first attempt
    for (int i = 0; i < kMccCollectives; ++i)
        if (!mcc_provider_has(&c->fabric, mcc_collective_ops[i], FI_VOID, FI_NOOP))
            MCC_VERBOSE(1, "coll/mcastcoll: provider %s does not support %s: it stays with Open MPI",
                        provider, mcc_collective_names[i]);
    return true;
}

// Opens the provider. If this fails, the other members get the reason when a group forms, or from the modex
// record if the provider is opened with the framework.
void mcc_fabric_open(void) {
    MccComponent* c = &mcc_component;
    if (c->opened || '\0' != c->reason[0]) return;
    // Checked before libfabric is loaded, which crashes without free descriptors.
    c->opened = mcc_descriptors_left(mcc_descriptors_to_open((int)ompi_process_info.num_procs), c->reason) &&
                mcc_load(c->reason) && open_fabric(c->provider, ompi_process_info.num_procs, c->reason);
    if (!c->opened) return;
    const size_t max = c->fabric.info->ep_attr->max_msg_size;
    c->longest = c->segment < max ? c->segment : max;
}

// Marks the operation with this context as ended. Compares addresses before any access, because some
// providers report completions of their internal operations, too.
static void ended(const void* context, int error, const char* text) {
    if (mcc_slot_ended(context, error, text)) return;
    for (MccJoin* j = mcc_component.fabric.joins; NULL != j; j = j->next) {
        MccOperation* operation = &((MccGroup*)j)->operation;
        if (context != &operation->context) continue;
        if (0 != error) {
            operation->error = error;
            snprintf(operation->text, sizeof(operation->text), "%s", text);
        }
        operation->done = true;
        return;
    }
    if (0 != error)
        MCC_VERBOSE(
            5, "coll/mcastcoll: ignored an error in the completion queue that belongs to no operation: %s",
            fi_strerror(error));
}

// The lock is held.
static int poll_provider(void) {
    MccComponent* c = &mcc_component;
    const int events = mcc_poll(&c->fabric, ended);
    if (events < 0) c->broken = -events;
    if (0 != atomic_load(&c->backlog)) mcc_post_backlog();
    return events > 0 ? events : 0;
}

// Returns whether the progress callback polls in this call while no operation of this process is open. Other
// members may still need retransmissions. These can wait a while, so that Open MPI's own messages, which
// progress in the same loop, are not slowed down.
static bool is_due(MccComponent* c) {
    enum { kClockEvery = 8 };
    if (0 != atomic_fetch_add_explicit(&c->progress_calls, 1, memory_order_relaxed) % kClockEvery)
        return false;
    const double now = mcc_now_s();
    if (now < c->poll_at_s) return false;
    c->poll_at_s = now + c->poll_every_s;
    return true;
}

// Adapts the poll interval. The lock is held. A poll costs each Open MPI operation some per cent where ranks
// share cores, so polls are rare unless other members have sent NAKs since the last one.
static void choose_pace(MccComponent* c) {
    static const double kMinS = 0.25e-3, kMaxS = 4e-3;
    uint64_t naks = 0;
    for (MccJoin* j = c->fabric.joins; NULL != j; j = j->next) {
        uint64_t times = 0;
        if (NULL != j->mc && NULL != j->get_naks_received && 0 == j->get_naks_received(j->mc, &times))
            naks += times;
    }
    const double every = c->poll_every_s;
    c->poll_every_s = naks != c->naks_received ? kMinS : every < kMaxS ? 2 * every : every;
    c->naks_received = naks;
}

void mcc_groups_reap(bool all) {
    const int error = mcc_joins_reap(&mcc_component.fabric, all);
    if (0 != error)
        MCC_VERBOSE(1,
                    "coll/mcastcoll: cannot close an unused group, whose resources the provider may keep: %s",
                    fi_strerror(error));
}

static int progress(void) {
    MccComponent* c = &mcc_component;
    mcc_note_progress(&c->thread);
    if (c->waiting > 0) return 0;  // the waiting thread polls already
    const bool idle = !c->eager_progress && 0 == atomic_load_explicit(&c->open, memory_order_relaxed);
    if (idle && !is_due(c)) return 0;
    if (0 != pthread_mutex_trylock(&c->fabric.lock)) return 0;
    const int events = poll_provider();
    if (idle) choose_pace(c);
    mcc_groups_reap(false);
    pthread_mutex_unlock(&c->fabric.lock);
    return events + mcc_complete_requests();
}

void mcc_wait_step(void) {
    MccComponent* c = &mcc_component;
    mcc_note_progress(&c->thread);
    pthread_mutex_lock(&c->fabric.lock);
    const int events = poll_provider();
    pthread_mutex_unlock(&c->fabric.lock);
    if (0 == events + mcc_complete_requests()) opal_progress();  // yields if Open MPI yields when idle
}

static int poll_for_program(void) {
    (void)poll_provider();
    return -1;
}

void mcc_progress_start(void) {
    MccComponent* c = &mcc_component;
    c->poll_every_s = 1e-3;
    if (!c->polling) c->polling = OPAL_SUCCESS == opal_progress_register(progress);
}

void mcc_progress_thread_for(const MccGroup* g) {
    MccComponent* c = &mcc_component;
    enum { kIdleNs = 12000000 };
    // Groups on one host need no progress thread, since no peer waits after an operation in shared memory,
    // except for a rank blocked in pml cm.
    const bool wanted = c->progress_thread && (1 != g->join.hosts || mcc_pml_is("cm"));
    if (!wanted || mcc_progress_thread_start(&c->thread, &c->fabric, kIdleNs, poll_for_program)) return;
    MCC_VERBOSE(1,
                "coll/mcastcoll: cannot create the progress thread: peers' retransmit requests are served "
                "only while this process is inside MPI");
}

void mcc_progress_stop(void) {
    MccComponent* c = &mcc_component;
    mcc_progress_thread_stop(&c->thread);
    if (c->polling) (void)opal_progress_unregister(progress);
    c->polling = false;
}
