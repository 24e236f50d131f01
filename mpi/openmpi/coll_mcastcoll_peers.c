// Who can take part: one card per process, exchanged in the modex.
//
// A card says under which terms the process runs (every parameter that must be the same on all ranks) and on
// which host. Cards are the same for whoever reads them, so all members come to the same decision without a
// message; a process without a card, or with other terms, leaves all its communicators to Open MPI. When a
// group forms its members exchange their cards once more, now with what their providers have and at which
// address, or why they have none.

#include "coll_mcastcoll.h"
#include "ompi/group/group.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/proc/proc.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/util/arch.h"

enum { kCardVersion = 6 };

typedef struct MccCard {
    uint32_t version;  // 0: it was not there, or is of another version
    uint32_t ready;    // the parameters are good
    uint32_t opened;   // so is the provider, and what follows is there
    uint64_t terms, offers;
    uint64_t host;  // a digest of its name
    uint32_t address_bytes;
    char reason[kMccReasonBytes];
    uint8_t address[kMccProviderAddressBytes];
} Card;

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
    return mcc_provider_digest(&c->fabric, mcc_digest(kMccDigest, &c->longest, sizeof(c->longest)));
}

void mcc_peers_close(void) {
    MccComponent* c = &mcc_component;
    for (size_t i = 0; NULL != c->peers && i < ompi_process_info.num_procs; ++i) free(c->peers[i]);
    free(c->peers);
    c->peers = NULL;
}

static void write_card(Card* card) {
    MccComponent* c = &mcc_component;
    memset(card, 0, sizeof(*card));
    card->version = kCardVersion;
    card->ready = c->ready;
    card->terms = c->terms = c->ready ? digest_terms(c) : 0;
    if (NULL != ompi_process_info.nodename)
        card->host = mcc_digest(kMccDigest, ompi_process_info.nodename, strlen(ompi_process_info.nodename));
    memcpy(card->reason, c->reason, sizeof(card->reason));
    if (!c->opened) return;
    card->opened = true;
    card->offers = c->offers = digest_offers(c);
    memcpy(card->address, c->fabric.address, sizeof(card->address));
    card->address_bytes = (uint32_t)c->fabric.address_bytes;
}

int mcc_peers_open(void) {
    Card card;
    int rc;
    mcc_component.peers = calloc(ompi_process_info.num_procs, sizeof(struct MccCard*));
    write_card(&card);
    OPAL_MODEX_SEND(rc, OPAL_PMIX_GLOBAL, mcc_component.base, &card, sizeof(card));
    return rc;
}

static void read_card(Card* kept, const Card* card) {
    *kept = *card;
    if (kCardVersion != card->version || card->address_bytes > kMccProviderAddressBytes) kept->version = 0;
    kept->reason[kMccReasonBytes - 1] = '\0';
}

// NULL: no memory, or none of this job.
static Card* find_peer(ompi_communicator_t* comm, int rank) {
    MccComponent* c = &mcc_component;
    opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);
    if (NULL == c->peers || name.vpid >= ompi_process_info.num_procs) return NULL;
    Card** peer = &c->peers[name.vpid];
    if (NULL != *peer || NULL == (*peer = calloc(1, sizeof(Card)))) return *peer;
    int rc;
    uint8_t* data = NULL;
    size_t bytes = 0;
    OPAL_MODEX_RECV(rc, c->base, &name, &data, &bytes);
    if (OPAL_SUCCESS == rc && NULL != data && sizeof(Card) == bytes) {
        Card card;
        memcpy(&card, data, sizeof(card));
        read_card(*peer, &card);
    }
    free(data);
    return *peer;
}

bool mcc_peers_agree(ompi_communicator_t* comm, char* reason) {
    MccComponent* c = &mcc_component;
    const int size = ompi_comm_size(comm);
    reason[0] = '\0';
    pthread_mutex_lock(&c->fabric.lock);
    const uint32_t my_job = ompi_proc_local()->super.proc_name.jobid;
    for (int rank = 0; rank < size && '\0' == reason[0]; ++rank) {
        // Two jobs joined by MPI_Comm_spawn or _connect may not both see the other's cards.
        const bool is_ours = ompi_group_get_proc_name(comm->c_local_group, rank).jobid == my_job;
        const Card* peer = is_ours ? find_peer(comm, rank) : NULL;
        if (!is_ours) {
            snprintf(reason, kMccReasonBytes, "rank %d belongs to another job", rank);
        } else if (NULL == peer || 0 == peer->version) {
            snprintf(reason, kMccReasonBytes, "rank %d has no mcastcoll component, or another version of it",
                     rank);
        } else if (!peer->ready) {
            snprintf(reason, kMccReasonBytes, "rank %d: %.200s", rank, peer->reason);
        } else if (peer->terms != c->terms) {
            snprintf(reason, kMccReasonBytes,
                     "rank %d runs with other coll_mcastcoll_* parameters or another provider", rank);
        }
    }
    pthread_mutex_unlock(&c->fabric.lock);
    return '\0' == reason[0];
}

int mcc_peers_exchange(MccModule* m, ompi_communicator_t* comm, char* reason) {
    MccComponent* c = &mcc_component;
    const int size = ompi_comm_size(comm);
    const MccPrevious* previous = &m->previous[kMccBlocking][kMccAllgather];
    Card own, *cards = malloc((size_t)size * sizeof(*cards));
    if (NULL == cards) return OMPI_ERR_OUT_OF_RESOURCE;
    pthread_mutex_lock(&c->fabric.lock);
    write_card(&own);
    pthread_mutex_unlock(&c->fabric.lock);
    const int rc = ((mca_coll_base_module_allgather_fn_t)previous->function)(
        &own, sizeof(own), MPI_BYTE, cards, sizeof(own), MPI_BYTE, comm, previous->module);
    pthread_mutex_lock(&c->fabric.lock);
    for (int rank = 0; rank < size && OMPI_SUCCESS == rc && '\0' == reason[0]; ++rank) {
        Card* peer = find_peer(comm, rank);
        if (NULL == peer) continue;  // its address will be missing
        read_card(peer, &cards[rank]);
        // It came when its process had tried to open the provider.
        if (!peer->opened) {
            snprintf(reason, kMccReasonBytes, "rank %d: %.200s", rank, peer->reason);
        } else if (peer->offers != c->offers) {
            snprintf(reason, kMccReasonBytes, "rank %d has a provider that can do something else", rank);
        }
    }
    if ('\0' == reason[0] && (size_t)size > c->fabric.max_members)
        snprintf(reason, kMccReasonBytes, "%d members, the provider takes %zu", size, c->fabric.max_members);
    pthread_mutex_unlock(&c->fabric.lock);
    free(cards);
    return rc;
}

int mcc_peers_hosts(ompi_communicator_t* comm) {
    MccComponent* c = &mcc_component;
    const int size = ompi_comm_size(comm);
    uint64_t* hosts = malloc((size_t)size * sizeof(*hosts));
    if (NULL == hosts) return 0;
    pthread_mutex_lock(&c->fabric.lock);
    for (int rank = 0; rank < size; ++rank) {
        const Card* peer = find_peer(comm, rank);
        hosts[rank] = NULL != peer ? peer->host : 0;
    }
    pthread_mutex_unlock(&c->fabric.lock);
    qsort(hosts, (size_t)size, sizeof(*hosts), mcc_compare);
    int count = 1;
    for (int rank = 1; rank < size; ++rank) count += hosts[rank] != hosts[rank - 1];
    free(hosts);
    return count;
}

const uint8_t* mcc_peers_address(const void* comm, size_t rank) {
    const Card* peer = find_peer((ompi_communicator_t*)(uintptr_t)comm, (int)rank);
    return NULL != peer && 0 != peer->version && 0 != peer->address_bytes ? peer->address : NULL;
}
