// A large blocking broadcast of a derived datatype: packed and unpacked one segment at a time, so that the
// bounce buffer stays a segment's size.

#include <string.h>

#include "coll_mcastcoll_job.h"

static int run_segments(MccJob* job, opal_convertor_t* convertor, uint8_t* bounce, size_t room) {
    const size_t segment = mca_coll_mcastcoll_component.longest, bytes = job->plan.whole.count;
    const bool am_root = job->plan.self == job->plan.whole.root;
    size_t filled = 0;
    for (size_t offset = 0; offset < bytes; offset += segment) {
        struct fi_mcastcoll_request part = job->plan.whole;
        part.buffer = bounce;
        part.count = bytes - offset < segment ? bytes - offset : segment;
        if (am_root && !mcc_pack_more(convertor, bounce, room, &filled, part.count)) return FI_EOTHER;
        const int error = mcc_run(job->module->group, &part);
        if (0 != error) return error;
        if (!am_root && !mcc_unpack_part(convertor, bounce, part.count)) return FI_EOTHER;
        if (am_root) {
            filled -= part.count;
            memmove(bounce, bounce + part.count, filled);
        }
    }
    return 0;
}

int mcc_run_streamed(MccJob* job) {
    const size_t room = mca_coll_mcastcoll_component.longest + kMccPackSlack;
    uint8_t* bounce = mcc_open_mpi.memory(&job->plan, room);
    if (NULL == bounce)
        return FI_ENOMEM;  // the others' operation ends with the provider's error for a missing member
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    const bool am_root = job->plan.self == job->plan.whole.root;
    const int error =
        mcc_prepare(&convertor, am_root, job->plan.to.base, (size_t)job->plan.to.count, job->plan.to.type)
            ? run_segments(job, &convertor, bounce, room)
            : FI_EOTHER;
    OBJ_DESTRUCT(&convertor);
    return error;
}
