// MPI_Allgather, Allgatherv, Gather, Scatter and Alltoall as jobs: blocks of bytes.
//
// Who serves a call is decided on the packed size of the blocks, which MPI makes equal on all ranks;
// datatypes may differ, so a rank with a derived one must not be alone with that. It packs what it sends and
// unpacks what it gets (core/blocks.c). The operations are not cut into segments: blocks above
// coll_mcastcoll_segment, and more than 1 GiB of them together, are left to others.

#include "coll_mcastcoll_job.h"
#include "ompi/constants.h"

enum { kMostTogether = 1 << 30 };

// `block`: what this member knows of the size of one.
static MccRoute route(MccJob* job, enum fi_collective_op needed, size_t block) {
    const MccComponent* c = &mca_coll_mcastcoll_component;
    const size_t most = c->max_message < kMostTogether ? c->max_message : kMostTogether;
    job->plan.block = block;
    if (0 == block) return kMccOver;  // on every rank, by the signature
    if (block > c->segment || block > most / job->plan.members) return kMccPrevious;
    return mcc_route(job, needed, block);
}

static MccRoute route_by(MccJob* job, enum fi_collective_op needed, const MccLayout* block) {
    return route(job, needed, mcc_width(block->type) * (size_t)block->count);
}

MccRoute mcc_plan_allgather(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                            int result_count, ompi_datatype_t* result_type, MccJob* job) {
    const MccLayout in = {.base = input, .count = input_count, .type = input_type};
    const MccLayout out = {.base = result, .count = result_count, .type = result_type};
    const MccRoute who = route_by(job, FI_ALLGATHER, &out);
    return kMccHere == who ? mcc_planned(job, mcc_lay_allgather(&job->plan, &in, &out)) : who;
}

MccRoute mcc_plan_allgatherv(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                             const int* counts, const int* places, ompi_datatype_t* result_type,
                             MccJob* job) {
    const MccLayout in = {.base = input, .count = input_count, .type = input_type};
    const MccLayout out = {.base = result, .type = result_type};
    const MccList each = {.at = counts}, at = {.at = places};
    size_t largest = 0;
    if (!mcc_measure_blocks(&job->plan, &out, each, &largest)) return kMccPrevious;
    const MccRoute who = route(job, FI_ALLGATHER, largest);
    return kMccHere == who ? mcc_planned(job, mcc_lay_allgatherv(&job->plan, &in, &out, each, at)) : who;
}

MccRoute mcc_plan_gather(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                         int result_count, ompi_datatype_t* result_type, int root, MccJob* job) {
    const MccLayout in = {.base = input, .count = input_count, .type = input_type};
    const MccLayout out = {.base = result, .count = result_count, .type = result_type};
    const MccRoute who = route_by(job, FI_GATHER, job->plan.self == (size_t)root ? &out : &in);
    return kMccHere == who ? mcc_planned(job, mcc_lay_gather(&job->plan, &in, &out, root)) : who;
}

MccRoute mcc_plan_scatter(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                          int result_count, ompi_datatype_t* result_type, int root, MccJob* job) {
    const MccLayout in = {.base = input, .count = input_count, .type = input_type};
    const MccLayout out = {.base = result, .count = result_count, .type = result_type};
    const MccRoute who = route_by(job, FI_SCATTER, job->plan.self == (size_t)root ? &in : &out);
    return kMccHere == who ? mcc_planned(job, mcc_lay_scatter(&job->plan, &in, &out, root)) : who;
}

MccRoute mcc_plan_alltoall(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                           int result_count, ompi_datatype_t* result_type, MccJob* job) {
    const MccLayout in = {.base = input, .count = input_count, .type = input_type};
    const MccLayout out = {.base = result, .count = result_count, .type = result_type};
    const MccRoute who = route_by(job, FI_ALLTOALL, &out);
    return kMccHere == who ? mcc_planned(job, mcc_lay_alltoall(&job->plan, &in, &out)) : who;
}
