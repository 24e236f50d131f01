// Who serves a call, and a blocking job from its start to its end.
//
// Where the group offers it, the operation runs inside the provider, which calls Open MPI's progress from
// there, without the component's lock: two threads with two communicators must not wait for each other, since
// another rank's threads may come in the other order. Otherwise it is posted to the endpoint and polled for.
//
// A provider that answers FI_ENOSYS does so on all members of the group and before anything was begun; from
// then on the previous module serves what needs that operation on this communicator.

#include "coll_mcastcoll.h"
#include "ompi/errhandler/errhandler.h"

// The same on all members once there is a group: what the provider has, and what the group refused.
static bool is_offered(const MccModule* m, enum fi_collective_op needed, enum fi_datatype type,
                       enum fi_op op) {
    return mcc_group_has(m, needed) && mcc_provider_has(&mcc_component.fabric, needed, type, op);
}

// Calls that the rules want measured: both ways by turns, then the agreement (MccTrial, and "What is
// measured" in README.md, which has why all members are in step).

// 0, or a positive FI_E code.
static int agree_on_most(MccGroup* g, const uint64_t* mine, uint64_t* most, size_t count) {
    const struct fi_mcastcoll_request request = {.size = sizeof(request),
                                                 .collective = FI_ALLREDUCE,
                                                 .datatype = FI_UINT64,
                                                 .op = FI_MAX,
                                                 .input = mine,
                                                 .buffer = most,
                                                 .count = count};
    return mcc_run(g, &request);
}

static int agree(MccGroup* g, MccTrial* t) {
    uint64_t slowest[kMccWays][kMccTrialTurns];
    const int error = agree_on_most(g, t->ns[0], slowest[0], sizeof(slowest) / sizeof(uint64_t));
    if (0 != error) return error;
    memcpy(t->ns, slowest, sizeof(slowest));
    mcc_trial_decide(t);
    return 0;
}

// Who handles errors wants to live on when a member has died, and only our operations end then. Where an
// error ends the job, the launcher ends it for a member's death, too.
static int ask_for_handlers(const MccJob* job, MccTrial* t) {
    const uint64_t mine = &ompi_mpi_errors_are_fatal.eh != job->comm->error_handler;
    uint64_t anybodys = 0;
    const int error = agree_on_most(job->module->group, &mine, &anybodys, 1);
    if (0 == error && 0 != anybodys) mcc_trial_close(t);
    return error;
}

static void report_trial(const MccJob* job, const MccTrial* t, size_t bytes) {
    const MccGroup* g = job->module->group;
    const size_t least = (size_t)1 << mcc_trial_class(bytes);
    if (0 != g->join.rank) return;
    MCC_VERBOSE(1,
                "coll/mcastcoll: %s of %zu to %zu bytes on %s: %.0f us here, %.0f us by Open MPI's own: %s",
                mcc_collective_names[job->collective], least, least + (least - 1), g->name,
                (double)mcc_trial_median(t, kMccOurs) * 1e-3, (double)mcc_trial_median(t, kMccOthers) * 1e-3,
                t->doubted              ? "a second trial will tell"
                : kMccOurs == t->better ? "served here"
                                        : "left to them");
}

static int meet(MccModule* m, ompi_communicator_t* comm) {
    MccHeld held;
    const MccPrevious barrier = mcc_step_aside(m, comm, kMccBarrier, &held);
    const int rc = NULL == barrier.module
                       ? OMPI_SUCCESS
                       : ((mca_coll_base_module_barrier_fn_t)barrier.function)(comm, barrier.module);
    mcc_step_back(m, comm, &held);
    return rc;
}

// An agreement failed. Where nobody can agree in this group everybody finds that in the same call.
static MccRoute end_trial(MccJob* job, MccTrial* t, int error) {
    if (FI_ENOSYS == error) {
        mcc_trial_close(t);
        return kMccHere;
    }
    job->rc = mcc_fail(job->module->group, job, error);
    return kMccOver;
}

static MccRoute so_far(const MccTrial* t) {
    return kMccOurs == t->better ? kMccHere : kMccPrevious;
}

static MccRoute measure(MccJob* job, size_t bytes) {
    MccModule* m = job->module;
    MccTrial* t = &m->selection[kMccBlocking][job->collective].trials[mcc_trial_class(bytes)];
    if (!is_offered(m, FI_ALLREDUCE, FI_UINT64, FI_MAX)) return kMccHere;
    if (mcc_trial_rests(t)) return so_far(t);
    if (m->group->failed) return kMccHere;
    if (mcc_trial_is_over(t)) {
        const int error = agree(m->group, t);
        if (0 != error) return end_trial(job, t, error);
        report_trial(job, t, bytes);
        return so_far(t);
    }
    const int error = ask_for_handlers(job, t);
    if (0 != error) return end_trial(job, t, error);
    if (t->closed) return kMccHere;
    job->trial = t;
    job->rc = meet(m, job->comm);
    job->begun_ns = mcc_now_ns(CLOCK_MONOTONIC);
    if (OMPI_SUCCESS != job->rc) return kMccOver;
    return kMccOurs == mcc_trial_turn(t) ? kMccHere : kMccPrevious;
}

bool mcc_has_failed(const MccModule* m) {
    return kMccBroken == m->state ||
           (kMccServing == m->state && m->group->failed && !mcc_component.disable_on_error);
}

MccRoute mcc_route(MccJob* job, enum fi_collective_op needed, size_t bytes) {
    MccModule* m = job->module;
    if (kMccServing != m->state) {
        if (kMccBlocking != job->form) return kMccPrevious;
        job->rc = mcc_group_consider(m, job->comm, job->collective, bytes);
        if (OMPI_SUCCESS != job->rc) return kMccOver;
        if (kMccServing != m->state) return kMccPrevious;
    }
    if (!is_offered(m, needed, job->plan.whole.datatype, job->plan.whole.op)) return kMccPrevious;
    if (!job->divisible && bytes > mcc_component.longest) return kMccPrevious;
    MccRoute who = mcc_selected(m, job->form, job->collective, bytes);
    if (kMccMeasured == who) who = measure(job, bytes);
    if (kMccOver == who || !m->group->failed) return who;
    if (mcc_component.disable_on_error) return kMccPrevious;
    job->rc = MPI_ERR_OTHER;
    return kMccOver;
}

// Open MPI's progress does not say whether it did anything. A nap would delay other ranks' large messages to
// this one, so there is none unless Open MPI gives idle cores away, too.
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

// The component's callback in Open MPI's progress goes on to poll: it is what serves other groups' members
// while this one waits. A rank that the machine does not let run meanwhile is not away, and whoever stood in
// for it would hold the locks that it needs.
static int run_in_provider(MccGroup* g, const struct fi_mcastcoll_request* request) {
    ssize_t rc;
    const bool told = mcc_enter(&mcc_component.stand_in);
    while (-FI_EAGAIN == (rc = g->join.run(g->join.mc, request, progress, NULL))) opal_progress();
    mcc_leave(&mcc_component.stand_in, told);
    return (int)-rc;
}

int mcc_run(MccGroup* g, const struct fi_mcastcoll_request* request) {
    // What was started before comes before.
    while (0 != atomic_load(&g->waiting)) opal_progress();
    g->operation.text[0] = '\0';
    return NULL != g->join.run ? run_in_provider(g, request) : post_and_wait(g, request);
}

static int run_parts(const MccJob* job) {
    size_t offset = 0;
    int error;
    do {
        const struct fi_mcastcoll_request part = mcc_part(job, offset);
        error = mcc_run(job->module->group, &part);
        offset += part.count;
    } while (0 == error && offset < job->plan.whole.count);
    return error;
}

// A large blocking broadcast of a derived datatype: packed and unpacked one segment at a time, so that the
// bounce buffer stays a segment's size.
static int run_streamed(const MccJob* job) {
    // The convertor stops between basic elements; so much more completes any part.
    enum { kPackSlack = 4096 };
    const size_t segment = mcc_component.longest, room = segment + kPackSlack;
    const bool am_root = job->plan.self == job->plan.whole.root;
    size_t filled = 0;
    uint8_t* bounce = mcc_bounce_take(&job->module->bounce, room);
    if (NULL == bounce)
        return FI_ENOMEM;  // the others' operation ends with the provider's error for a missing member
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int error = mcc_prepare(&convertor, am_root, &job->plan.to) ? 0 : FI_EOTHER;
    for (size_t offset = 0; 0 == error && offset < job->plan.whole.count; offset += segment) {
        struct fi_mcastcoll_request part = mcc_part(job, offset);
        part.buffer = bounce;
        if (am_root && !mcc_convert(&convertor, true, bounce, room, &filled, part.count)) error = FI_EOTHER;
        if (0 == error) error = mcc_run(job->module->group, &part);
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

bool mcc_run_job(MccJob* job, MccRoute route) {
    if (kMccPrevious == route) return false;
    if (kMccOver == route) return true;
    int error = job->streamed ? run_streamed(job) : run_parts(job);
    if (!mcc_finish_job(job, 0 == error) && 0 == error) error = FI_EOTHER;
    if (FI_ENOSYS == error) {
        job->module->group->join.refused |= 1U << job->plan.whole.collective;
        return false;
    }
    if (0 != error) job->rc = mcc_fail(job->module->group, job, error);
    return true;
}

void mcc_measured(MccJob* job) {
    mcc_trial_note(job->trial, (uint64_t)(mcc_now_ns(CLOCK_MONOTONIC) - job->begun_ns));
}
