// MPI_Bcast and MPI_Barrier.
//
// Who serves a call is decided on what MPI makes equal on all ranks: the communicator's state and the packed
// size (count and datatype may differ as long as the signature is the same). Messages are cut into segments
// by bytes of the packed form, so a rank with a contiguous buffer and one with a derived datatype do the same
// operations.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_mcastcoll.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_convertor.h"

// The convertor stops between basic elements; this much more than a segment always completes the segment.
enum { kPackSlack = 4096 };

static int mpi_code(int error) {
    switch (error) {
        case FI_ENOMEM:
            return OMPI_ERR_OUT_OF_RESOURCE;
        case FI_ETRUNC:
            return MPI_ERR_TRUNCATE;
#ifdef MPI_ERR_PROC_FAILED
        case FI_ECONNRESET:
        case FI_ENOTCONN:
        case FI_EHOSTUNREACH:
        case FI_ETIMEDOUT:
            return MPI_ERR_PROC_FAILED;
#endif
        default:
            return MPI_ERR_OTHER;
    }
}

static int fail(MccModule* m, ompi_communicator_t* comm, const char* what, int error, const char* detail) {
    const bool more = NULL != detail && '\0' != detail[0];
    m->state = mca_coll_mcastcoll_component.disable_on_error ? kMccLeft : kMccBroken;
    opal_output(0, "coll/mcastcoll: %s failed on communicator %s, rank %d of %d: %s%s%s%s", what,
                comm->c_name, ompi_comm_rank(comm), ompi_comm_size(comm), fi_strerror(error),
                more ? " (" : "", more ? detail : "", more ? ")" : "");
    return mpi_code(error);
}

// One operation from start to end: buffer NULL and bytes 0 with root < 0 is the barrier. Returns a positive
// FI_E code.
static int run_operation(MccGroup* g, void* buffer, size_t bytes, int root) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    MccOperation* op = &g->operation;
    ssize_t rc;
    (void)atomic_fetch_add(&c->waiting, 1);
    op->done = false;
    op->error = 0;
    op->text[0] = '\0';
    for (;;) {
        OPAL_THREAD_LOCK(&c->lock);
        rc = root < 0 ? fi_barrier(c->fabric.ep, g->address, &op->context)
                      : fi_broadcast(c->fabric.ep, buffer, bytes, NULL, g->address, (fi_addr_t)root, FI_UINT8,
                                     0, &op->context);
        OPAL_THREAD_UNLOCK(&c->lock);
        if (-FI_EAGAIN != rc || 0 != c->fabric.broken) break;
        mcc_wait_step();
    }
    int error = (int)-rc;
    while (0 == error && !op->done && 0 == c->fabric.broken) mcc_wait_step();
    (void)atomic_fetch_sub(&c->waiting, 1);
    if (0 != error) return error;
    return op->done ? op->error : c->fabric.broken;
}

static int run_contiguous(MccGroup* g, uint8_t* buffer, size_t bytes, int root) {
    const size_t segment = mca_coll_mcastcoll_component.segment;
    int error = 0;
    for (size_t offset = 0; offset < bytes && 0 == error; offset += segment) {
        const size_t part = bytes - offset < segment ? bytes - offset : segment;
        error = run_operation(g, buffer + offset, part, root);
    }
    return error;
}

// Adds packed bytes to the bounce buffer until it is full or the message ends. False if the convertor fails.
static bool pack_more(opal_convertor_t* convertor, uint8_t* bounce, size_t room, size_t* filled,
                      size_t wanted) {
    while (*filled < wanted) {
        struct iovec iov = {.iov_base = bounce + *filled, .iov_len = room - *filled};
        uint32_t iov_count = 1;
        size_t packed = iov.iov_len;
        if (opal_convertor_pack(convertor, &iov, &iov_count, &packed) < 0 || 0 == packed) return false;
        *filled += packed;
    }
    return true;
}

static bool unpack_part(opal_convertor_t* convertor, uint8_t* bounce, size_t bytes) {
    size_t offset = 0;
    while (offset < bytes) {
        struct iovec iov = {.iov_base = bounce + offset, .iov_len = bytes - offset};
        uint32_t iov_count = 1;
        size_t unpacked = iov.iov_len;
        if (opal_convertor_unpack(convertor, &iov, &iov_count, &unpacked) < 0 || 0 == unpacked) return false;
        offset += unpacked;
    }
    return true;
}

static int run_derived(MccGroup* g, opal_convertor_t* convertor, uint8_t* bounce, size_t bytes, bool am_root,
                       int root) {
    const size_t segment = mca_coll_mcastcoll_component.segment;
    const size_t room = (bytes < segment ? bytes : segment) + kPackSlack;
    size_t filled = 0;
    int error = 0;
    for (size_t offset = 0; offset < bytes && 0 == error; offset += segment) {
        const size_t part = bytes - offset < segment ? bytes - offset : segment;
        if (am_root && !pack_more(convertor, bounce, room, &filled, part)) return FI_EOTHER;
        error = run_operation(g, bounce, part, root);
        if (0 != error) break;
        if (!am_root && !unpack_part(convertor, bounce, part)) return FI_EOTHER;
        if (am_root) {
            filled -= part;
            memmove(bounce, bounce + part, filled);
        }
    }
    return error;
}

// Keeps the buffer for the next call unless it is large.
static uint8_t* take_bounce(MccModule* m, size_t bytes) {
    if (m->bounce_bytes < bytes) {
        free(m->bounce);
        m->bounce = malloc(bytes);
        m->bounce_bytes = NULL != m->bounce ? bytes : 0;
    }
    return m->bounce;
}

static int bcast_derived(MccModule* m, void* buffer, int count, ompi_datatype_t* datatype, size_t bytes,
                         int root, ompi_communicator_t* comm) {
    const size_t segment = mca_coll_mcastcoll_component.segment;
    const bool am_root = ompi_comm_rank(comm) == root;
    uint8_t* bounce = take_bounce(m, (bytes < segment ? bytes : segment) + kPackSlack);
    if (NULL == bounce)
        return FI_ENOMEM;  // the others' operation ends with the provider's error for a missing member
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    const int rc = am_root
                       ? opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &datatype->super,
                                                                  (size_t)count, buffer, 0, &convertor)
                       : opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &datatype->super,
                                                                  (size_t)count, buffer, 0, &convertor);
    const int error =
        OPAL_SUCCESS == rc ? run_derived(m->group, &convertor, bounce, bytes, am_root, root) : FI_EOTHER;
    OBJ_DESTRUCT(&convertor);
    if (m->bounce_bytes > ((size_t)1 << 20)) {
        free(m->bounce);
        m->bounce = NULL;
        m->bounce_bytes = 0;
    }
    return error;
}

int mcc_bcast(void* buffer, int count, ompi_datatype_t* datatype, int root, ompi_communicator_t* comm,
              mca_coll_base_module_t* module) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    MccModule* m = (MccModule*)module;
    size_t size = 0;
    ompi_datatype_type_size(datatype, &size);
    const size_t bytes = size * (size_t)count;
    if (0 == bytes) return OMPI_SUCCESS;  // on every rank, by the signature
    const bool in_range = bytes >= c->bcast_min_message && bytes <= c->max_message;
    if (in_range && kMccFresh == m->state) {
        const int rc = mcc_group_setup(m, comm);
        if (OMPI_SUCCESS != rc) return rc;
    }
    if (!in_range || kMccLeft == m->state) {
        return m->previous_bcast(buffer, count, datatype, root, comm, m->previous_bcast_module);
    }
    if (kMccBroken == m->state) return MPI_ERR_OTHER;

    int error;
    if (ompi_datatype_is_contiguous_memory_layout(datatype, count)) {
        ptrdiff_t gap = 0;
        (void)opal_datatype_span(&datatype->super, (size_t)count, &gap);
        error = run_contiguous(m->group, (uint8_t*)buffer + gap, bytes, root);
    } else {
        error = bcast_derived(m, buffer, count, datatype, bytes, root, comm);
    }
    if (0 == error) return OMPI_SUCCESS;
    char what[80];
    snprintf(what, sizeof(what), "broadcast of %zu bytes from rank %d", bytes, root);
    return fail(m, comm, what, error, m->group->operation.text);
}

int mcc_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    MccModule* m = (MccModule*)module;
    if (kMccFresh == m->state) {
        const int rc = mcc_group_setup(m, comm);
        if (OMPI_SUCCESS != rc) return rc;
    }
    if (kMccLeft == m->state) return m->previous_barrier(comm, m->previous_barrier_module);
    if (kMccBroken == m->state) return MPI_ERR_OTHER;
    const int error = run_operation(m->group, NULL, 0, -1);
    if (0 == error) return OMPI_SUCCESS;
    return fail(m, comm, "barrier", error, m->group->operation.text);
}
