// The setup handshake. While a group forms, the members exchange their status (able to take part or not),
// their addresses, and the result of each step. Rank 0 collects these data up a tree and distributes the
// results down the tree:
//
//     1  up: the worst status of a subtree; down: the worst status of the tree, and rank 0's secret
//     2  up: the addresses of a subtree; down: the addresses of every member
//     3  agreement, before the join and after it: up: the worst result of a subtree; down: of the tree
//
// Either all members use the group or none, so each member waits for the result of each step. Open MPI's
// collectives cannot be used: a blocking collective does not return when a rank has died, and a non-blocking
// collective must start at the same place in the communicator's order on every rank. The collectives of
// MPI_Comm_idup, which start from Open MPI's progress, do not allow this.
//
// Each parent encrypts the secret for each child (core/secret.h).

#include "coll_mcastcoll_tree.h"

typedef struct {
    MccHead head;
    // [0]: lowest rank unable to take part. [1] and [2]: lowest digest of a provider's capabilities and
    // lowest complement of a digest, each with its rank in the low 32 bits. [3]: lowest rank that refuses to
    // join at present. [0] and [3] are the number of members if there is no such rank.
    uint64_t min[4];
    char reason[kMccReasonBytes];  // of the first rank unable to take part
} Status;

// Sent by a parent to one child.
typedef struct {
    Status worst;
    MccWrappedSecret secret;
} Outcome;

// The context of a wrapped secret (core/secret.h).
typedef struct {
    MccContextNumber context;
    int32_t parent, child;
} Edge;

typedef struct {
    MccHead head;
    int64_t worst;  // mcc_status()
} Vote;

// A handshake that ends early keeps its memory for messages that are still active.
typedef struct {
    MccTree tree;
    Status status, statuses[kMccChildren];
    Outcome outcome, outcomes[kMccChildren];
    Vote vote, votes[kMccChildren], voted;
    // Addresses of the subtree, of the children's subtrees, of every member.
    uint8_t *mine, *theirs[kMccChildren], *all;
} HandshakeState;

static void take_worst(Status* status, const Status* other) {
    if (other->min[0] < status->min[0]) memcpy(status->reason, other->reason, sizeof(status->reason));
    for (size_t i = 0; i < sizeof(status->min) / sizeof(status->min[0]); ++i)
        if (other->min[i] < status->min[i]) status->min[i] = other->min[i];
}

// Sets the reason, the same on every member, why there can be no group. Leaves `reason` unchanged if there
// can.
static void decide(const Status* outcome, int size, char* reason) {
    const MccComponent* c = &mcc_component;
    const uint64_t* min = outcome->min;
    if (min[0] < (uint64_t)size) {
        snprintf(reason, kMccReasonBytes, "rank %d: %.200s", (int)min[0], outcome->reason);
    } else if (0 != ((min[1] ^ ~min[2]) & ~(uint64_t)UINT32_MAX)) {
        snprintf(reason, kMccReasonBytes, "the providers of ranks %d and %d have different capabilities",
                 (int)(min[1] & UINT32_MAX), (int)(min[2] & UINT32_MAX));
    } else if ((size_t)size > c->fabric.max_members ||
               (size_t)size > (INT32_MAX - sizeof(MccHead)) / c->fabric.address_bytes) {
        snprintf(reason, kMccReasonBytes, "%d members, but the provider supports at most %zu", size,
                 c->fabric.max_members);
    }
}

static Edge edge_between(const HandshakeState* t, int parent, int child) {
    Edge edge;
    memset(&edge, 0, sizeof(edge));
    edge.context = mcc_context_number(t->tree.comm);
    edge.parent = parent;
    edge.child = child;
    return edge;
}

static bool unwrap_secret(HandshakeState* t, MccSecret* secret) {
    const Edge edge = edge_between(t, t->tree.parent, t->tree.rank);
    MccEdgeKey key;
    const bool taken = mcc_peers_edge(t->tree.comm, t->tree.parent, &key) &&
                       mcc_unwrap_secret(&key, &edge, sizeof(edge), &t->outcome.secret, secret);
    explicit_bzero(&key, sizeof(key));
    return taken;
}

// Wraps the secret for child `i`. On failure, the child receives zeros, which are no valid wrapped secret.
static void wrap_secret(HandshakeState* t, int i, const MccSecret* secret) {
    const Edge edge = edge_between(t, t->tree.rank, t->tree.first + i);
    MccEdgeKey key;
    if (mcc_peers_edge(t->tree.comm, t->tree.first + i, &key))
        (void)mcc_wrap_secret(&key, &edge, sizeof(edge), secret, &t->outcomes[i].secret);
    explicit_bzero(&key, sizeof(key));
}

// Computes the keys shared with parent and children while messages are under way. Each key is computed once,
// in about 100 us.
static void prepare_edges(const HandshakeState* t) {
    MccEdgeKey key;
    if (0 != t->tree.rank) (void)mcc_peers_edge(t->tree.comm, t->tree.parent, &key);
    for (int i = 0; i < t->tree.children; ++i) (void)mcc_peers_edge(t->tree.comm, t->tree.first + i, &key);
    explicit_bzero(&key, sizeof(key));
}

// Runs the first round. Afterwards every member has the same reason, or no reason and the secret.
static int exchange_statuses(HandshakeState* t, MccHandshake* handshake, char* reason) {
    size_t bytes[kMccChildren];
    for (int i = 0; i < t->tree.children; ++i)
        t->tree.rooms[i] = &t->statuses[i], bytes[i] = sizeof(t->statuses[i]);
    if (0 == t->tree.rank) prepare_edges(t);
    if (0 != mcc_tree_look(&t->tree) || 0 != mcc_tree_receive_children(&t->tree, bytes))
        return t->tree.end.error;
    for (int i = 0; i < t->tree.children; ++i) take_worst(&t->status, &t->statuses[i]);
    if (0 == t->tree.rank) {
        t->outcome.worst = t->status;
    } else {
        if (0 != mcc_tree_send(&t->tree, t->tree.parent, &t->status, sizeof(t->status)))
            return t->tree.end.error;
        prepare_edges(t);
        if (0 != mcc_tree_receive_parent(&t->tree, &t->outcome, sizeof(t->outcome))) return t->tree.end.error;
    }
    decide(&t->outcome.worst, t->tree.size, reason);
    if (t->outcome.worst.min[3] < (uint64_t)t->tree.size) handshake->unwilling = (int)t->outcome.worst.min[3];
    const bool forms = '\0' == reason[0] && handshake->unwilling < 0;
    if (forms && 0 != t->tree.rank) handshake->has_secret = unwrap_secret(t, &handshake->secret);
    for (int i = 0; i < t->tree.children; ++i) {
        t->outcomes[i].worst = t->outcome.worst;
        if (forms && handshake->has_secret) wrap_secret(t, i, &handshake->secret);
        if (0 != mcc_tree_send(&t->tree, t->tree.first + i, &t->outcomes[i], sizeof(t->outcomes[i])))
            return t->tree.end.error;
    }
    return 0;
}

// Copies a subtree's addresses, level by level, into `packed` or out of it. Returns the size in bytes.
// `packed` may be NULL to compute the size only.
static size_t move_subtree(int64_t top, int64_t size, size_t width, uint8_t* all, uint8_t* packed,
                           bool packs) {
    size_t bytes = 0;
    for (int64_t from = top, to = top; from < size;
         from = from * kMccChildren + 1, to = to * kMccChildren + kMccChildren) {
        const size_t level = (size_t)((to < size ? to : size - 1) - from + 1) * width;
        uint8_t* place = NULL != all ? all + (size_t)from * width : NULL;
        if (NULL != packed) memcpy(packs ? packed + bytes : place, packs ? place : packed + bytes, level);
        bytes += level;
    }
    return bytes;
}

static uint8_t* make_room(HandshakeState* t, size_t bytes) {
    uint8_t* room = calloc(1, sizeof(MccHead) + bytes);
    if (NULL == room) (void)mcc_tree_end(&t->tree, FI_ENOMEM, -1);
    return room;
}

static int exchange_addresses(HandshakeState* t, uint8_t* addresses, size_t width) {
    size_t bytes[kMccChildren];
    const size_t all = (size_t)t->tree.size * width,
                 own = move_subtree(t->tree.rank, t->tree.size, width, NULL, NULL, false);
    t->all = make_room(t, all);
    t->mine = make_room(t, own);
    for (int i = 0; i < t->tree.children; ++i) {
        const size_t theirs = move_subtree(t->tree.first + i, t->tree.size, width, NULL, NULL, false);
        t->tree.rooms[i] = t->theirs[i] = make_room(t, theirs);
        bytes[i] = sizeof(MccHead) + theirs;
    }
    if (0 != t->tree.end.error || 0 != mcc_tree_receive_children(&t->tree, bytes)) return t->tree.end.error;
    for (int i = 0; i < t->tree.children; ++i)
        (void)move_subtree(t->tree.first + i, t->tree.size, width, addresses, t->theirs[i] + sizeof(MccHead),
                           false);
    if (0 != t->tree.rank) {
        (void)move_subtree(t->tree.rank, t->tree.size, width, addresses, t->mine + sizeof(MccHead), true);
        if (0 != mcc_tree_send(&t->tree, t->tree.parent, t->mine, sizeof(MccHead) + own))
            return t->tree.end.error;
        if (0 != mcc_tree_receive_parent(&t->tree, t->all, sizeof(MccHead) + all)) return t->tree.end.error;
        memcpy(addresses, t->all + sizeof(MccHead), all);
    } else {
        memcpy(t->all + sizeof(MccHead), addresses, all);
    }
    return mcc_tree_send_children(&t->tree, t->all, sizeof(MccHead) + all);
}

// Ends the handshake and returns `error`.
static int leave(MccHandshake* handshake, int error, int* lost) {
    HandshakeState* t = handshake->state;
    handshake->state = NULL;
    if (0 != error) {
        *lost = t->tree.end.lost;
        mcc_tree_leave(&t->tree);
    } else if (mcc_tree_close(&t->tree)) {
        for (int i = 0; i < t->tree.children; ++i) free(t->theirs[i]);
        free(t->mine);
        free(t->all);
        free(t);
    }
    return error;
}

int mcc_handshake_begin(ompi_communicator_t* comm, bool wants, MccHandshake* handshake, char* reason,
                        int* lost) {
    const MccComponent* c = &mcc_component;
    const size_t width = c->fabric.address_bytes;
    const uint64_t kRank = UINT32_MAX;
    *lost = handshake->unwilling = -1;
    HandshakeState* t = handshake->state = calloc(1, sizeof(*t));
    if (NULL == t) return FI_ENOMEM;
    mcc_tree_open(&t->tree, comm);
    const uint64_t rank = (uint64_t)t->tree.rank, size = (uint64_t)t->tree.size;
    const uint64_t capabilities = c->opened ? mcc_capabilities_digest() : 0;
    handshake->has_secret = 0 == t->tree.rank && mcc_draw_secret(&handshake->secret);
    if (c->opened) handshake->addresses = malloc((size_t)t->tree.size * width);
    const bool ready = NULL != handshake->addresses && (0 != t->tree.rank || handshake->has_secret);
    snprintf(t->status.reason, sizeof(t->status.reason), "%.200s",
             c->opened ? "no memory for the members' addresses, or no random numbers" : c->reason);
    t->status.min[0] = ready ? size : rank;
    t->status.min[1] = (capabilities & ~kRank) | rank;
    t->status.min[2] = (~capabilities & ~kRank) | rank;
    t->status.min[3] = wants ? size : rank;
    int error = 0 != t->tree.end.error ? t->tree.end.error : exchange_statuses(t, handshake, reason);
    if (0 != error) reason[0] = '\0';
    if (0 == error && '\0' == reason[0] && handshake->unwilling < 0) {
        memcpy(handshake->addresses + (size_t)t->tree.rank * width, c->fabric.address, width);
        error = exchange_addresses(t, handshake->addresses, width);
        return 0 == error ? 0 : leave(handshake, error, lost);
    }
    if (0 == error) t->tree.ends_up = t->tree.ends_down = true;
    if (0 == error && !mcc_tree_drain(&t->tree)) error = t->tree.end.error;
    return leave(handshake, error, lost);
}

static int exchange_votes(HandshakeState* t, MccProbe* probe) {
    size_t bytes[kMccChildren];
    for (int i = 0; i < t->tree.children; ++i)
        t->tree.rooms[i] = &t->votes[i], bytes[i] = sizeof(t->votes[i]);
    if (0 != mcc_tree_look(&t->tree) || 0 != mcc_tree_receive_children(&t->tree, bytes))
        return t->tree.end.error;
    for (int i = 0; i < t->tree.children; ++i)
        if (t->votes[i].worst > t->vote.worst) t->vote.worst = t->votes[i].worst;
    if (0 == t->tree.rank) {
        // Every member has sent its datagrams by now.
        const int missing = 0 == t->vote.worst ? mcc_probe_missing(probe) : -1;
        if (missing >= 0) t->vote.worst = mcc_status(FI_EHOSTUNREACH, missing);
        t->voted = t->vote;
    } else {
        if (0 != mcc_tree_send(&t->tree, t->tree.parent, &t->vote, sizeof(t->vote))) return t->tree.end.error;
        if (0 != mcc_tree_receive_parent(&t->tree, &t->voted, sizeof(t->voted))) return t->tree.end.error;
    }
    return mcc_tree_send_children(&t->tree, &t->voted, sizeof(t->voted));
}

int mcc_handshake_agree(MccHandshake* handshake, int error, bool last, MccAgreed* agreed, int* lost) {
    HandshakeState* t = handshake->state;
    *lost = -1;
    t->vote = (Vote){.worst = mcc_status(error, t->tree.rank)};
    int rc = exchange_votes(t, &handshake->probe);
    *agreed = (MccAgreed){.error = mcc_status_error(t->voted.worst), .rank = mcc_status_rank(t->voted.worst)};
    last = last || 0 != agreed->error;
    if (0 == rc && last) t->tree.ends_up = t->tree.ends_down = true;
    if (0 == rc && !mcc_tree_drain(&t->tree)) rc = t->tree.end.error;
    return 0 != rc || last ? leave(handshake, rc, lost) : 0;
}
