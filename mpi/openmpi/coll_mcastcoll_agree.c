// What all members of a communicator agree on while its group forms: the worst that happened to anybody.
//
// The words are messages to rank 0 and back, with a tag of their own. An allreduce would not do: a blocking
// one cannot be given up where a rank has died, and a non-blocking one of Open MPI's must be started in the
// same place of the communicator's order on all ranks, among those that MPI_Comm_idup starts from within Open
// MPI's progress.
//
// All members are known to have come when this is called, so that the time to answer is bounded. Who does not
// hear gets an error: what the others have heard is not known then, and no member may guess.

#include <stdlib.h>

#include "coll_mcastcoll.h"
#include "core/agree.h"
#include "ompi/constants.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

// Of Open MPI's own tags; those near it belong to its non-blocking collectives, 30,000 calls later.
enum { kAgreeTag = -30100 };

// Others may be in a join, which has its own bound, and this machine may be busy.
enum { kJoinTimes = 6 };

typedef struct {
    ompi_communicator_t* comm;
    double deadline_s;
    int size, open;
    long long mine;
    long long* words;  // of the other ranks
    ompi_request_t** requests;
} Round;

static int note(Round* r, int rc, ompi_request_t* request) {
    if (OMPI_SUCCESS == rc) r->requests[r->open++] = request;
    return rc;
}

static int send_word(Round* r, int to) {
    ompi_request_t* request = MPI_REQUEST_NULL;
    const int rc = MCA_PML_CALL(
        isend(&r->mine, 1, MPI_LONG_LONG, to, kAgreeTag, MCA_PML_BASE_SEND_STANDARD, r->comm, &request));
    return note(r, rc, request);
}

static int receive_word(Round* r, int from) {
    ompi_request_t* request = MPI_REQUEST_NULL;
    const int rc = MCA_PML_CALL(irecv(&r->words[from], 1, MPI_LONG_LONG, from, kAgreeTag, r->comm, &request));
    return note(r, rc, request);
}

static int wait_for_all(Round* r) {
    while (r->open > 0) {
        ompi_request_t** last = &r->requests[r->open - 1];
        while (!REQUEST_COMPLETE(*last)) {
            if (mcc_now_s() > r->deadline_s) return OMPI_ERR_TIMEOUT;
            opal_progress();
        }
        const int rc = (*last)->req_status.MPI_ERROR;
        (void)ompi_request_free(last);
        --r->open;
        if (MPI_SUCCESS != rc) return rc;
    }
    return OMPI_SUCCESS;
}

static int ask_all(Round* r) {
    int rc = OMPI_SUCCESS;
    for (int from = 1; from < r->size && OMPI_SUCCESS == rc; ++from) rc = receive_word(r, from);
    if (OMPI_SUCCESS == rc) rc = wait_for_all(r);
    for (int from = 1; from < r->size; ++from)
        if (r->words[from] > r->mine) r->mine = r->words[from];
    for (int to = 1; to < r->size && OMPI_SUCCESS == rc; ++to) rc = send_word(r, to);
    return OMPI_SUCCESS == rc ? wait_for_all(r) : rc;
}

static int answer(Round* r) {
    int rc = receive_word(r, 0);
    if (OMPI_SUCCESS == rc) rc = send_word(r, 0);
    if (OMPI_SUCCESS == rc) rc = wait_for_all(r);
    r->mine = r->words[0];
    return rc;
}

int mcc_agree(ompi_communicator_t* comm, int error, int* agreed_error, int* agreed_rank) {
    const int rank = ompi_comm_rank(comm), size = ompi_comm_size(comm);
    const double bound_s = kJoinTimes * 1e-3 * mca_coll_mcastcoll_component.join_timeout_ms;
    Round* r = calloc(1, sizeof(*r));
    long long* words = calloc((size_t)size, sizeof(*words));
    ompi_request_t** requests = calloc((size_t)size, sizeof(ompi_request_t*));
    int rc = OMPI_ERR_OUT_OF_RESOURCE;
    if (NULL != r && NULL != words && NULL != requests) {
        *r = (Round){.comm = comm,
                     .deadline_s = mcc_now_s() + bound_s,
                     .size = size,
                     .mine = mcc_word(error, rank),
                     .words = words,
                     .requests = requests};
        rc = 0 == rank ? ask_all(r) : answer(r);
        *agreed_error = mcc_word_error(r->mine);
        *agreed_rank = mcc_word_rank(r->mine);
        // What is under way still writes into it.
        if (r->open > 0) return rc;
    }
    free(requests);
    free(words);
    free(r);
    return rc;
}
