// What members tell each other while a group forms: whether all of them can take part, where they are, and
// how each step ended. Rank 0 hears it all up a tree, and tells all down the tree:
//
//     1  up: the worst of each member's word; down: what that is, and rank 0's secret
//     2  up: the addresses of a subtree; down: those of all members
//     3  after a step, before the join and after it: up: the worst result of a subtree; down: of all members
//
// Either all members use the group or none, so that each member waits for the result of each step. Open MPI's
// collectives cannot do this: a blocking one cannot be left when a rank has died, and a non-blocking one must
// start at the same place of the communicator's order on all ranks, which MPI_Comm_idup's, started from Open
// MPI's progress, do not allow.
//
// Each parent encrypts the secret for each of its children (core/secret.h).
//
// A member may compute for hours before it comes, so there is no bound in time. But a dead one never comes:
// who waits looks whether the members on its own host live. A member that finds one gone tells those who wait
// for that one, its parent and its children, by a message that they expect from anybody; and whoever hears of
// a death leaves with an error, and says so to its own parent and children instead of what they wait for. So
// a death is heard of by all in bounded time as long as one member on the dead one's host lives and comes.

#include <math.h>

#include "coll_mcastcoll.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

// Open MPI 4.1 and 5.0 use no tag from -2 to -6: -1 is MPI_ANY_TAG, from -7 down come its blocking
// collectives, and from -27 or -34 down to half of INT_MIN its non-blocking ones, which take the next lower
// tag for each call. Tags beyond those are for the program where a network has less than 32 bits for them
// (pml ucx: 24, mtl ofi: 20).
enum { kMeetingTag = -2, kObituaryTag = -3 };
_Static_assert(kObituaryTag > MCA_COLL_BASE_TAG_ALLGATHER, "Open MPI's tags are others now");
enum { kMostChildren = 32, kMostSaid = 512 };
// Of the processes of a host at once: all look, so it is some milliseconds of processor time in a second for
// each, however many there are.
enum { kMostLooked = 8 };
static const double kLookEveryS = 0.1, kFarewellS = 2;

// What every message begins with; it is all of one that ends the meeting.
typedef struct {
    int32_t error;  // positive FI_E code, or 0
    int32_t lost;   // because of this rank, or -1
} Head;

typedef struct {
    Head head;
    // The first that cannot, the first with the smallest digest and with the largest, and the first that does
    // not want to join now.
    uint64_t least[4];
    char reason[kMccReasonBytes];  // of the first that cannot
} Word;

// What a parent tells one child.
typedef struct {
    Word worst;
    MccWrappedSecret secret;
} Outcome;

// What a wrapped secret is bound to.
typedef struct {
    MccContextNumber context;
    int32_t parent, child;
} Edge;

typedef struct {
    Head head;
    int64_t worst;  // mcc_word()
} Vote;

typedef struct {
    int to;
    ompi_request_t* request;
} Said;

// Where a meeting ends early it stays: messages that are under way may still read or write it.
typedef struct MccTalk {
    ompi_communicator_t* comm;
    int rank, size, parent, first, children;
    bool ends_up, ends_down;  // the last word in this direction was said
    Head end, obituary;
    Word word, heard[kMostChildren];
    Outcome outcome, told[kMostChildren];
    Vote vote, votes[kMostChildren], voted;
    uint8_t *mine, *theirs[kMostChildren],
        *all;  // addresses: of the subtree, of the children's, of everybody
    ompi_request_t *expected, *receives[kMostChildren];
    void* rooms[kMostChildren];   // of the receives: each message begins with a head
    int left[kMostChildren + 2];  // have ended the meeting themselves
    int left_count;
    Said said[kMostSaid];
    int said_count;
    MccNear* near;
    size_t near_count, next_near;
    double look_at_s;
} Meeting;

static int end(Meeting* t, int error, int lost) {
    if (0 == t->end.error) t->end = (Head){.error = error, .lost = lost};
    return t->end.error;
}

// This one is not told: with some of Open MPI's layers a send to a process that is not there does not return.
static void has_ended(Meeting* t, int rank) {
    if (t->left_count < kMostChildren + 2) t->left[t->left_count++] = rank;
}

static bool may_be_told(const Meeting* t, int rank) {
    if (rank == t->end.lost) return false;
    for (int i = 0; i < t->left_count; ++i)
        if (rank == t->left[i]) return false;
    return true;
}

static int first_child(int64_t rank, int size) {
    const int64_t first = rank * kMostChildren + 1;
    return first < size ? (int)first : size;
}

static int count_children(int rank, int size) {
    const int others = size - first_child(rank, size);
    return others < kMostChildren ? others : kMostChildren;
}

static int say(Meeting* t, int to, int tag, const void* bytes, size_t count) {
    Said* said = &t->said[t->said_count];
    if (kMostSaid == t->said_count) return end(t, FI_ENOMEM, -1);
    const int rc = MCA_PML_CALL(
        isend(bytes, count, MPI_BYTE, to, tag, MCA_PML_BASE_SEND_STANDARD, t->comm, &said->request));
    if (OMPI_SUCCESS != rc) return end(t, FI_EIO, to);
    said->to = to;
    ++t->said_count;
    return 0;
}

static int expect(Meeting* t, int from, int tag, void* room, size_t bytes, ompi_request_t** request) {
    *request = MPI_REQUEST_NULL;
    const int rc = MCA_PML_CALL(irecv(room, bytes, MPI_BYTE, from, tag, t->comm, request));
    return OMPI_SUCCESS == rc ? 0 : end(t, FI_EIO, from);
}

// Those who wait for it.
static void announce(Meeting* t, int lost) {
    const int first = first_child(lost, t->size), count = count_children(lost, t->size);
    const int parent = (lost - 1) / kMostChildren;
    if (0 != lost && parent != t->rank) (void)say(t, parent, kObituaryTag, &t->end, sizeof(t->end));
    for (int child = first; child < first + count; ++child)
        if (child != t->rank) (void)say(t, child, kObituaryTag, &t->end, sizeof(t->end));
}

// Whether it is known that somebody is gone.
static int look(Meeting* t) {
    if (0 != t->end.error) return t->end.error;
    if (MPI_REQUEST_NULL != t->expected && REQUEST_COMPLETE(t->expected)) {
        has_ended(t, t->expected->req_status.MPI_SOURCE);
        (void)ompi_request_free(&t->expected);
        return end(t, t->obituary.error, t->obituary.lost);
    }
    const double now_s = mcc_now_s();
    if (now_s < t->look_at_s) return 0;
    t->look_at_s = now_s + kLookEveryS;
    for (size_t i = 0; i < kMostLooked && i < t->near_count; ++i) {
        const MccNear* one = &t->near[t->next_near++ % t->near_count];
        if (!mcc_process_gone(&one->process)) continue;
        (void)end(t, FI_ECONNRESET, one->rank);
        announce(t, one->rank);
        return t->end.error;
    }
    return 0;
}

// Takes what has come of what is received; how many that were.
static int take_received(Meeting* t, int count) {
    int taken = 0;
    for (int i = 0; i < count; ++i) {
        if (MPI_REQUEST_NULL == t->receives[i] || !REQUEST_COMPLETE(t->receives[i])) continue;
        const int rc = t->receives[i]->req_status.MPI_ERROR, from = t->receives[i]->req_status.MPI_SOURCE;
        const Head* head = t->rooms[i];
        (void)ompi_request_free(&t->receives[i]);
        ++taken;
        if (MPI_SUCCESS != rc) (void)end(t, FI_EIO, -1);
        if (MPI_SUCCESS != rc || 0 == head->error) continue;
        has_ended(t, from);
        (void)end(t, head->error, head->lost);
    }
    return taken;
}

static int await(Meeting* t, int count) {
    for (int open = count; open > 0;) {
        opal_progress();
        open -= take_received(t, count);
        if (0 != look(t)) return t->end.error;
    }
    return 0;
}

static int hear_children(Meeting* t, const size_t* bytes) {
    for (int i = 0; i < t->children; ++i)
        if (0 != expect(t, t->first + i, kMeetingTag, t->rooms[i], bytes[i], &t->receives[i]))
            return t->end.error;
    return await(t, t->children);
}

static int hear_parent(Meeting* t, void* room, size_t bytes) {
    t->rooms[0] = room;
    if (0 != expect(t, t->parent, kMeetingTag, room, bytes, &t->receives[0])) return t->end.error;
    return await(t, 1);
}

static int tell_children(Meeting* t, const void* bytes, size_t count) {
    for (int i = 0; i < t->children; ++i)
        if (0 != say(t, t->first + i, kMeetingTag, bytes, count)) return t->end.error;
    return 0;
}

// What was said has gone out, or its time is over. To whom is gone nothing does.
static bool has_gone_out(Meeting* t, double until_s) {
    for (;;) {
        int left = 0;
        for (int i = 0; i < t->said_count; ++i) {
            ompi_request_t** request = &t->said[i].request;
            if (MPI_REQUEST_NULL == *request) continue;
            if (REQUEST_COMPLETE(*request))
                (void)ompi_request_free(request);
            else if (may_be_told(t, t->said[i].to))
                ++left;
        }
        if (0 == left) return true;
        if (mcc_now_s() > until_s || (0 == t->end.error && 0 != look(t))) return false;
        opal_progress();
    }
}

// No group. Who waits for this member hears it in place of what it waits for.
static void part(Meeting* t) {
    (void)take_received(t, kMostChildren);
    if (!t->ends_up && 0 != t->rank && may_be_told(t, t->parent))
        (void)say(t, t->parent, kMeetingTag, &t->end, sizeof(t->end));
    for (int i = 0; i < t->children && !t->ends_down; ++i)
        if (t->first + i != t->end.lost) (void)say(t, t->first + i, kMeetingTag, &t->end, sizeof(t->end));
    (void)has_gone_out(t, mcc_now_s() + kFarewellS);
}

static void take_worst(Word* word, const Word* other) {
    if (other->least[0] < word->least[0]) memcpy(word->reason, other->reason, sizeof(word->reason));
    for (size_t i = 0; i < sizeof(word->least) / sizeof(word->least[0]); ++i)
        if (other->least[i] < word->least[i]) word->least[i] = other->least[i];
}

// A reason that is the same on all members, or none.
static void judge(const Word* outcome, int size, char* reason) {
    const MccComponent* c = &mcc_component;
    const uint64_t* least = outcome->least;
    if (least[0] < (uint64_t)size) {
        snprintf(reason, kMccReasonBytes, "rank %d: %.200s", (int)least[0], outcome->reason);
    } else if (0 != ((least[1] ^ ~least[2]) & ~(uint64_t)UINT32_MAX)) {
        snprintf(reason, kMccReasonBytes, "ranks %d and %d have providers that can do different things",
                 (int)(least[1] & UINT32_MAX), (int)(least[2] & UINT32_MAX));
    } else if ((size_t)size > c->fabric.max_members ||
               (size_t)size > (INT32_MAX - sizeof(Head)) / c->fabric.address_bytes) {
        snprintf(reason, kMccReasonBytes, "%d members, the provider takes %zu", size, c->fabric.max_members);
    }
}

static Edge edge_between(const Meeting* t, int parent, int child) {
    Edge edge;
    memset(&edge, 0, sizeof(edge));
    edge.context = mcc_context_number(t->comm);
    edge.parent = parent;
    edge.child = child;
    return edge;
}

static bool take_secret(Meeting* t, MccSecret* secret) {
    const Edge edge = edge_between(t, t->parent, t->rank);
    MccEdgeKey key;
    const bool taken = mcc_peers_edge(t->comm, t->parent, &key) &&
                       mcc_unwrap_secret(&key, &edge, sizeof(edge), &t->outcome.secret, secret);
    explicit_bzero(&key, sizeof(key));
    return taken;
}

// Where this fails the child gets zeros, and finds that this is no wrapped secret.
static void give_secret(Meeting* t, int i, const MccSecret* secret) {
    const Edge edge = edge_between(t, t->rank, t->first + i);
    MccEdgeKey key;
    if (mcc_peers_edge(t->comm, t->first + i, &key))
        (void)mcc_wrap_secret(&key, &edge, sizeof(edge), secret, &t->told[i].secret);
    explicit_bzero(&key, sizeof(key));
}

// While the others' words are under way: the keys are computed once for each process, in some 100 us.
static void prepare_edges(const Meeting* t) {
    MccEdgeKey key;
    if (0 != t->rank) (void)mcc_peers_edge(t->comm, t->parent, &key);
    for (int i = 0; i < t->children; ++i) (void)mcc_peers_edge(t->comm, t->first + i, &key);
    explicit_bzero(&key, sizeof(key));
}

// The first round. All members have the same reason afterwards, or none and the secret.
static int exchange_words(Meeting* t, MccMeeting* meeting, char* reason) {
    size_t bytes[kMostChildren];
    for (int i = 0; i < t->children; ++i) t->rooms[i] = &t->heard[i], bytes[i] = sizeof(t->heard[i]);
    if (0 == t->rank) prepare_edges(t);
    if (0 != look(t) || 0 != hear_children(t, bytes)) return t->end.error;
    for (int i = 0; i < t->children; ++i) take_worst(&t->word, &t->heard[i]);
    if (0 == t->rank) {
        t->outcome.worst = t->word;
    } else {
        if (0 != say(t, t->parent, kMeetingTag, &t->word, sizeof(t->word))) return t->end.error;
        prepare_edges(t);
        if (0 != hear_parent(t, &t->outcome, sizeof(t->outcome))) return t->end.error;
    }
    judge(&t->outcome.worst, t->size, reason);
    if (t->outcome.worst.least[3] < (uint64_t)t->size) meeting->unwilling = (int)t->outcome.worst.least[3];
    const bool forms = '\0' == reason[0] && meeting->unwilling < 0;
    if (forms && 0 != t->rank) meeting->has_secret = take_secret(t, &meeting->secret);
    for (int i = 0; i < t->children; ++i) {
        t->told[i].worst = t->outcome.worst;
        if (forms && meeting->has_secret) give_secret(t, i, &meeting->secret);
        if (0 != say(t, t->first + i, kMeetingTag, &t->told[i], sizeof(t->told[i]))) return t->end.error;
    }
    return 0;
}

// A subtree's addresses, level by level, into `packed` or out of it; returns their bytes. packed: NULL to
// count.
static size_t move_subtree(int64_t top, int64_t size, size_t width, uint8_t* all, uint8_t* packed,
                           bool packs) {
    size_t bytes = 0;
    for (int64_t from = top, to = top; from < size;
         from = from * kMostChildren + 1, to = to * kMostChildren + kMostChildren) {
        const size_t level = (size_t)((to < size ? to : size - 1) - from + 1) * width;
        uint8_t* place = NULL != all ? all + (size_t)from * width : NULL;
        if (NULL != packed) memcpy(packs ? packed + bytes : place, packs ? place : packed + bytes, level);
        bytes += level;
    }
    return bytes;
}

static uint8_t* make_room(Meeting* t, size_t bytes) {
    uint8_t* room = calloc(1, sizeof(Head) + bytes);
    if (NULL == room) (void)end(t, FI_ENOMEM, -1);
    return room;
}

static int exchange_addresses(Meeting* t, uint8_t* addresses, size_t width) {
    size_t bytes[kMostChildren];
    const size_t all = (size_t)t->size * width,
                 own = move_subtree(t->rank, t->size, width, NULL, NULL, false);
    t->all = make_room(t, all);
    t->mine = make_room(t, own);
    for (int i = 0; i < t->children; ++i) {
        const size_t theirs = move_subtree(t->first + i, t->size, width, NULL, NULL, false);
        t->rooms[i] = t->theirs[i] = make_room(t, theirs);
        bytes[i] = sizeof(Head) + theirs;
    }
    if (0 != t->end.error || 0 != hear_children(t, bytes)) return t->end.error;
    for (int i = 0; i < t->children; ++i)
        (void)move_subtree(t->first + i, t->size, width, addresses, t->theirs[i] + sizeof(Head), false);
    if (0 != t->rank) {
        (void)move_subtree(t->rank, t->size, width, addresses, t->mine + sizeof(Head), true);
        if (0 != say(t, t->parent, kMeetingTag, t->mine, sizeof(Head) + own)) return t->end.error;
        if (0 != hear_parent(t, t->all, sizeof(Head) + all)) return t->end.error;
        memcpy(addresses, t->all + sizeof(Head), all);
    } else {
        memcpy(t->all + sizeof(Head), addresses, all);
    }
    return tell_children(t, t->all, sizeof(Head) + all);
}

static Meeting* call(ompi_communicator_t* comm) {
    Meeting* t = calloc(1, sizeof(*t));
    if (NULL == t) return NULL;
    t->comm = comm;
    t->rank = ompi_comm_rank(comm);
    t->size = ompi_comm_size(comm);
    t->parent = (t->rank - 1) / kMostChildren;
    t->first = first_child(t->rank, t->size);
    t->children = count_children(t->rank, t->size);
    t->near_count = mcc_peers_near(comm, &t->near);
    t->next_near = (size_t)t->rank;
    for (int i = 0; i < kMostChildren; ++i) t->receives[i] = MPI_REQUEST_NULL;
    (void)expect(t, MPI_ANY_SOURCE, kObituaryTag, &t->obituary, sizeof(t->obituary), &t->expected);
    return t;
}

// Nobody has died, and everything has gone out: nothing is under way but what may be heard of a death.
static void close_meeting(Meeting* t) {
    bool over = MPI_REQUEST_NULL == t->expected;
    if (!over && OMPI_SUCCESS == ompi_request_cancel(t->expected)) {
        const double until_s = mcc_now_s() + kFarewellS;
        while (!REQUEST_COMPLETE(t->expected) && mcc_now_s() < until_s) opal_progress();
        over = REQUEST_COMPLETE(t->expected);
    }
    if (!over) return;  // it may still be written to
    if (MPI_REQUEST_NULL != t->expected) (void)ompi_request_free(&t->expected);
    for (int i = 0; i < t->children; ++i) free(t->theirs[i]);
    free(t->mine);
    free(t->all);
    free(t->near);
    free(t);
}

// Ends the meeting, and returns `error`.
static int leave(MccMeeting* meeting, int error, int* lost) {
    Meeting* t = meeting->talk;
    meeting->talk = NULL;
    if (0 == error) {
        close_meeting(t);
    } else {
        *lost = t->end.lost;
        part(t);
    }
    return error;
}

int mcc_meeting_hold(ompi_communicator_t* comm, bool wants, MccMeeting* meeting, char* reason, int* lost) {
    const MccComponent* c = &mcc_component;
    const size_t width = c->fabric.address_bytes;
    const uint64_t kRank = UINT32_MAX;
    *lost = meeting->unwilling = -1;
    Meeting* t = meeting->talk = call(comm);
    if (NULL == t) return FI_ENOMEM;
    const uint64_t rank = (uint64_t)t->rank, size = (uint64_t)t->size;
    const uint64_t offers = c->opened ? mcc_offers_digest() : 0;
    meeting->has_secret = 0 == t->rank && mcc_draw_secret(&meeting->secret);
    if (c->opened) meeting->addresses = malloc((size_t)t->size * width);
    const bool ready = NULL != meeting->addresses && (0 != t->rank || meeting->has_secret);
    snprintf(t->word.reason, sizeof(t->word.reason), "%.200s",
             c->opened ? "no memory for the members' addresses, or no random numbers" : c->reason);
    t->word.least[0] = ready ? size : rank;
    t->word.least[1] = (offers & ~kRank) | rank;
    t->word.least[2] = (~offers & ~kRank) | rank;
    t->word.least[3] = wants ? size : rank;
    int error = 0 != t->end.error ? t->end.error : exchange_words(t, meeting, reason);
    if (0 != error) reason[0] = '\0';
    if (0 == error && '\0' == reason[0] && meeting->unwilling < 0) {
        memcpy(meeting->addresses + (size_t)t->rank * width, c->fabric.address, width);
        error = exchange_addresses(t, meeting->addresses, width);
        return 0 == error ? 0 : leave(meeting, error, lost);
    }
    if (0 == error) t->ends_up = t->ends_down = true;
    if (0 == error && !has_gone_out(t, INFINITY)) error = t->end.error;
    return leave(meeting, error, lost);
}

static int exchange_votes(Meeting* t, MccProbe* probe) {
    size_t bytes[kMostChildren];
    for (int i = 0; i < t->children; ++i) t->rooms[i] = &t->votes[i], bytes[i] = sizeof(t->votes[i]);
    if (0 != look(t) || 0 != hear_children(t, bytes)) return t->end.error;
    for (int i = 0; i < t->children; ++i)
        if (t->votes[i].worst > t->vote.worst) t->vote.worst = t->votes[i].worst;
    if (0 == t->rank) {
        // All have sent their datagrams by now.
        const int unheard = 0 == t->vote.worst ? mcc_probe_missing(probe) : -1;
        if (unheard >= 0) t->vote.worst = mcc_word(FI_EHOSTUNREACH, unheard);
        t->voted = t->vote;
    } else {
        if (0 != say(t, t->parent, kMeetingTag, &t->vote, sizeof(t->vote))) return t->end.error;
        if (0 != hear_parent(t, &t->voted, sizeof(t->voted))) return t->end.error;
    }
    return tell_children(t, &t->voted, sizeof(t->voted));
}

int mcc_meeting_agree(MccMeeting* meeting, int error, bool last, MccAgreed* agreed, int* lost) {
    Meeting* t = meeting->talk;
    *lost = -1;
    t->vote = (Vote){.worst = mcc_word(error, t->rank)};
    int rc = exchange_votes(t, &meeting->probe);
    *agreed = (MccAgreed){.error = mcc_word_error(t->voted.worst), .rank = mcc_word_rank(t->voted.worst)};
    last = last || 0 != agreed->error;
    if (0 == rc && last) t->ends_up = t->ends_down = true;
    if (0 == rc && !has_gone_out(t, INFINITY)) rc = t->end.error;
    return 0 != rc || last ? leave(meeting, rc, lost) : 0;
}
