#include "mpi_coll_cases.h"

// kAnyLayouts is the largest number of members for which an alltoall may have any layouts. With more members,
// Open MPI uses Bruck's algorithm for small blocks, which receives with the send datatype, and so writes
// beyond the result if a member uses different layouts for sending and receiving, as MPI allows.
enum { kGuard = 64, kFill = 0xa5, kAnyLayouts = 12 };

const char* const kind_names[kKinds] = {
    "bcast",  "barrier", "reduce",   "allreduce",      "allgather",           "allgatherv",
    "gather", "scatter", "alltoall", "reduce_scatter", "reduce_scatter_block"};

Part part_of(MPI_Comm comm, uint64_t salt) {
    Part part = {.comm = comm, .salt = salt};
    MPI_Comm_rank(comm, &part.rank);
    MPI_Comm_size(comm, &part.size);
    return part;
}

static Buffer take(size_t bytes, Device* device) {
    const size_t whole = bytes + 2 * kGuard;
    Buffer b = {.bytes = bytes};
    if (device != NULL) b.device_memory = device_take(device, whole);
    b.memory = b.device_memory != NULL ? device_alias(b.device_memory) : malloc(whole);
    if (b.memory == NULL || (device != NULL && b.device_memory == NULL)) MPI_Abort(MPI_COMM_WORLD, 2);
    b.at = b.memory + kGuard;
    memset(b.memory, kFill, bytes + 2 * kGuard);
    return b;
}

static void* given(const Buffer* b) {
    return b->device_memory != NULL ? (uint8_t*)b->device_memory + kGuard : b->at;
}

static bool give_back(Buffer* b) {
    bool whole = true;
    for (size_t i = 0; i < kGuard; ++i)
        whole = whole && b->memory[i] == kFill && b->at[b->bytes + i] == kFill;
    if (b->device_memory != NULL)
        device_give(b->device_memory, b->bytes + 2 * kGuard);
    else
        free(b->memory);
    return whole;
}

// A strided layout leaves room behind each element, which must not change.
static size_t stride_of(const Case* c, bool strided) {
    return c->drawn.type->width * (strided ? 2 : 1);
}

static MPI_Datatype layout_of(const Case* c, bool strided) {
    MPI_Datatype type = c->drawn.type->type;
    if (!strided) return type;
    MPI_Type_create_resized(type, 0, (MPI_Aint)stride_of(c, true), &type);
    MPI_Type_commit(&type);
    return type;
}

static void put(const Case* c, int member, size_t first, size_t count, uint8_t* to, size_t stride) {
    for (size_t i = 0; i < count; ++i) make_element(&c->drawn, member, first + i, to + i * stride);
}

// Returns whether `at` has these elements of the member, and the room between them is unchanged.
static bool holds(const Case* c, int member, size_t first, size_t count, const uint8_t* at, size_t stride) {
    uint8_t expected[64];
    for (size_t i = 0; i < count; ++i) {
        const uint8_t* element = at + i * stride;
        make_element(&c->drawn, member, first + i, expected);
        if (!same_element(c->drawn.type, element, expected)) return false;
        for (size_t gap = c->drawn.type->width; gap < stride; ++gap)
            if (element[gap] != kFill) return false;
    }
    return true;
}

static bool is_combined(const Case* c, size_t first, size_t count, const uint8_t* at) {
    const size_t width = c->drawn.type->width, bytes = count * width;
    uint8_t *expected = malloc(bytes + 1), *input = malloc(bytes + 1);
    if (expected == NULL || input == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    put(c, 0, first, count, expected, width);
    for (int member = 1; member < c->part->size; ++member) {
        put(c, member, first, count, input, width);
        MPI_Reduce_local(input, expected, (int)count, c->drawn.type->type, c->drawn.op->op);
    }
    bool good = true;
    for (size_t i = 0; i < bytes && good; i += width)
        good = same_element(c->drawn.type, at + i, expected + i);
    free(expected);
    free(input);
    return good;
}

static bool is_reduction(Kind kind) {
    return kind == kReduce || kind == kAllreduce || kind == kReduceScatter || kind == kReduceScatterBlock;
}

static bool has_root(Kind kind) {
    return kind == kBcast || kind == kReduce || kind == kGather || kind == kScatter;
}

// Returns whether the input or the result has a block for each member.
static bool has_blocks(Kind kind) {
    return kind >= kAllgather && kind <= kAlltoall;
}

// Draws counts that are equal, as even as possible, nearly equal, or arbitrary; the same counts on every
// member.
static void draw_counts(Case* c, uint64_t* state) {
    const int size = c->part->size;
    const uint64_t how = next_random(state) % 4, whole = c->drawn.count * (uint64_t)size;
    c->counts = malloc(2 * (size_t)size * sizeof(int));
    if (c->counts == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    c->places = c->counts + size;
    const uint64_t odd = next_random(state) % (uint64_t)size;
    for (int i = 0; i < size; ++i) {
        const uint64_t random = next_random(state), count = c->drawn.count;
        c->counts[i] =
            (int)(how == 0   ? count
                  : how == 1 ? (whole + odd) / (uint64_t)size + ((uint64_t)i < (whole + odd) % (uint64_t)size)
                  : how == 2 ? count - random % (count / 8 + 1)
                             : random % (count + 1));
    }
}

// Draws displacements, dense or with gaps. Members may have different displacements.
static void draw_places(Case* c, uint64_t* own) {
    const int gap = next_random(own) % 2 == 0 ? 0 : (int)(next_random(own) % 5);
    int at = gap;
    for (int i = 0; i < c->part->size; ++i) {
        c->places[i] = at;
        at += c->counts[i] + gap;
    }
}

// Draws which buffers are on the device: none of a non-blocking reduction of a single int, which Open MPI
// serves itself, reading the buffers directly.
static void draw_devices(Case* c, uint64_t state) {
    if (c->part->device == NULL || (!c->waits && c->drawn.count * c->drawn.type->width == sizeof(int)))
        return;
    c->input_on_device = next_random(&state) % 8 != 0;
    c->result_on_device = next_random(&state) % 8 != 0;
}

void case_draw(Case* c, const Part* part, Kind kind, uint64_t key, uint64_t max, bool waits) {
    uint64_t state = key ^ part->salt, own = key + 1000U * (uint64_t)part->rank;
    size_t type_count, op_count;
    const Type* all_types = types(&type_count);
    const Operator* all_operators = operators(&op_count);
    *c = (Case){.kind = kind, .part = part, .waits = waits, .request = MPI_REQUEST_NULL};
    DrawnOperation* p = &c->drawn;
    p->key = next_random(&state);
    p->type = &all_types[next_random(&state) % type_count];
    do p->op = &all_operators[next_random(&state) % op_count];
    while (!(p->op->sorts >> p->type->sort & 1));
    // About equally many counts of each order of magnitude.
    const uint64_t max_count = max / p->type->width;
    uint64_t limit = 1;
    while (limit < max_count && next_random(&state) % 8 != 0) limit *= 2;
    p->count = random_between(&state, 0, limit < max_count ? limit : max_count);
    p->root = (int)random_between(&state, 0, (uint64_t)part->size - 1);
    p->in_place = next_random(&state) % 3 == 0;
    draw_devices(c, own ^ kFill);
    if (kind == kReduceScatter || kind == kAllgatherv) draw_counts(c, &state);
    if (kind == kAllgatherv) draw_places(c, &own);
    if (is_reduction(kind)) return;
    c->input_strided = next_random(&own) % 4 == 0;  // may differ between members
    c->result_strided = next_random(&own) % 4 == 0;
    if (kind == kAlltoall && part->size > kAnyLayouts) c->result_strided = c->input_strided;
}

void case_describe(const Case* c, char* text, size_t bytes) {
    snprintf(text, bytes, "%s%s of %zu %s, %s, root %d%s%s%s%s%s, %d members", c->waits ? "" : "i",
             kind_names[c->kind], c->drawn.count, c->drawn.type->name, c->drawn.op->name, c->drawn.root,
             c->drawn.in_place ? ", in place" : "", c->input_strided ? ", strided" : "",
             c->result_strided ? ", to strided" : "", c->input_on_device ? ", on the device" : "",
             c->result_on_device ? ", to the device" : "", c->part->size);
}

static size_t sum_of(const int* counts, int members) {
    size_t sum = 0;
    for (int i = 0; i < members; ++i) sum += (size_t)counts[i];
    return sum;
}

// Returns the number of elements of the reduced vector. *first and *count are this member's part of the
// result.
static size_t vector_of(const Case* c, size_t* first, size_t* count) {
    const size_t size = (size_t)c->part->size, self = (size_t)c->part->rank, each = c->drawn.count;
    *first = 0;
    *count = each;
    if (c->kind == kReduceScatterBlock) {
        *first = self * each;
        return size * each;
    }
    if (c->kind != kReduceScatter) return each;
    *first = sum_of(c->counts, c->part->rank);
    *count = (size_t)c->counts[self];
    return sum_of(c->counts, c->part->size);
}

// Computes the number of elements to send, and of elements in the result buffer.
static void measure(const Case* c, size_t* sent, size_t* got) {
    const size_t each = c->drawn.count, all = each * (size_t)c->part->size;
    size_t first, count;
    *sent = c->kind == kScatter || c->kind == kAlltoall ? all : each;
    *got = has_blocks(c->kind) && c->kind != kScatter ? all : each;
    if (c->kind == kAllgatherv) {
        const int last = c->part->size - 1;
        *sent = (size_t)c->counts[c->part->rank];
        *got = (size_t)(c->places[last] + c->counts[last]);
    }
    if (is_reduction(c->kind)) *sent = *got = vector_of(c, &first, &count);
}

// Fills the buffers. Element i of this member's input has index i; where every member sends a block to each
// member, the blocks together are one long vector.
static void fill(Case* c) {
    const int self = c->part->rank;
    const size_t stride = stride_of(c, c->input_strided), to = stride_of(c, c->result_strided);
    const bool am_root = self == c->drawn.root;
    size_t sent, got;
    measure(c, &sent, &got);
    c->input = take(sent * stride, c->input_on_device ? c->part->device : NULL);
    c->result = take(got * to, c->result_on_device ? c->part->device : NULL);
    if (c->kind == kBcast) {
        if (am_root) put(c, self, 0, got, c->result.at, to);
        return;
    }
    put(c, self, 0, sent, c->input.at, stride);
    if (!c->drawn.in_place) return;
    // With MPI_IN_PLACE the input is in the result buffer.
    uint8_t* place = c->result.at;
    if (c->kind == kAllgather || (c->kind == kGather && am_root))
        place += (size_t)self * c->drawn.count * to;
    else if (c->kind == kAllgatherv)
        place += (size_t)c->places[self] * to;
    if ((c->kind == kGather || c->kind == kReduce) && !am_root) return;
    if (c->kind != kScatter) put(c, self, 0, sent, place, to);
}

static int call_vectors(Case* c, const void* from, void* to) {
    MPI_Comm comm = c->part->comm;
    MPI_Datatype type = c->drawn.type->type;
    MPI_Op op = c->drawn.op->op;
    MPI_Request* r = &c->request;
    const int n = (int)c->drawn.count, root = c->drawn.root;
    switch (c->kind) {
        case kReduce:
            return c->waits ? MPI_Reduce(from, to, n, type, op, root, comm)
                            : MPI_Ireduce(from, to, n, type, op, root, comm, r);
        case kAllreduce:
            return c->waits ? MPI_Allreduce(from, to, n, type, op, comm)
                            : MPI_Iallreduce(from, to, n, type, op, comm, r);
        case kReduceScatter:
            return c->waits ? MPI_Reduce_scatter(from, to, c->counts, type, op, comm)
                            : MPI_Ireduce_scatter(from, to, c->counts, type, op, comm, r);
        default:
            return c->waits ? MPI_Reduce_scatter_block(from, to, n, type, op, comm)
                            : MPI_Ireduce_scatter_block(from, to, n, type, op, comm, r);
    }
}

static int call_blocks(Case* c, const void* from, void* to) {
    MPI_Comm comm = c->part->comm;
    MPI_Datatype in = c->input_type, out = c->result_type;
    MPI_Request* r = &c->request;
    const int n = (int)c->drawn.count, root = c->drawn.root;
    const int own = c->kind == kAllgatherv ? c->counts[c->part->rank] : n;
    switch (c->kind) {
        case kBarrier:
            return c->waits ? MPI_Barrier(comm) : MPI_Ibarrier(comm, r);
        case kBcast:
            return c->waits ? MPI_Bcast(to, n, out, root, comm) : MPI_Ibcast(to, n, out, root, comm, r);
        case kAllgather:
            return c->waits ? MPI_Allgather(from, n, in, to, n, out, comm)
                            : MPI_Iallgather(from, n, in, to, n, out, comm, r);
        case kAllgatherv:
            return c->waits ? MPI_Allgatherv(from, own, in, to, c->counts, c->places, out, comm)
                            : MPI_Iallgatherv(from, own, in, to, c->counts, c->places, out, comm, r);
        case kGather:
            return c->waits ? MPI_Gather(from, n, in, to, n, out, root, comm)
                            : MPI_Igather(from, n, in, to, n, out, root, comm, r);
        case kScatter:
            return c->waits ? MPI_Scatter(from, n, in, to, n, out, root, comm)
                            : MPI_Iscatter(from, n, in, to, n, out, root, comm, r);
        default:
            return c->waits ? MPI_Alltoall(from, n, in, to, n, out, comm)
                            : MPI_Ialltoall(from, n, in, to, n, out, comm, r);
    }
}

void case_start(Case* c) {
    const bool am_root = c->part->rank == c->drawn.root;
    fill(c);
    c->input_type = layout_of(c, c->input_strided);
    c->result_type = layout_of(c, c->result_strided);
    const bool in_place = c->drawn.in_place && (!has_root(c->kind) || am_root);
    const void* from = in_place && c->kind != kScatter ? MPI_IN_PLACE : given(&c->input);
    void* to = in_place && c->kind == kScatter ? MPI_IN_PLACE : given(&c->result);
    if (c->kind == kReduce && !am_root) to = NULL;
    c->rc = is_reduction(c->kind) ? call_vectors(c, from, to) : call_blocks(c, from, to);
    // MPI allows a datatype to be freed while the operation is active.
    if (c->input_strided) MPI_Type_free(&c->input_type);
    if (c->result_strided) MPI_Type_free(&c->result_type);
}

static bool check_reduced(const Case* c) {
    size_t first, count;
    vector_of(c, &first, &count);
    return (c->kind == kReduce && c->part->rank != c->drawn.root) ||
           is_combined(c, first, count, c->result.at);
}

static bool check_blocks(const Case* c) {
    const int self = c->part->rank, size = c->part->size;
    const size_t n = c->drawn.count, stride = stride_of(c, c->result_strided);
    const uint8_t* at = c->result.at;
    bool good = true;
    switch (c->kind) {
        case kBcast:
            return holds(c, c->drawn.root, 0, n, at, stride);
        case kScatter:
            return (c->drawn.in_place && self == c->drawn.root) ||
                   holds(c, c->drawn.root, (size_t)self * n, n, at, stride);
        case kAllgatherv:
            for (int i = 0; i < size; ++i)
                good =
                    good && holds(c, i, 0, (size_t)c->counts[i], at + (size_t)c->places[i] * stride, stride);
            return good;
        case kGather:
            if (self != c->drawn.root) return true;
            break;
        case kAllgather:
        case kAlltoall:
            break;
        default:
            return true;
    }
    const size_t first = c->kind == kAlltoall ? (size_t)self * n : 0;
    for (int i = 0; i < size; ++i) good = good && holds(c, i, first, n, at + (size_t)i * n * stride, stride);
    return good;
}

bool case_check(Case* c) {
    if (!c->waits && MPI_Wait(&c->request, MPI_STATUS_IGNORE) != MPI_SUCCESS) c->rc = MPI_ERR_OTHER;
    size_t sent, got;
    measure(c, &sent, &got);
    bool good = c->rc == MPI_SUCCESS;
    good = good && (is_reduction(c->kind) ? check_reduced(c) : check_blocks(c));
    if (c->kind != kBcast)
        good = good && holds(c, c->part->rank, 0, sent, c->input.at, stride_of(c, c->input_strided));
    free(c->counts);
    const bool input_kept = give_back(&c->input), result_kept = give_back(&c->result);
    return input_kept && result_kept && good;
}
