// Distributes rank 0's secret to the other members, by collectives on the program's own communicator, since a
// receive of the program could match a message of this library. The secret is encrypted separately for each
// receiver.
//
// Encrypting for one receiver takes about 100 us. So rank 0 encrypts for the first member of each block of
// 32, and each of these members encrypts for the others of its block: two steps for any number of members.

#include "pmpi.h"

enum { kBlock = 32 };

// The context of a wrapped secret (core/secret.h).
typedef struct {
    int64_t number;
    int32_t from, to;
} Edge;

static Edge edge_between(const PmpiGroup* g, int from, int to) {
    return (Edge){.number = g->number, .from = from, .to = to};
}

// Wraps the secret for member `to`. On failure, the member gets zeros, which are no valid wrapped secret.
static void give(const PmpiGroup* g, const MccPublicKey* keys, int to, const MccSecret* secret,
                 MccWrappedSecret* wrapped) {
    const Edge edge = edge_between(g, g->join.rank, to);
    MccEdgeKey key;
    if (mcc_edge_key(&pmpi.keys, &keys[to], &key))
        (void)mcc_wrap_secret(&key, &edge, sizeof(edge), secret, wrapped);
    explicit_bzero(&key, sizeof(key));
}

static bool take(const PmpiGroup* g, const MccPublicKey* keys, int from, const MccWrappedSecret* wrapped,
                 MccSecret* secret) {
    const Edge edge = edge_between(g, from, g->join.rank);
    MccEdgeKey key;
    const bool taken = mcc_edge_key(&pmpi.keys, &keys[from], &key) &&
                       mcc_unwrap_secret(&key, &edge, sizeof(edge), wrapped, secret);
    explicit_bzero(&key, sizeof(key));
    return taken;
}

// Shares the secret from rank 0 to the first member of each block.
static bool share_with_first(const PmpiGroup* g, PmpiSharing* s, MccSecret* secret, bool* has_it) {
    const int blocks = (g->join.size + kBlock - 1) / kBlock, rank = g->join.rank;
    if (blocks < 2) return true;
    for (int block = 1; block < blocks && 0 == rank; ++block)
        give(g, s->keys, block * kBlock, secret, &s->wrapped[block]);
    if (MPI_SUCCESS != PMPI_Bcast(s->wrapped, blocks * (int)sizeof(*s->wrapped), MPI_BYTE, 0, g->comm))
        return false;
    if (0 != rank && 0 == rank % kBlock) *has_it = take(g, s->keys, 0, &s->wrapped[rank / kBlock], secret);
    return true;
}

// Shares the secret from the first member of each block to the other members of the block. Each first member
// contributes the entries of its block to the reduction.
static bool share_in_blocks(const PmpiGroup* g, PmpiSharing* s, MccSecret* secret, bool* has_it) {
    const int rank = g->join.rank, size = g->join.size, first = rank - rank % kBlock;
    const int bytes = size * (int)sizeof(*s->wrapped);
    memset(s->wrapped, 0, (size_t)bytes);
    for (int to = first + 1; to < first + kBlock && to < size && rank == first && *has_it; ++to)
        give(g, s->keys, to, secret, &s->wrapped[to]);
    if (MPI_SUCCESS != PMPI_Allreduce(s->wrapped, s->all, bytes, MPI_BYTE, MPI_BOR, g->comm)) return false;
    if (rank != first) *has_it = take(g, s->keys, first, &s->all[rank], secret);
    return true;
}

PmpiSharing* pmpi_sharing_make(int size) {
    const size_t all = (size_t)size;
    PmpiSharing* s = calloc(1, sizeof(*s) + all * (sizeof(*s->keys) + 2 * sizeof(*s->wrapped)));
    if (NULL == s) return NULL;
    s->keys = (MccPublicKey*)(s + 1);
    s->wrapped = (MccWrappedSecret*)(s->keys + size);
    s->all = s->wrapped + size;
    return s;
}

int pmpi_share_secret(const PmpiGroup* g, PmpiSharing* s, MccSecret* secret) {
    enum { kBytes = sizeof(MccPublicKey) };
    bool has_it = 0 == g->join.rank;
    if (MPI_SUCCESS !=
            PMPI_Allgather(&pmpi.keys.public_key, kBytes, MPI_BYTE, s->keys, kBytes, MPI_BYTE, g->comm) ||
        !share_with_first(g, s, secret, &has_it) || !share_in_blocks(g, s, secret, &has_it))
        return FI_EOTHER;
    return has_it ? 0 : FI_EKEYREJECTED;
}
