#define _GNU_SOURCE  // tdestroy()
// Who can take part: one card per process, published in the modex, and what members tell each other when a
// group forms.
//
// A card says under which terms the process runs (every parameter that must be the same on all ranks) and on
// which host. Cards are the same for whoever reads them, so all members come to the same decision without a
// message; a process without a card, or with other terms, leaves all its communicators to Open MPI. Of a card
// that was good its reader keeps the host, of others nothing. What providers have is agreed on by the members
// of a group, in O(log n) steps, and their addresses are known while it forms.

#include <search.h>

#include "coll_mcastcoll.h"
#include "ompi/group/group.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/proc/proc.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/util/arch.h"

enum { kCardVersion = 7 };

typedef struct {
    uint32_t version;
    uint32_t ready;  // the parameters are good
    uint64_t terms;
    uint64_t host;  // a digest of its name
    // As much as there is: the address, where the provider is open already; or why it is not ready.
    uint8_t rest[kMccProviderAddressBytes];
} Card;

// What is kept of a process whose card was good.
typedef struct {
    uint32_t process;  // its number in the job
    uint64_t host;
} Peer;

static uint64_t digest_terms(const MccComponent* c) {
    const uint64_t numbers[] = {opal_local_arch,
                                c->enabled,
                                (uint64_t)c->form_after,
                                (uint64_t)c->min_comm_size,
                                c->bcast_min_message,
                                c->max_message,
                                c->segment,
                                c->reduce_scatter_small,
                                (uint64_t)(c->single_host + 1),
                                (uint64_t)c->nonblocking,
                                (uint64_t)c->disable_on_error};
    uint64_t state = mcc_digest(kMccDigest, numbers, sizeof(numbers));
    state = mcc_rules_digest(c->rules, state);
    return mcc_digest(state, c->provider, strlen(c->provider));
}

static uint64_t digest_offers(const MccComponent* c) {
    const uint64_t numbers[] = {c->longest, c->fabric.address_bytes};
    return mcc_provider_digest(&c->fabric, mcc_digest(kMccDigest, numbers, sizeof(numbers)));
}

void mcc_peers_close(void) {
    tdestroy(mcc_component.peers, free);
    mcc_component.peers = NULL;
}

int mcc_peers_open(void) {
    MccComponent* c = &mcc_component;
    Card card = {.version = kCardVersion, .ready = c->ready};
    const size_t bytes = c->opened ? c->fabric.address_bytes : strlen(c->reason);
    int rc;
    if (c->ready) card.terms = c->terms = digest_terms(c);
    if (NULL != ompi_process_info.nodename)
        card.host = mcc_digest(kMccDigest, ompi_process_info.nodename, strlen(ompi_process_info.nodename));
    memcpy(card.rest, c->opened ? (const void*)c->fabric.address : c->reason, bytes);
    OPAL_MODEX_SEND(rc, OPAL_PMIX_GLOBAL, c->base, &card, offsetof(Card, rest) + bytes);
    return rc;
}

// False: there is none, or of another version.
static bool read_card(opal_process_name_t name, Card* card) {
    int rc;
    uint8_t* data = NULL;
    size_t bytes = 0;
    memset(card, 0, sizeof(*card));
    OPAL_MODEX_RECV(rc, mcc_component.base, &name, &data, &bytes);
    if (OPAL_SUCCESS == rc && NULL != data && bytes >= offsetof(Card, rest) && bytes <= sizeof(*card))
        memcpy(card, data, bytes);
    free(data);
    return kCardVersion == card->version;
}

static int compare(const void* a, const void* b) {
    const uint32_t first = ((const Peer*)a)->process, second = ((const Peer*)b)->process;
    return (first > second) - (first < second);
}

// Of a process that could be in a group with this one, as far as its card tells; else there is a reason.
static uint64_t host_of(opal_process_name_t name, int rank, char* reason) {
    MccComponent* c = &mcc_component;
    const Peer key = {.process = name.vpid};
    Peer** known = tfind(&key, &c->peers, compare);
    if (NULL != known) return (*known)->host;
    Card card;
    if (!read_card(name, &card)) {
        snprintf(reason, kMccReasonBytes, "rank %d has no mcastcoll component, or another version of it",
                 rank);
    } else if (!card.ready) {
        snprintf(reason, kMccReasonBytes, "rank %d: %.200s", rank, (const char*)card.rest);
    } else if (card.terms != c->terms) {
        snprintf(reason, kMccReasonBytes,
                 "rank %d runs with other coll_mcastcoll_* parameters or another provider", rank);
    }
    Peer* peer = '\0' == reason[0] ? malloc(sizeof(*peer)) : NULL;
    if (NULL != peer) *peer = (Peer){.process = name.vpid, .host = card.host};
    if (NULL != peer && NULL == tsearch(peer, &c->peers, compare)) free(peer);  // it is read again
    return card.host;
}

static int count_different(uint64_t* hosts, int size) {
    qsort(hosts, (size_t)size, sizeof(*hosts), mcc_compare);
    int count = 1;
    for (int rank = 1; rank < size; ++rank) count += hosts[rank] != hosts[rank - 1];
    return count;
}

bool mcc_peers_agree(ompi_communicator_t* comm, int* host_count, char* reason) {
    MccComponent* c = &mcc_component;
    const int size = ompi_comm_size(comm);
    const uint32_t my_job = ompi_proc_local()->super.proc_name.jobid;
    uint64_t* hosts = malloc((size_t)size * sizeof(*hosts));
    reason[0] = '\0';
    pthread_mutex_lock(&c->fabric.lock);
    for (int rank = 0; rank < size && '\0' == reason[0]; ++rank) {
        const opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);
        // Two jobs joined by MPI_Comm_spawn or _connect may not both see the other's cards.
        const bool is_ours = name.jobid == my_job;
        const uint64_t host = is_ours ? host_of(name, rank, reason) : 0;
        if (!is_ours) snprintf(reason, kMccReasonBytes, "rank %d belongs to another job", rank);
        if (NULL != hosts) hosts[rank] = host;
    }
    pthread_mutex_unlock(&c->fabric.lock);
    *host_count = NULL != hosts && '\0' == reason[0] ? count_different(hosts, size) : 0;
    free(hosts);
    return '\0' == reason[0];
}

void mcc_peers_meet_all(void) {
    opal_process_name_t name = ompi_proc_local()->super.proc_name;
    Card card;
    fi_addr_t address;
    for (name.vpid = 0; name.vpid < ompi_process_info.num_procs; ++name.vpid)
        if (read_card(name, &card) && card.ready)  // a member's failure shows when its group forms
            (void)mcc_peer(&mcc_component.fabric, card.rest, &address);
}

// All members go the same way, since that depends on the allreduce's result only.
int mcc_peers_exchange(MccModule* m, ompi_communicator_t* comm, MccMeeting* meeting, char* reason) {
    const MccComponent* c = &mcc_component;
    const MccPrevious* previous = m->previous[kMccBlocking];
#define PREVIOUS(name, collective, ...)                                                    \
    ((mca_coll_base_module_##name##_fn_t)previous[collective].function)(__VA_ARGS__, comm, \
                                                                        previous[collective].module)
    const int size = ompi_comm_size(comm), width = (int)c->fabric.address_bytes;
    const uint64_t rank = (uint64_t)ompi_comm_rank(comm), kRank = UINT32_MAX;
    const uint64_t offers = c->opened ? digest_offers(c) : 0;
    char text[kMccReasonBytes] = "no memory for the members' addresses, or no random numbers";
    const bool secret = mcc_draw_secret(&meeting->secret);  // rank 0's will be all members'
    if (c->opened) meeting->addresses = malloc((size_t)size * c->fabric.address_bytes);
    if (!c->opened) memcpy(text, c->reason, sizeof(text));
    // The first that cannot, and the first with the smallest digest and with the largest.
    const uint64_t mine[] = {NULL != meeting->addresses && secret ? (uint64_t)size : rank,
                             (offers & ~kRank) | rank, (~offers & ~kRank) | rank};
    uint64_t least[] = {0, 0, 0};
    int rc = PREVIOUS(allreduce, kMccAllreduce, mine, least, 3, MPI_UINT64_T, MPI_MIN);
    if (OMPI_SUCCESS != rc) return rc;
    if (least[0] < (uint64_t)size) {
        rc = PREVIOUS(bcast, kMccBcast, text, sizeof(text), MPI_BYTE, (int)least[0]);
        if (OMPI_SUCCESS == rc) snprintf(reason, kMccReasonBytes, "rank %d: %.200s", (int)least[0], text);
    } else if (0 != ((least[1] ^ ~least[2]) & ~kRank)) {
        snprintf(reason, kMccReasonBytes, "ranks %d and %d have providers that can do different things",
                 (int)(least[1] & kRank), (int)(least[2] & kRank));
    } else if ((size_t)size > c->fabric.max_members) {
        snprintf(reason, kMccReasonBytes, "%d members, the provider takes %zu", size, c->fabric.max_members);
    } else {
        rc = PREVIOUS(bcast, kMccBcast, &meeting->secret, sizeof(meeting->secret), MPI_BYTE, 0);
        if (OMPI_SUCCESS == rc)
            rc = PREVIOUS(allgather, kMccAllgather, c->fabric.address, width, MPI_BYTE, meeting->addresses,
                          width, MPI_BYTE);
    }
#undef PREVIOUS
    return rc;
}
