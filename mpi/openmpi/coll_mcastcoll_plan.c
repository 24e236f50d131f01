// MPI_Bcast and MPI_Barrier as jobs.
//
// Who serves a call is decided on what MPI makes equal on all ranks: the packed size (count and datatype may
// differ as long as the signature is the same). Messages are cut into segments by bytes of the packed form,
// so a rank with a contiguous buffer and one with a derived datatype do the same operations.

#include "coll_mcastcoll_job.h"
#include "ompi/constants.h"

MccRoute mcc_plan_barrier(MccJob* job) {
    job->whole.collective = FI_BARRIER;
    job->whole.datatype = FI_VOID;
    return mcc_route(job, FI_BARRIER, 0);
}

MccRoute mcc_plan_bcast(void* buffer, int count, ompi_datatype_t* type, int root, MccJob* job) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const MccLayout layout = {.base = buffer, .count = count, .type = type};
    const size_t bytes = mcc_bytes_of(&layout, 0);
    if (0 == bytes) return kMccOver;  // on every rank, by the signature
    if (bytes < c->bcast_min_message || bytes > c->max_message) return kMccPrevious;
    job->divisible = true;
    const MccRoute route = mcc_route(job, FI_BROADCAST, bytes);
    if (kMccHere != route) return route;
    job->whole.collective = FI_BROADCAST;
    job->whole.count = bytes;
    job->whole.root = (uint32_t)root;
    job->whole.buffer = mcc_contiguous(buffer, (size_t)count, type);
    if (NULL != job->whole.buffer) return kMccHere;
    job->to = layout;
    job->streamed = kMccBlocking == job->form && bytes > c->segment;
    if (job->streamed) return kMccHere;
    uint8_t* memory = mcc_job_memory(job, bytes);
    if (NULL == memory) return mcc_give_up(job, FI_ENOMEM);
    job->whole.buffer = memory;
    if (job->self == (size_t)root)
        return mcc_pack(&layout, (size_t)count, memory, bytes) ? kMccHere : mcc_give_up(job, FI_EOTHER);
    job->afterwards = kMccUnpackOwn;
    job->from = memory;
    job->bytes = bytes;
    return kMccHere;
}
