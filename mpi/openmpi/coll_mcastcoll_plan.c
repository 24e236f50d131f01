// MPI_Bcast and MPI_Barrier as jobs.
//
// Who serves a call is decided on what MPI makes equal on all ranks: the packed size (count and datatype may
// differ as long as the signature is the same). Messages are cut into segments by bytes of the packed form,
// so a rank with a contiguous buffer and one with a derived datatype do the same operations.

#include "coll_mcastcoll_job.h"
#include "ompi/constants.h"

MccRoute mcc_plan_barrier(MccJob* job) {
    job->plan.whole.collective = FI_BARRIER;
    job->plan.whole.datatype = FI_VOID;
    return mcc_route(job, FI_BARRIER, 0);
}

MccRoute mcc_planned(MccJob* job, int error) {
    return 0 == error ? kMccHere : mcc_give_up(job, error);
}

MccRoute mcc_plan_bcast(void* buffer, int count, ompi_datatype_t* type, int root, MccJob* job) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const MccLayout layout = {.base = buffer, .count = count, .type = type};
    const size_t bytes = mcc_width(type) * (size_t)count;
    if (0 == bytes) return kMccOver;  // on every rank, by the signature
    if (bytes < c->bcast_min_message || bytes > c->max_message) return kMccPrevious;
    job->divisible = true;
    const MccRoute route = mcc_route(job, FI_BROADCAST, bytes);
    if (kMccHere != route) return route;
    job->streamed =
        kMccBlocking == job->form && bytes > c->segment && NULL == mcc_open_mpi.contiguous(&layout);
    if (!job->streamed) return mcc_planned(job, mcc_lay_bcast(&job->plan, &layout, bytes, root));
    job->plan.whole.collective = FI_BROADCAST;
    job->plan.whole.count = bytes;
    job->plan.whole.root = (uint32_t)root;
    job->plan.to = layout;
    return kMccHere;
}
