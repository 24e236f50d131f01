// Calls that the rules want measured: both ways by turns, then the agreement (MccTrial).
//
// Every member is in step, since all that decides is equal on all: the calls of a class so far, which MPI has
// in one order (blocking forms only), and numbers that the group has combined. Calls count once the group
// serves. Two barriers come before each: the group's, so that nobody goes to the previous module for a group
// that has failed elsewhere, and the previous module's, since members leave ours one after the other where
// much is lost. So no lateness is counted. The agreement is the group's own allreduce, at the call that needs
// it: nothing comes back into this component.

#include "coll_mcastcoll.h"
#include "ompi/errhandler/errhandler.h"

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

static void report(const MccJob* job, const MccTrial* t, size_t bytes) {
    const MccGroup* g = job->module->group;
    const size_t least = (size_t)1 << mcc_trial_class(bytes);
    if (0 != g->rank) return;
    MCC_VERBOSE(1,
                "coll/mcastcoll: %s of %zu to %zu bytes on %s: %.0f us here, %.0f us by Open MPI's own: %s",
                mcc_collective_names[job->collective], least, least + (least - 1), g->name,
                (double)mcc_trial_median(t, kMccOurs) * 1e-3, (double)mcc_trial_median(t, kMccOthers) * 1e-3,
                t->doubted              ? "a second trial will tell"
                : kMccOurs == t->better ? "served here"
                                        : "left to them");
}

// The same on all members: what a group refuses is known to all.
static bool can_agree(const MccModule* m) {
    return mcc_group_has(m, FI_ALLREDUCE) &&
           mcc_provider_has(&mca_coll_mcastcoll_component.fabric, FI_ALLREDUCE, FI_UINT64, FI_MAX);
}

static int meet(const MccModule* m, ompi_communicator_t* comm) {
    const MccPrevious* barrier = &m->previous[kMccBlocking][kMccBarrier];
    if (NULL == barrier->module) return OMPI_SUCCESS;
    return ((mca_coll_base_module_barrier_fn_t)barrier->function)(comm, barrier->module);
}

// An agreement failed. Where nobody can agree in this group everybody finds that in the same call.
static MccRoute fail(MccJob* job, MccTrial* t, int error) {
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

MccRoute mcc_measure(MccJob* job, size_t bytes) {
    MccModule* m = job->module;
    MccTrial* t = &m->selection[kMccBlocking][job->collective].trials[mcc_trial_class(bytes)];
    // What the previous module makes of this communicator's own collectives is part of its trial.
    if (m->measuring || !can_agree(m)) return kMccHere;
    if (mcc_trial_rests(t)) return so_far(t);
    if (m->group->failed) return kMccHere;
    if (mcc_trial_is_over(t)) {
        const int error = agree(m->group, t);
        if (0 != error) return fail(job, t, error);
        report(job, t, bytes);
        return so_far(t);
    }
    const int error = ask_for_handlers(job, t);
    if (0 != error) return fail(job, t, error);
    if (t->closed) return kMccHere;
    m->measuring = true;
    job->trial = t;
    job->rc = meet(m, job->comm);
    job->begun_ns = mcc_now_ns(CLOCK_MONOTONIC);
    if (OMPI_SUCCESS != job->rc) return kMccOver;
    return kMccOurs == mcc_trial_turn(t) ? kMccHere : kMccPrevious;
}

void mcc_measured(MccJob* job) {
    mcc_trial_note(job->trial, (uint64_t)(mcc_now_ns(CLOCK_MONOTONIC) - job->begun_ns));
    job->module->measuring = false;
}
