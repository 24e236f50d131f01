// Decides which side serves a call, and runs blocking calls.
//
// If the group has the extension `run`, the operation runs inside the provider, which calls Open MPI's
// progress meanwhile. The component's lock is not held: two threads with two communicators must not wait for
// each other, since the threads of another rank may arrive in the opposite order. Without the extension, the
// operation is posted to the endpoint and polled for.
//
// If a provider answers FI_ENOSYS, it does so on every member of the group and before any work has begun.
// From then on, the previous module serves the collectives of this communicator that need this operation.

#include "coll_mcastcoll.h"
#include "ompi/errhandler/errhandler.h"

// Returns whether the provider has the operation and the group has not refused it. The same on every member
// once there is a group.
static bool is_offered(const MccModule* m, enum fi_collective_op needed, enum fi_datatype type,
                       enum fi_op op) {
    return mcc_group_has(m, needed) && mcc_provider_has(&mcc_component.fabric, needed, type, op);
}

// Measured calls: both sides serve calls in turn, then the members agree on the times. See MccTrial, and
// "What is measured" in README.md, which also says why the members make the same choices.

// Computes the maxima of all members' numbers. Returns 0 or a positive FI_E code.
static int agree_on_maximum(MccGroup* g, const uint64_t* mine, uint64_t* max, size_t count) {
    const struct fi_mcastcoll_request request = {.size = sizeof(request),
                                                 .collective = FI_ALLREDUCE,
                                                 .datatype = FI_UINT64,
                                                 .op = FI_MAX,
                                                 .input = mine,
                                                 .buffer = max,
                                                 .count = count};
    return mcc_run(g, &request);
}

static int agree(MccGroup* g, MccTrial* t) {
    uint64_t slowest[kMccSides][kMccTrialCalls];
    const int error = agree_on_maximum(g, t->ns[0], slowest[0], sizeof(slowest) / sizeof(uint64_t));
    if (0 != error) return error;
    memcpy(t->ns, slowest, sizeof(slowest));
    mcc_trial_decide(t);
    return 0;
}

// Ends the trials if any member has an error handler other than MPI_ERRORS_ARE_FATAL. Such a program wants to
// continue after a death, and only the operations of the group end then. Where errors are fatal, the launcher
// ends the job after a death.
static int compare_error_handlers(const MccCall* call, MccTrial* t) {
    const uint64_t mine = &ompi_mpi_errors_are_fatal.eh != call->comm->error_handler;
    uint64_t max = 0;
    const int error = agree_on_maximum(call->module->group, &mine, &max, 1);
    if (0 == error && 0 != max) mcc_trial_close(t);
    return error;
}

static void report_trial(const MccCall* call, const MccTrial* t, size_t bytes) {
    const MccGroup* g = call->module->group;
    const size_t min = (size_t)1 << mcc_trial_class(bytes);
    if (0 != g->join.rank) return;
    MCC_VERBOSE(1,
                "coll/mcastcoll: %s of %zu to %zu bytes on %s: %.0f us here, %.0f us by Open MPI's own: %s",
                mcc_collective_names[call->collective], min, min + (min - 1), g->name,
                (double)mcc_trial_median(t, kMccSideGroup) * 1e-3,
                (double)mcc_trial_median(t, kMccSidePrevious) * 1e-3,
                t->contradicted              ? "a second trial will decide"
                : kMccSideGroup == t->better ? "served here"
                                             : "left to them");
}

static int synchronise(MccModule* m, ompi_communicator_t* comm) {
    MccSavedModules saved;
    const MccPrevious barrier = mcc_install_previous(m, comm, kMccBarrier, &saved);
    const int rc = NULL == barrier.module
                       ? OMPI_SUCCESS
                       : ((mca_coll_base_module_barrier_fn_t)barrier.function)(comm, barrier.module);
    mcc_restore_modules(m, comm, &saved);
    return rc;
}

// Handles a failed agreement. If the group has no allreduce, all members get FI_ENOSYS in the same call, and
// the trials end.
static MccRoute end_trial(MccCall* call, MccTrial* t, int error) {
    if (FI_ENOSYS == error) {
        mcc_trial_close(t);
        return kMccHere;
    }
    call->rc = mcc_fail(call->module->group, call, error);
    return kMccOver;
}

static MccRoute so_far(const MccTrial* t) {
    return kMccSideGroup == t->better ? kMccHere : kMccPrevious;
}

static MccRoute measure(MccCall* call, size_t bytes) {
    MccModule* m = call->module;
    MccTrial* t = &m->selection[kMccBlocking][call->collective].trials[mcc_trial_class(bytes)];
    if (!is_offered(m, FI_ALLREDUCE, FI_UINT64, FI_MAX)) return kMccHere;
    if (mcc_trial_pauses(t)) return so_far(t);
    if (m->group->failed) return kMccHere;
    if (mcc_trial_is_over(t)) {
        const int error = agree(m->group, t);
        if (0 != error) return end_trial(call, t, error);
        report_trial(call, t, bytes);
        return so_far(t);
    }
    const int error = compare_error_handlers(call, t);
    if (0 != error) return end_trial(call, t, error);
    if (t->closed) return kMccHere;
    call->trial = t;
    call->rc = synchronise(m, call->comm);
    call->begun_ns = mcc_now_ns(CLOCK_MONOTONIC);
    if (OMPI_SUCCESS != call->rc) return kMccOver;
    return kMccSideGroup == mcc_trial_side(t) ? kMccHere : kMccPrevious;
}

bool mcc_has_failed(const MccModule* m) {
    return kMccBroken == m->state ||
           (kMccServing == m->state && m->group->failed && !mcc_component.disable_on_error);
}

MccRoute mcc_route(MccCall* call, enum fi_collective_op needed, size_t bytes) {
    MccModule* m = call->module;
    if (kMccServing != m->state) {
        if (kMccBlocking != call->form) return kMccPrevious;
        call->rc = mcc_group_consider(m, call->comm, call->collective, bytes);
        if (OMPI_SUCCESS != call->rc) return kMccOver;
        if (kMccServing != m->state) return kMccPrevious;
    }
    if (!is_offered(m, needed, call->prepared.whole.datatype, call->prepared.whole.op)) return kMccPrevious;
    if (!call->divisible && bytes > mcc_component.longest) return kMccPrevious;
    MccRoute route = mcc_selected(m, call->form, call->collective, bytes);
    if (kMccMeasured == route) route = measure(call, bytes);
    if (kMccOver == route || !m->group->failed) return route;
    if (mcc_component.disable_on_error) return kMccPrevious;
    call->rc = MPI_ERR_OTHER;
    return kMccOver;
}

// Makes Open MPI's progress for a thread inside the provider. Returns 0, which allows the provider to sleep,
// only if Open MPI yields when idle: Open MPI does not report whether its progress did any work, and a sleep
// would delay large messages from other ranks to this rank.
static int progress(void* nothing) {
    (void)nothing;
    opal_progress();
    return !opal_progress_yield_when_idle;
}

static int post_and_wait(MccGroup* g, const struct fi_mcastcoll_request* request) {
    MccComponent* c = &mcc_component;
    MccOperation* op = &g->operation;
    ssize_t rc;
    (void)atomic_fetch_add(&c->waiting, 1);
    op->done = false;
    op->error = 0;
    for (;;) {
        pthread_mutex_lock(&c->fabric.lock);
        rc = mcc_post(g, request, &op->context);
        pthread_mutex_unlock(&c->fabric.lock);
        if (-FI_EAGAIN != rc || 0 != c->broken) break;
        mcc_wait_step();
    }
    while (0 == rc && !op->done && 0 == c->broken) mcc_wait_step();
    (void)atomic_fetch_sub(&c->waiting, 1);
    if (0 != rc) return (int)-rc;
    return op->done ? op->error : c->broken;
}

// Runs an operation inside the provider. The component's progress callback continues to poll meanwhile and so
// serves the members of other groups. While a thread is inside, the progress thread stays inactive even if
// the machine does not schedule this rank: the progress thread would hold locks needed by the rank.
static int run_in_provider(MccGroup* g, const struct fi_mcastcoll_request* request) {
    ssize_t rc;
    const bool entered = mcc_enter(&mcc_component.thread);
    while (-FI_EAGAIN == (rc = g->join.run(g->join.mc, request, progress, NULL))) opal_progress();
    mcc_leave(&mcc_component.thread, entered);
    return (int)-rc;
}

int mcc_run(MccGroup* g, const struct fi_mcastcoll_request* request) {
    // Waits until the earlier requests in the backlog are posted, to keep the order of the calls.
    while (0 != atomic_load(&g->waiting)) opal_progress();
    g->operation.text[0] = '\0';
    return NULL != g->join.run ? run_in_provider(g, request) : post_and_wait(g, request);
}

static int run_parts(const MccCall* call) {
    size_t offset = 0;
    int error;
    do {
        const struct fi_mcastcoll_request part = mcc_part(call, offset);
        error = mcc_run(call->module->group, &part);
        offset += part.count;
    } while (0 == error && offset < call->prepared.whole.count);
    return error;
}

// Runs a large blocking broadcast of a derived datatype. Packs and unpacks segment by segment, so that the
// bounce buffer needs only the size of a segment.
static int run_streamed(const MccCall* call) {
    // The convertor packs whole basic elements. With this much more room, the element at the end of a part
    // fits.
    enum { kPackSlack = 4096 };
    const size_t segment = mcc_component.longest, room = segment + kPackSlack;
    const bool am_root = call->prepared.self == call->prepared.whole.root;
    size_t filled = 0;
    uint8_t* bounce = mcc_bounce_take(&call->module->bounce, room);
    if (NULL == bounce) return FI_ENOMEM;  // the other members get the provider's error for a missing member
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int error = mcc_prepare_convertor(&convertor, am_root, &call->prepared.to) ? 0 : FI_EOTHER;
    for (size_t offset = 0; 0 == error && offset < call->prepared.whole.count; offset += segment) {
        struct fi_mcastcoll_request part = mcc_part(call, offset);
        part.buffer = bounce;
        if (am_root && !mcc_convert(&convertor, true, bounce, room, &filled, part.count)) error = FI_EOTHER;
        if (0 == error) error = mcc_run(call->module->group, &part);
        if (0 == error && !am_root &&
            !mcc_convert(&convertor, false, bounce, part.count, &filled, part.count))
            error = FI_EOTHER;
        if (0 != error) break;
        filled -= part.count;
        memmove(bounce, bounce + part.count, filled);
    }
    OBJ_DESTRUCT(&convertor);
    return error;
}

bool mcc_run_call(MccCall* call, MccRoute route) {
    if (kMccPrevious == route) return false;
    if (kMccOver == route) return true;
    int error = call->streamed ? run_streamed(call) : run_parts(call);
    if (!mcc_finish_call(call, 0 == error) && 0 == error) error = FI_EOTHER;
    if (FI_ENOSYS == error) {
        call->module->group->join.refused |= 1U << call->prepared.whole.collective;
        return false;
    }
    if (0 != error) call->rc = mcc_fail(call->module->group, call, error);
    return true;
}

void mcc_measured(MccCall* call) {
    mcc_trial_note(call->trial, (uint64_t)(mcc_now_ns(CLOCK_MONOTONIC) - call->begun_ns));
}
