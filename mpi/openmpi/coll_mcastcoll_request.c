// Non-blocking collectives as Open MPI requests, completed by the component's progress.
//
// The start of a call posts an operation per segment. Requests for which the provider has no room wait in the
// group's backlog, in order; a blocking call first waits until the backlog is empty. So an I... call never
// waits for other ranks, with a single exception: the first operation of a kind on a group waits until the
// provider accepts or refuses the operation.
//
// Ownership: a request belongs to the program, which frees the request after completion. Until then, slots of
// operations or the group's backlog refer to the request. A group stays until its requests are complete, even
// if the communicator is freed. The component's lock guards all lists. Requests are completed without the
// lock, because completion may call back into MPI.

#include "coll_mcastcoll.h"

// MPI_I... stores references to datatypes and operators behind the common part of a request: four pointers in
// ompi_coll_base_nbc_request_t, whose header cannot be included, because it includes a header that Debian
// does not ship. A few more are reserved here, in case a later release stores more.
enum { kPointersOfMpi = 8 };

typedef struct MccRequest {
    ompi_request_t super;
    void* of_mpi[kPointersOfMpi];
    MccCall call;
    MccGroup* group;
    size_t offset;   // elements posted so far
    unsigned parts;  // operations in progress
    bool all_posted;
    int error;  // positive FI_E code
    struct MccRequest* next;
} MccRequest;
OBJ_CLASS_DECLARATION(MccRequest);

// A posted operation. The provider may hold the operation's address after the operation was given up, so
// slots are allocated in permanent chunks. A context belongs to this component if it lies in a chunk.
typedef struct MccSlot {
    struct fi_context2 context;  // first
    MccRequest* request;         // the request to which the operation belongs
    struct MccSlot* next_free;
} MccSlot;

enum { kSlots = 64 };
typedef struct MccChunk {
    struct MccChunk* next;
    MccSlot slots[kSlots];
} MccChunk;

static int request_free(ompi_request_t** request) {
    MccRequest* r = (MccRequest*)*request;
    // MPI forbids MPI_Request_free for active collectives.
    if (!REQUEST_COMPLETE(&r->super)) return MPI_ERR_REQUEST;
    OMPI_REQUEST_FINI(&r->super);
    OBJ_RELEASE(r);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static void request_construct(MccRequest* r) {
    OMPI_REQUEST_INIT(&r->super, false);
    r->super.req_type = OMPI_REQUEST_COLL;
    r->super.req_state = OMPI_REQUEST_ACTIVE;
    r->super.req_free = request_free;
    r->super.req_cancel = NULL;
    r->super.req_status = (ompi_status_public_t){.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};
    memset((char*)r + sizeof(r->super), 0, sizeof(*r) - sizeof(r->super));
}
OBJ_CLASS_INSTANCE(MccRequest, ompi_request_t, request_construct, NULL);

static MccSlot* take_slot(MccRequest* r) {
    MccComponent* c = &mcc_component;
    if (NULL == c->free_slots) {
        MccChunk* chunk = calloc(1, sizeof(*chunk));
        if (NULL == chunk) return NULL;
        chunk->next = c->chunks;
        c->chunks = chunk;
        for (int i = 0; i < kSlots; ++i) {
            chunk->slots[i].next_free = c->free_slots;
            c->free_slots = &chunk->slots[i];
        }
    }
    MccSlot* slot = c->free_slots;
    c->free_slots = slot->next_free;
    slot->request = r;
    return slot;
}

static void give_slot(MccSlot* slot) {
    MccComponent* c = &mcc_component;
    slot->request = NULL;
    slot->next_free = c->free_slots;
    c->free_slots = slot;
}

static MccSlot* find_slot(const void* context) {
    const uintptr_t at = (uintptr_t)context;
    for (MccChunk* chunk = mcc_component.chunks; NULL != chunk; chunk = chunk->next) {
        const uintptr_t begin = (uintptr_t)chunk->slots;
        if (at < begin || at >= begin + sizeof(chunk->slots) || 0 != (at - begin) % sizeof(MccSlot)) continue;
        MccSlot* slot = &chunk->slots[(at - begin) / sizeof(MccSlot)];
        return NULL != slot->request ? slot : NULL;
    }
    return NULL;
}

void mcc_slots_free(void) {
    MccComponent* c = &mcc_component;
    for (MccChunk* next; NULL != c->chunks; c->chunks = next) {
        next = c->chunks->next;
        free(c->chunks);
    }
    c->free_slots = NULL;
}

static void append(MccRequest** first, MccRequest** last, MccRequest* r) {
    r->next = NULL;
    *(NULL == *first ? first : &(*last)->next) = r;
    *last = r;
}

// Lists the request for completion if every operation has ended.
static void check_finished(MccRequest* r) {
    MccComponent* c = &mcc_component;
    if (!r->all_posted || r->parts > 0) return;
    append(&c->finished, &c->finished_last, r);
    (void)atomic_fetch_add(&c->finished_count, 1);
}

bool mcc_slot_ended(const void* context, int error, const char* text) {
    MccSlot* slot = find_slot(context);
    if (NULL == slot) return false;
    MccRequest* r = slot->request;
    if (0 != error && 0 == r->error) {
        r->error = error;
        snprintf(r->group->operation.text, sizeof(r->group->operation.text), "%s", text);
    }
    give_slot(slot);
    --r->parts;
    check_finished(r);
    return true;
}

// Posts the request's operations. Returns 0, FI_EAGAIN if the provider has no room, or another error of the
// provider, after which nothing more is posted.
static int post_parts(MccRequest* r) {
    MccGroup* g = r->group;
    while (!r->all_posted) {
        MccSlot* slot = take_slot(r);
        if (NULL == slot) return FI_EAGAIN;
        const struct fi_mcastcoll_request part = mcc_part(&r->call, r->offset);
        const ssize_t rc = mcc_post(g, &part, &slot->context);
        if (0 != rc) {
            give_slot(slot);
            return (int)-rc;
        }
        g->known |= 1U << part.collective;
        ++r->parts;
        r->offset += part.count;
        r->all_posted = r->offset >= r->call.prepared.whole.count;
    }
    return 0;
}

static void end_early(MccRequest* r, int error) {
    if (0 == r->error) r->error = error;
    r->all_posted = true;
    check_finished(r);
}

void mcc_post_backlog(void) {
    MccComponent* c = &mcc_component;
    for (MccJoin* j = c->fabric.joins; NULL != j; j = j->next) {
        MccGroup* g = (MccGroup*)j;
        while (NULL != g->first) {
            MccRequest* r = g->first;
            const int error = 0 != c->broken ? c->broken : post_parts(r);
            if (FI_EAGAIN == error) break;
            g->first = r->next;
            (void)atomic_fetch_sub(&g->waiting, 1);
            (void)atomic_fetch_sub(&c->backlog, 1);
            if (0 != error) end_early(r, error);
        }
    }
}

static void wait_in_backlog(MccRequest* r) {
    MccGroup* g = r->group;
    append(&g->first, &g->last, r);
    (void)atomic_fetch_add(&g->waiting, 1);
    (void)atomic_fetch_add(&mcc_component.backlog, 1);
}

// Begins a request. Returns 0 if the request is active or waits for room, or an error if it has not begun.
static int begin(MccRequest* r) {
    MccComponent* c = &mcc_component;
    MccGroup* g = r->group;
    const unsigned bit = 1U << r->call.prepared.whole.collective;
    for (;;) {
        pthread_mutex_lock(&c->fabric.lock);
        int error = NULL != g->first ? FI_EAGAIN : post_parts(r);
        const bool wait = FI_EAGAIN == error && (0 != (g->known & bit) || r->offset > 0);
        if (wait) wait_in_backlog(r);
        const bool under_way = 0 == error || wait || r->offset > 0;
        if (under_way) {
            if (0 != error && !wait) end_early(r, error);
            ++g->join.users;
            (void)atomic_fetch_add(&c->open, 1);
        } else if (FI_ENOSYS == error) {
            g->join.refused |= bit;
        }
        pthread_mutex_unlock(&c->fabric.lock);
        if (under_way) return 0;
        if (0 != c->broken) return c->broken;
        if (FI_EAGAIN != error) return error;
        opal_progress();
    }
}

// MPI requires counts and displacements to stay unchanged until the request is complete. Some programs free
// these arrays earlier, for example mpi4py, since other implementations read the arrays only during the call.
static bool keep_vectors(MccCall* call) {
    if (kMccUnpackBlocks != call->prepared.afterwards) return true;
    const size_t bytes = call->prepared.members * sizeof(int);
    call->vectors = malloc(2 * bytes);
    if (NULL == call->vectors) return false;
    call->prepared.counts.at = memcpy(call->vectors, call->prepared.counts.at, bytes);
    call->prepared.places.at =
        memcpy(call->vectors + call->prepared.members, call->prepared.places.at, bytes);
    return true;
}

bool mcc_start_call(MccCall* call, MccRoute route, ompi_request_t** request) {
    if (kMccPrevious == route) return false;
    *request = &ompi_request_empty;
    if (kMccOver == route) return true;
    if (mcc_unpacks_derived(call)) OBJ_RETAIN(call->prepared.to.type);
    MccRequest* r = keep_vectors(call) ? OBJ_NEW(MccRequest) : NULL;
    int error = FI_ENOMEM;
    if (NULL != r) {
        r->call = *call;
        r->group = call->module->group;
        r->super.req_mpi_object.comm = call->comm;
        *request = &r->super;
        error = begin(r);
        if (0 == error) return true;
        OMPI_REQUEST_FINI(&r->super);
        OBJ_RELEASE(r);
        *request = &ompi_request_empty;
    }
    (void)mcc_finish_call(call, false);
    if (FI_ENOSYS == error) return false;
    call->rc = mcc_fail(call->module->group, call, error);
    return true;
}

// Completes a request. Uses neither communicator nor module, which may be freed.
static void complete(MccRequest* r) {
    MccComponent* c = &mcc_component;
    MccGroup* g = r->group;
    if (!mcc_finish_call(&r->call, 0 == r->error) && 0 == r->error) r->error = FI_EOTHER;
    r->super.req_status.MPI_ERROR = 0 == r->error ? MPI_SUCCESS : mcc_fail(g, &r->call, r->error);
    pthread_mutex_lock(&c->fabric.lock);
    --g->join.users;
    (void)atomic_fetch_sub(&c->open, 1);
    pthread_mutex_unlock(&c->fabric.lock);
    (void)ompi_request_complete(&r->super, true);  // the program may free the request from here on
}

int mcc_complete_requests(void) {
    MccComponent* c = &mcc_component;
    if (0 == atomic_load(&c->finished_count)) return 0;
    pthread_mutex_lock(&c->fabric.lock);
    MccRequest* r = c->finished;
    c->finished = c->finished_last = NULL;
    atomic_store(&c->finished_count, 0);
    pthread_mutex_unlock(&c->fabric.lock);
    int count = 0;
    for (MccRequest* next; NULL != r; r = next) {
        next = r->next;
        complete(r);
        ++count;
    }
    return count;
}
