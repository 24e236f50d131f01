// A job: one collective of MPI in the form in which the provider takes it, and what is left to do afterwards.
//
// Why it exists: blocking and non-blocking forms of a collective differ only in who waits. Both are planned
// by the same function (who serves it, which of the provider's collectives, contiguous memory instead of
// derived datatypes), then run to the end (coll_mcastcoll_run.c) or started as a request
// (coll_mcastcoll_request.c).
//
// Who owns what: a blocking job borrows its module's bounce buffer; a non-blocking one has memory of its own,
// which goes with its request, and holds a reference to a derived datatype, since the program may free it.

#ifndef MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_JOB_H
#define MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_JOB_H

#include "coll_mcastcoll.h"
#include "core/plan.h"
#include "ompi/request/request.h"

typedef struct {
    MccPlan plan;  // of all segments; first: a plan's memory is its job's
    MccModule* module;
    ompi_communicator_t* comm;
    MccForm form;
    MccCollective collective;
    int rc;

    size_t width;    // bytes of an element
    bool divisible;  // may become several operations, one segment each

    bool streamed;    // a large blocking broadcast of a derived datatype, packed segment by segment
    uint8_t* memory;  // of a non-blocking job
    int* vectors;     // of a non-blocking job: its own copy of counts and places

    MccTrial* trial;  // that this call is part of, or NULL; then the time is noted
    int64_t begun_ns;
} MccJob;

// coll_mcastcoll_run.c
// Who serves this job, by what MPI makes equal on all ranks: its collective and its bytes (see
// coll_mcastcoll_select.h), and whether the group has the provider's collective. Makes the group at the first
// call.
MccRoute mcc_route(MccJob* job, enum fi_collective_op needed, size_t bytes);
// The part of the job from element `offset` on, as the next operation.
struct fi_mcastcoll_request mcc_part(const MccJob* job, size_t offset);
ssize_t mcc_post(MccGroup* g, const struct fi_mcastcoll_request* request, void* context);
// Run and start: false if the previous module is to serve the call, or job->rc is for the caller.
bool mcc_run_job(MccJob* job, MccRoute route);
// Says what failed, and returns MPI's code for it.
int mcc_fail(MccGroup* g, const MccJob* job, int error);
// The plan came to an end in a local error, after all ranks had decided to be served here.
MccRoute mcc_give_up(MccJob* job, int error);
MccRoute mcc_planned(MccJob* job, int error);  // here, or given up

// coll_mcastcoll_measure.c: a blocking call that the rules want measured, and its end where it has a trial.
MccRoute mcc_measure(MccJob* job, size_t bytes);
void mcc_measured(MccJob* job);

// coll_mcastcoll_request.c
bool mcc_start_job(MccJob* job, MccRoute route, ompi_request_t** request);

// coll_mcastcoll_pack.c
enum { kMccPackSlack = 4096 };  // the convertor stops between basic elements; so much more completes any part
extern const MccFace mcc_open_mpi;
size_t mcc_width(ompi_datatype_t* type);  // packed bytes of an element
bool mcc_pack_more(opal_convertor_t* convertor, uint8_t* bounce, size_t room, size_t* filled, size_t wanted);
bool mcc_prepare(opal_convertor_t* convertor, bool to_send, const void* buffer, size_t count,
                 ompi_datatype_t* datatype);
bool mcc_unpack_part(opal_convertor_t* convertor, const uint8_t* bounce, size_t bytes);
static inline bool mcc_unpacks_derived(const MccJob* job) {
    const MccAfterwards what = job->plan.afterwards;
    return (kMccUnpack == what || kMccUnpackBlocks == what) &&
           !ompi_datatype_is_predefined(job->plan.to.type);
}
// What is left to do when the provider is done. Once, in any case: lets go of datatypes and memory.
bool mcc_finish_job(MccJob* job, bool good);

// coll_mcastcoll_stream.c
int mcc_run_streamed(MccJob* job);

// coll_mcastcoll_plan.c, _plan_blocks.c, _plan_reduce.c: one for each collective, the job last.
MccRoute mcc_plan_barrier(MccJob* job);
MccRoute mcc_plan_bcast(void* buffer, int count, ompi_datatype_t* type, int root, MccJob* job);
MccRoute mcc_plan_allgather(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                            int result_count, ompi_datatype_t* result_type, MccJob* job);
MccRoute mcc_plan_allgatherv(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                             const int* counts, const int* places, ompi_datatype_t* result_type, MccJob* job);
MccRoute mcc_plan_gather(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                         int result_count, ompi_datatype_t* result_type, int root, MccJob* job);
MccRoute mcc_plan_scatter(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                          int result_count, ompi_datatype_t* result_type, int root, MccJob* job);
MccRoute mcc_plan_alltoall(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                           int result_count, ompi_datatype_t* result_type, MccJob* job);
MccRoute mcc_plan_allreduce(const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,
                            MccJob* job);
MccRoute mcc_plan_reduce(const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,
                         int root, MccJob* job);
MccRoute mcc_plan_reduce_scatter(const void* input, void* result, const int* counts, ompi_datatype_t* type,
                                 MPI_Op op, MccJob* job);
MccRoute mcc_plan_reduce_scatter_block(const void* input, void* result, int count, ompi_datatype_t* type,
                                       MPI_Op op, MccJob* job);

#endif
