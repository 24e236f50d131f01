// A communicator's group, formed while nobody waits for it.
//
// Why it exists: a non-blocking collective must not wait for other ranks, and Open MPI itself starts some
// from within its progress (MPI_Comm_dup does), where waiting would never end. So the steps of
// coll_mcastcoll_group.c are taken one by one from Open MPI's progress, and the operations that have been
// started wait in the group's backlog. The agreements are messages to rank 0 and back, with a tag of their
// own: another component's collective would have to be started in the same place of the communicator's
// order on all ranks, which only the first could be.
//
// There is no timeout, since ranks may compute for as long as they like between two calls. An operation that
// waits cannot be given to another component any more, for the same reason of order; if the group does not
// form, it fails.
//
// Who owns what: a join holds references to its module and communicator until it is over. It is in the
// component's list, or taken out by the one thread that moves it.

#include <stdlib.h>

#include "coll_mcastcoll.h"
#include "ompi/constants.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

// Of Open MPI's own tags; those near it belong to its non-blocking collectives, 30,000 calls later.
enum { kJoinTag = -30100 };

typedef enum { kFirstWord, kProvider, kLastWord, kOver } JoinStage;

typedef struct MccJoin {
    struct MccJoin* next;
    MccModule* module;
    ompi_communicator_t* comm;
    MccGroup* group;
    JoinStage stage;
    bool answering;    // rank 0 has heard all
    bool cut_off;      // a message could not even be started
    int error, who;    // what was agreed on
    long long worst;   // the error, and in the lower half its rank and one
    long long* words;  // of the other ranks
    ompi_request_t** requests;
    int open;
} MccJoin;

static void put_request(MccJoin* j, int rc, ompi_request_t* request) {
    if (OMPI_SUCCESS == rc) {
        j->requests[j->open++] = request;
    } else {
        j->cut_off = true;
    }
}

static void send_word(MccJoin* j, int to) {
    ompi_request_t* request = MPI_REQUEST_NULL;
    const int rc = MCA_PML_CALL(
        isend(&j->worst, 1, MPI_LONG_LONG, to, kJoinTag, MCA_PML_BASE_SEND_STANDARD, j->comm, &request));
    put_request(j, rc, request);
}

static void receive_word(MccJoin* j, long long* word, int from) {
    ompi_request_t* request = MPI_REQUEST_NULL;
    const int rc = MCA_PML_CALL(irecv(word, 1, MPI_LONG_LONG, from, kJoinTag, j->comm, &request));
    put_request(j, rc, request);
}

static void begin_word(MccJoin* j, int error) {
    const int rank = ompi_comm_rank(j->comm), size = ompi_comm_size(j->comm);
    j->worst = 0 != error ? (long long)error << 32 | (unsigned)(rank + 1) : 0;
    j->answering = false;
    j->open = 0;
    if (0 == rank) {
        for (int from = 1; from < size; ++from) receive_word(j, &j->words[from], from);
    } else {
        send_word(j, 0);
        receive_word(j, &j->words[0], 0);
    }
}

static bool all_done(MccJoin* j) {
    while (j->open > 0 && REQUEST_COMPLETE(j->requests[j->open - 1])) {
        (void)ompi_request_free(&j->requests[j->open - 1]);
        --j->open;
    }
    return 0 == j->open;
}

// Everybody knows the worst that happened to anybody.
static bool word_is_out(MccJoin* j) {
    const int rank = ompi_comm_rank(j->comm), size = ompi_comm_size(j->comm);
    j->error = FI_EIO;
    j->who = rank;
    if (j->cut_off) return true;
    if (!all_done(j)) return false;
    if (0 == rank && !j->answering) {
        for (int from = 1; from < size; ++from)
            if (j->words[from] > j->worst) j->worst = j->words[from];
        j->answering = true;
        for (int to = 1; to < size; ++to) send_word(j, to);
        if (j->cut_off) return true;
        if (!all_done(j)) return false;
    }
    if (0 != rank) j->worst = j->words[0];
    j->error = (int)(j->worst >> 32);
    j->who = (int)(j->worst & 0xffffffff) - 1;
    return true;
}

// True when the provider's part is over, with an error or without.
static bool is_joined(MccGroup* g, int* error) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    opal_mutex_lock(&c->lock);
    int rc = 0;
    if (NULL == g->mc) {
        g->joined = false;
        rc = fi_join_collective(c->fabric.ep, g->address, g->set, 0, &g->mc, &g->join.context);
        if (0 != rc) g->mc = NULL;
    }
    mcc_fabric_poll_events();
    *error = 0 != c->broken ? c->broken : 0 != rc && -FI_EAGAIN != rc ? -rc : g->join.error;
    const bool over = g->join.done || 0 != *error;
    if (over) g->joined = true;
    if (over && 0 == *error) mcc_group_ready(g);
    opal_mutex_unlock(&c->lock);
    return over;
}

static void conclude(MccJoin* j, const char* step) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    MccGroup* g = j->group;
    opal_mutex_lock(&c->lock);
    g->forming = false;
    if (0 == j->error) {
        j->module->sites = 0 != g->sites ? g->sites : 1;
        j->module->state = kMccJoined;
        mcc_post_backlog();
    } else {
        mcc_drop_backlog(g, j->error);
        j->module->state = kMccLeft;
    }
    opal_mutex_unlock(&c->lock);
    mcc_group_report(j->comm, j->module, step, j->who, j->error);
    j->stage = kOver;
}

static void move(MccJoin* j) {
    int error = 0;
    if (kFirstWord == j->stage && word_is_out(j)) {
        j->stage = kProvider;
        if (0 != j->error) conclude(j, "address vector");
    }
    if (kProvider == j->stage && is_joined(j->group, &error)) {
        begin_word(j, error);
        j->stage = kLastWord;
    }
    if (kLastWord == j->stage && word_is_out(j)) conclude(j, "join");
}

static void free_join(MccJoin* j) {
    OBJ_RELEASE(j->module);
    OBJ_RELEASE(j->comm);
    if (j->open > 0) return;  // cut off: what is under way still writes into it
    free(j->words);
    free(j->requests);
    free(j);
}

static void put(MccJoin* j) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    opal_mutex_lock(&c->lock);
    j->next = c->joins;
    c->joins = j;
    opal_mutex_unlock(&c->lock);
}

int mcc_join_begin(MccModule* m, ompi_communicator_t* comm) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const size_t size = (size_t)ompi_comm_size(comm);
    MccJoin* j = calloc(1, sizeof(*j));
    if (NULL == j) return OMPI_ERR_OUT_OF_RESOURCE;
    int error = 0;
    j->words = calloc(size, sizeof(*j->words));
    j->requests = calloc(size + 1, sizeof(ompi_request_t*));
    opal_mutex_lock(&c->lock);
    if (NULL != j->words && NULL != j->requests) j->group = mcc_group_form(comm, &error);
    if (NULL != j->group) j->group->forming = true;
    opal_mutex_unlock(&c->lock);
    if (NULL == j->group) {
        free(j->words);
        free(j->requests);
        free(j);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    j->module = m;
    j->comm = comm;
    OBJ_RETAIN(m);
    OBJ_RETAIN(comm);
    m->group = j->group;
    m->state = kMccJoining;
    begin_word(j, error);
    (void)atomic_fetch_add(&c->join_count, 1);
    put(j);
    return OMPI_SUCCESS;
}

// Messages may call Open MPI's progress, hence this: what is being moved is in nobody's list.
void mcc_join_progress(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    opal_mutex_lock(&c->lock);
    MccJoin* list = c->joins;
    c->joins = NULL;
    opal_mutex_unlock(&c->lock);
    for (MccJoin* next; NULL != list; list = next) {
        next = list->next;
        move(list);
        if (kOver != list->stage) {
            put(list);
            continue;
        }
        (void)atomic_fetch_sub(&c->join_count, 1);
        free_join(list);
    }
}
