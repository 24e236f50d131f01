#include "coll_mcastcoll_tree.h"

#include <math.h>

#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

// Open MPI 4.1 and 5.0 use no tag from -2 to -6. -1 is MPI_ANY_TAG. Blocking collectives use the tags from -7
// down. Non-blocking collectives take the next lower tag for each call, from -27 or -34 down to half of
// INT_MIN. Even lower tags collide with the program's tags on networks with less than 32 bits per tag (pml
// ucx: 24, mtl ofi: 20).
enum { kMessageTag = -2, kNoticeTag = -3 };
_Static_assert(kNoticeTag > MCA_COLL_BASE_TAG_ALLGATHER, "Open MPI's collectives use these tags now");

// Members on the same host check each other. A check covers at most kMaxLooked processes, so that each
// member spends only some milliseconds of processor time per second, for any number of members.
enum { kMaxLooked = 8 };
static const double kLookEveryS = 0.1, kFarewellS = 2;

int mcc_tree_end(MccTree* t, int error, int lost) {
    if (0 == t->end.error) t->end = (MccHead){.error = error, .lost = lost};
    return t->end.error;
}

// Records that a member has left the tree, so that this member waits for no send to that member: some of Open
// MPI's layers do not return from a send to a process that no longer exists.
static void note_left(MccTree* t, int rank) {
    if (t->left_count < kMccChildren + 2) t->left[t->left_count++] = rank;
}

static bool is_there(const MccTree* t, int rank) {
    if (rank == t->end.lost) return false;
    for (int i = 0; i < t->left_count; ++i)
        if (rank == t->left[i]) return false;
    return true;
}

static int first_child(int64_t rank, int size) {
    const int64_t first = rank * kMccChildren + 1;
    return first < size ? (int)first : size;
}

static int count_children(int rank, int size) {
    const int below = size - first_child(rank, size);
    return below < kMccChildren ? below : kMccChildren;
}

static int send_tagged(MccTree* t, int to, int tag, const void* bytes, size_t count) {
    if (kMccMaxSends == t->send_count) return mcc_tree_end(t, FI_ENOMEM, -1);
    const int rc = MCA_PML_CALL(isend(bytes, count, MPI_BYTE, to, tag, MCA_PML_BASE_SEND_STANDARD, t->comm,
                                      &t->sends[t->send_count].request));
    if (OMPI_SUCCESS != rc) return mcc_tree_end(t, FI_EIO, to);
    t->sends[t->send_count++].to = to;
    return 0;
}

static int expect(MccTree* t, int from, int tag, void* room, size_t bytes, ompi_request_t** request) {
    *request = MPI_REQUEST_NULL;
    const int rc = MCA_PML_CALL(irecv(room, bytes, MPI_BYTE, from, tag, t->comm, request));
    return OMPI_SUCCESS == rc ? 0 : mcc_tree_end(t, FI_EIO, from);
}

static void send_notices(MccTree* t, int lost) {
    const int first = first_child(lost, t->size), count = count_children(lost, t->size);
    const int parent = (lost - 1) / kMccChildren;
    if (0 != lost && parent != t->rank) (void)send_tagged(t, parent, kNoticeTag, &t->end, sizeof(t->end));
    for (int child = first; child < first + count; ++child)
        if (child != t->rank) (void)send_tagged(t, child, kNoticeTag, &t->end, sizeof(t->end));
}

int mcc_tree_look(MccTree* t) {
    if (0 != t->end.error) return t->end.error;
    if (MPI_REQUEST_NULL != t->notices && REQUEST_COMPLETE(t->notices)) {
        note_left(t, t->notices->req_status.MPI_SOURCE);
        (void)ompi_request_free(&t->notices);
        return mcc_tree_end(t, t->notice.error, t->notice.lost);
    }
    const double now_s = mcc_now_s();
    if (now_s < t->look_at_s) return 0;
    t->look_at_s = now_s + kLookEveryS;
    for (size_t i = 0; i < kMaxLooked && i < t->host_peer_count; ++i) {
        const MccHostPeer* one = &t->host_peers[t->next_host_peer++ % t->host_peer_count];
        if (!mcc_process_gone(&one->process)) continue;
        (void)mcc_tree_end(t, FI_ECONNRESET, one->rank);
        send_notices(t, one->rank);
        return t->end.error;
    }
    return 0;
}

// Returns the number of completely received messages.
static int take_received(MccTree* t, int count) {
    int taken = 0;
    for (int i = 0; i < count; ++i) {
        if (MPI_REQUEST_NULL == t->receives[i] || !REQUEST_COMPLETE(t->receives[i])) continue;
        const int rc = t->receives[i]->req_status.MPI_ERROR, from = t->receives[i]->req_status.MPI_SOURCE;
        const MccHead* head = t->rooms[i];
        (void)ompi_request_free(&t->receives[i]);
        ++taken;
        if (MPI_SUCCESS != rc) (void)mcc_tree_end(t, FI_EIO, -1);
        if (MPI_SUCCESS != rc || 0 == head->error) continue;
        note_left(t, from);
        (void)mcc_tree_end(t, head->error, head->lost);
    }
    return taken;
}

static int await(MccTree* t, int count) {
    for (int open = count; open > 0;) {
        opal_progress();
        open -= take_received(t, count);
        if (0 != mcc_tree_look(t)) return t->end.error;
    }
    return 0;
}

int mcc_tree_receive_children(MccTree* t, const size_t* bytes) {
    for (int i = 0; i < t->children; ++i)
        if (0 != expect(t, t->first + i, kMessageTag, t->rooms[i], bytes[i], &t->receives[i]))
            return t->end.error;
    return await(t, t->children);
}

int mcc_tree_receive_parent(MccTree* t, void* room, size_t bytes) {
    t->rooms[0] = room;
    if (0 != expect(t, t->parent, kMessageTag, room, bytes, &t->receives[0])) return t->end.error;
    return await(t, 1);
}

int mcc_tree_send(MccTree* t, int to, const void* bytes, size_t count) {
    return send_tagged(t, to, kMessageTag, bytes, count);
}

int mcc_tree_send_children(MccTree* t, const void* bytes, size_t count) {
    for (int i = 0; i < t->children; ++i)
        if (0 != mcc_tree_send(t, t->first + i, bytes, count)) return t->end.error;
    return 0;
}

// Waits until the messages to all members that have not left are sent. False: the time is over, or a member
// is lost.
static bool drain(MccTree* t, double until_s) {
    for (;;) {
        int open = 0;
        for (int i = 0; i < t->send_count; ++i) {
            ompi_request_t** request = &t->sends[i].request;
            if (MPI_REQUEST_NULL == *request) continue;
            if (REQUEST_COMPLETE(*request))
                (void)ompi_request_free(request);
            else if (is_there(t, t->sends[i].to))
                ++open;
        }
        if (0 == open) return true;
        if (mcc_now_s() > until_s || (0 == t->end.error && 0 != mcc_tree_look(t))) return false;
        opal_progress();
    }
}

bool mcc_tree_drain(MccTree* t) {
    return drain(t, INFINITY);
}

void mcc_tree_leave(MccTree* t) {
    (void)take_received(t, kMccChildren);
    if (!t->ends_up && 0 != t->rank && is_there(t, t->parent))
        (void)mcc_tree_send(t, t->parent, &t->end, sizeof(t->end));
    for (int i = 0; i < t->children && !t->ends_down; ++i)
        if (t->first + i != t->end.lost) (void)mcc_tree_send(t, t->first + i, &t->end, sizeof(t->end));
    (void)drain(t, mcc_now_s() + kFarewellS);
}

void mcc_tree_open(MccTree* t, ompi_communicator_t* comm) {
    t->comm = comm;
    t->rank = ompi_comm_rank(comm);
    t->size = ompi_comm_size(comm);
    t->parent = (t->rank - 1) / kMccChildren;
    t->first = first_child(t->rank, t->size);
    t->children = count_children(t->rank, t->size);
    t->host_peer_count = mcc_peers_on_host(comm, &t->host_peers);
    t->next_host_peer = (size_t)t->rank;
    for (int i = 0; i < kMccChildren; ++i) t->receives[i] = MPI_REQUEST_NULL;
    (void)expect(t, MPI_ANY_SOURCE, kNoticeTag, &t->notice, sizeof(t->notice), &t->notices);
}

bool mcc_tree_close(MccTree* t) {
    bool over = MPI_REQUEST_NULL == t->notices;
    if (!over && OMPI_SUCCESS == ompi_request_cancel(t->notices)) {
        const double until_s = mcc_now_s() + kFarewellS;
        while (!REQUEST_COMPLETE(t->notices) && mcc_now_s() < until_s) opal_progress();
        over = REQUEST_COMPLETE(t->notices);
    }
    if (!over) return false;  // a late notice may still be written
    if (MPI_REQUEST_NULL != t->notices) (void)ompi_request_free(&t->notices);
    free(t->host_peers);
    return true;
}
