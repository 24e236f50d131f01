#define _GNU_SOURCE  // tdestroy()
// The modex records: each process publishes one record (ModexRecord).
//
// A record has a digest of the parameters that must be the same on every rank, and the host of the process.
// Every process reads the same records, so the members come to the same decision without a message. A process
// without a record, or with other parameters, leaves its communicators to Open MPI. From a valid record, the
// reader keeps host and process; an invalid record is read again when needed. The members of a group exchange
// the provider's capabilities and addresses when the group forms (_handshake.c).

#include <errno.h>
#include <search.h>

#include "coll_mcastcoll.h"
#include "ompi/group/group.h"
#include "ompi/proc/proc.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/arch.h"

enum { kRecordVersion = 11 };

typedef struct {
    uint32_t version;
    uint32_t ready;  // the parameters are valid
    uint64_t terms;
    uint64_t host;  // digest of the host name
    MccProcess process;
    MccPublicKey public_key;  // for the transport of group secrets to this process
    MccAddresses addresses;   // of the host
    // Variable length: the endpoint's address if the provider is already open, or the reason why the process
    // is not ready.
    uint8_t rest[kMccProviderAddressBytes];
} ModexRecord;

// The addresses of a host, shared by the processes with equal addresses.
typedef struct {
    MccAddresses addresses;  // first
    size_t place;            // index in the list being gathered, from 1; 0: not yet in the list
} Host;

// The data kept from the valid modex record of a process.
typedef struct {
    uint32_t vpid;  // number of the process in the job
    uint64_t host;
    MccProcess process;
    MccEdgeKey* edge;  // key shared with that process, or NULL before the first use in a group's tree
    Host* at;          // NULL: no memory
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

uint64_t mcc_capabilities_digest(void) {
    const MccComponent* c = &mcc_component;
    const uint64_t numbers[] = {c->longest, c->fabric.address_bytes};
    return mcc_provider_digest(&c->fabric, mcc_digest(kMccDigest, numbers, sizeof(numbers)));
}

static void free_peer(void* peer) {
    MccEdgeKey* edge = ((Peer*)peer)->edge;
    if (NULL != edge) explicit_bzero(edge, sizeof(*edge));
    free(edge);
    free(peer);
}

void mcc_peers_close(void) {
    MccComponent* c = &mcc_component;
    tdestroy(c->peers, free_peer);
    c->peers = NULL;
    tdestroy(c->hosts, free);
    c->hosts = NULL;
    explicit_bzero(&c->keys, sizeof(c->keys));
}

static bool draw_keys(MccComponent* c) {
    if (mcc_draw_key_pair(&c->keys)) return true;
    snprintf(c->reason, sizeof(c->reason), "the kernel returned no random numbers: getrandom: %s",
             strerror(errno));
    return false;
}

// Reads a parameter of Open MPI's btl tcp, which may not be loaded (with pml cm it is not).
static const char* read_btl_tcp(const char* name, const char* variable) {
    int index = -1;
    const mca_base_var_storage_t* value = NULL;
    if (OPAL_SUCCESS == mca_base_var_find_by_name(name, &index) && index >= 0 &&
        OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value)
        return value->stringval;
    return getenv(variable);
}

int mcc_peers_open(void) {
    MccComponent* c = &mcc_component;
    c->ready = c->ready && draw_keys(c);
    ModexRecord record = {.version = kRecordVersion, .ready = c->ready, .public_key = c->keys.public_key};
    const size_t bytes = c->opened ? c->fabric.address_bytes : strlen(c->reason);
    int rc;
    if (c->ready) record.terms = c->terms = digest_terms(c);
    if (NULL != ompi_process_info.nodename)
        record.host = mcc_digest(kMccDigest, ompi_process_info.nodename, strlen(ompi_process_info.nodename));
    record.process = mcc_process_self();
    mcc_addresses_read(
        &record.addresses, NULL != ompi_process_info.nodename ? ompi_process_info.nodename : "?",
        getenv("FI_MCASTCOLL_IFACE"), read_btl_tcp("btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_include"),
        read_btl_tcp("btl_tcp_if_exclude", "OMPI_MCA_btl_tcp_if_exclude"));
    memcpy(record.rest, c->opened ? (const void*)c->fabric.address : c->reason, bytes);
    OPAL_MODEX_SEND(rc, MCC_FOR_ALL, c->base, &record, offsetof(ModexRecord, rest) + bytes);
    return rc;
}

// Reads a process's modex record. False: there is no record, or its version is not the one of this component.
static bool read_record(opal_process_name_t name, ModexRecord* record) {
    int rc;
    uint8_t* data = NULL;
    size_t bytes = 0;
    memset(record, 0, sizeof(*record));
    OPAL_MODEX_RECV(rc, mcc_component.base, &name, &data, &bytes);
    if (OPAL_SUCCESS == rc && NULL != data && bytes >= offsetof(ModexRecord, rest) &&
        bytes <= sizeof(*record))
        memcpy(record, data, bytes);
    free(data);
    return kRecordVersion == record->version && record->addresses.count <= kMccMaxAddresses;
}

static int compare(const void* a, const void* b) {
    const uint32_t first = ((const Peer*)a)->vpid, second = ((const Peer*)b)->vpid;
    return (first > second) - (first < second);
}

static int compare_hosts(const void* a, const void* b) {
    return memcmp(a, b, sizeof(MccAddresses));
}

static Host* keep_host(const MccAddresses* addresses) {
    Host* fresh = calloc(1, sizeof(*fresh));
    if (NULL == fresh) return NULL;
    memcpy(&fresh->addresses, addresses, sizeof(fresh->addresses));
    Host** kept = tsearch(fresh, &mcc_component.hosts, compare_hosts);
    Host* found = NULL != kept ? *kept : NULL;
    if (found != fresh) free(fresh);
    return found;
}

static Peer* find_peer(uint32_t vpid) {
    const Peer key = {.vpid = vpid};
    Peer** known = tfind(&key, &mcc_component.peers, compare);
    return NULL != known ? *known : NULL;
}

// Returns the host of a process that can be in a group with this process, according to its record. Otherwise
// sets `reason`.
static uint64_t host_of(opal_process_name_t name, int rank, char* reason) {
    MccComponent* c = &mcc_component;
    const Peer* known = find_peer(name.vpid);
    if (NULL != known) return known->host;
    ModexRecord record;
    if (!read_record(name, &record)) {
        snprintf(reason, kMccReasonBytes, "rank %d has no mcastcoll component, or another version of it",
                 rank);
    } else if (!record.ready) {
        snprintf(reason, kMccReasonBytes, "rank %d: %.200s", rank, (const char*)record.rest);
    } else if (record.terms != c->terms) {
        snprintf(reason, kMccReasonBytes,
                 "rank %d has different coll_mcastcoll_* parameters or another provider", rank);
    }
    Peer* peer = '\0' == reason[0] ? malloc(sizeof(*peer)) : NULL;
    if (NULL != peer)
        *peer = (Peer){.vpid = name.vpid,
                       .host = record.host,
                       .process = record.process,
                       .at = keep_host(&record.addresses)};
    if (NULL != peer && NULL == tsearch(peer, &c->peers, compare)) free(peer);  // read again when needed
    return record.host;
}

// The lock is held.
static bool find_edge(uint32_t vpid, MccEdgeKey* edge) {
    MccComponent* c = &mcc_component;
    opal_process_name_t name = ompi_proc_local()->super.proc_name;
    Peer* peer = find_peer(vpid);
    ModexRecord record;
    if (NULL != peer && NULL != peer->edge) {
        *edge = *peer->edge;
        return true;
    }
    name.vpid = vpid;
    if (!read_record(name, &record) || !mcc_edge_key(&c->keys, &record.public_key, edge)) return false;
    if (NULL != peer && NULL != (peer->edge = malloc(sizeof(*edge)))) *peer->edge = *edge;
    return true;
}

bool mcc_peers_edge(ompi_communicator_t* comm, int rank, MccEdgeKey* edge) {
    MccComponent* c = &mcc_component;
    pthread_mutex_lock(&c->fabric.lock);
    const bool found = find_edge(ompi_group_get_proc_name(comm->c_local_group, rank).vpid, edge);
    pthread_mutex_unlock(&c->fabric.lock);
    return found;
}

static int count_different(uint64_t* hosts, int size) {
    qsort(hosts, (size_t)size, sizeof(*hosts), mcc_compare);
    int count = 1;
    for (int rank = 1; rank < size; ++rank) count += hosts[rank] != hosts[rank - 1];
    return count;
}

// Hosts in the order of their first processes.
typedef struct {
    Host** hosts;
    size_t count, self;  // `self`: index of this process's host
} Gathered;

// Gathers the hosts of the communicator's processes, or of the job's processes if `comm` is NULL. Skips
// processes without a valid record.
static Gathered gather_hosts(ompi_communicator_t* comm, size_t processes, Host** room) {
    opal_process_name_t name = ompi_proc_local()->super.proc_name;
    const uint32_t my_number = name.vpid;
    Gathered all = {.hosts = room, .self = SIZE_MAX};
    for (size_t i = 0; i < processes; ++i) {
        char ignored[kMccReasonBytes] = "";
        name.vpid = (uint32_t)i;
        if (NULL != comm) name = ompi_group_get_proc_name(comm->c_local_group, (int)i);
        (void)host_of(name, (int)i, ignored);
        const Peer* peer = find_peer(name.vpid);
        if (NULL == peer || NULL == peer->at) continue;
        if (0 == peer->at->place) {
            all.hosts[all.count++] = peer->at;
            peer->at->place = all.count;
        }
        if (name.vpid == my_number) all.self = peer->at->place - 1;
    }
    for (size_t i = 0; i < all.count; ++i) all.hosts[i]->place = 0;
    return all;
}

// Chooses the addresses of this host that connect all hosts. False: no network connects the hosts; `reason`
// has the cause.
static bool choose_address(Gathered all, char* reason) {
    MccProvider* fabric = &mcc_component.fabric;
    const MccAddresses** addresses = malloc((all.count + 1) * sizeof(*addresses));
    MccAddress wanted[kMccMaxAddresses];
    reason[0] = '\0';
    if (NULL == addresses || all.self >= all.count) {  // the provider chooses
        free(addresses);
        return true;
    }
    for (size_t i = 0; i < all.count; ++i) addresses[i] = &all.hosts[i]->addresses;
    const size_t count = mcc_addresses_choose(addresses, all.count, all.self, wanted, reason);
    free(addresses);
    // An open endpoint keeps its address.
    if (!mcc_component.opened) {
        memcpy(fabric->wanted, wanted, count * sizeof(*wanted));
        fabric->wanted_count = count;
    }
    return '\0' == reason[0];
}

// A process has a single endpoint for its communicators, so the choice considers the addresses of the whole
// job, if the job has at most kMaxRead processes. If no network connects the whole job, the choice considers
// the communicator's hosts only. The result must be the same on every member, so an endpoint that is already
// open must not influence the result.
bool mcc_peers_choose_address(ompi_communicator_t* comm, char* reason) {
    MccComponent* c = &mcc_component;
    enum { kMaxRead = 2048 };
    const size_t size = (size_t)ompi_comm_size(comm), job = ompi_process_info.num_procs;
    bool good = true;
    pthread_mutex_lock(&c->fabric.lock);
    Host** room = malloc((size + job) * sizeof(*room));
    if (NULL != room) {
        good = size < job && job <= kMaxRead && choose_address(gather_hosts(NULL, job, room), reason);
        if (!good) good = choose_address(gather_hosts(comm, size, room), reason);
    }
    pthread_mutex_unlock(&c->fabric.lock);
    free(room);
    return good;
}

unsigned mcc_peers_senders(ompi_communicator_t* comm, int ranks[kMccMaxProbed]) {
    MccComponent* c = &mcc_component;
    const int size = ompi_comm_size(comm);
    Host* hosts[kMccMaxProbed + 1];
    unsigned count = 0;
    pthread_mutex_lock(&c->fabric.lock);
    for (int rank = 0; rank < size && count <= kMccMaxProbed; ++rank) {
        const Peer* peer = find_peer(ompi_group_get_proc_name(comm->c_local_group, rank).vpid);
        if (NULL == peer || NULL == peer->at || 0 != peer->at->place) continue;
        if (0 == count && 0 != rank) break;  // rank 0's host is unknown
        hosts[count] = peer->at;
        if (count > 0) ranks[count - 1] = rank;
        peer->at->place = ++count;
    }
    for (unsigned i = 0; i < count; ++i) hosts[i]->place = 0;
    pthread_mutex_unlock(&c->fabric.lock);
    return count > 0 ? count - 1 : 0;
}

bool mcc_peers_distinct(ompi_communicator_t* comm, const uint8_t* addresses, char* reason) {
    MccComponent* c = &mcc_component;
    const int size = ompi_comm_size(comm);
    const MccAddresses** hosts = calloc((size_t)size, sizeof(*hosts));
    if (NULL == hosts) return true;
    pthread_mutex_lock(&c->fabric.lock);
    for (int rank = 0; rank < size; ++rank) {
        const Peer* peer = find_peer(ompi_group_get_proc_name(comm->c_local_group, rank).vpid);
        if (NULL != peer && NULL != peer->at) hosts[rank] = &peer->at->addresses;
    }
    pthread_mutex_unlock(&c->fabric.lock);
    const bool good = mcc_addresses_distinct(addresses, c->fabric.address_bytes, hosts, size, reason);
    free(hosts);
    return good;
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
        // In two jobs connected by MPI_Comm_spawn or MPI_Comm_connect, the processes may not see each other's
        // records.
        const bool same_job = name.jobid == my_job;
        const uint64_t host = same_job ? host_of(name, rank, reason) : 0;
        if (!same_job) snprintf(reason, kMccReasonBytes, "rank %d belongs to another job", rank);
        if (NULL != hosts) hosts[rank] = host;
    }
    pthread_mutex_unlock(&c->fabric.lock);
    *host_count = NULL != hosts && '\0' == reason[0] ? count_different(hosts, size) : 0;
    free(hosts);
    return '\0' == reason[0];
}

// Finds the other members with this process's host and namespace of process numbers. The namespace alone is
// not enough: hosts may share a kernel, as containers and the hosts of the test cluster do.
static size_t find_on_host(ompi_communicator_t* comm, MccHostPeer** found) {
    const int size = ompi_comm_size(comm);
    const Peer* self = find_peer(ompi_proc_local()->super.proc_name.vpid);
    size_t count = 0;
    *found = NULL;
    if (NULL == self || 0 == self->process.space) return 0;
    for (int rank = 0; rank < size; ++rank) {
        const Peer* peer = find_peer(ompi_group_get_proc_name(comm->c_local_group, rank).vpid);
        if (NULL == peer || peer == self || peer->host != self->host ||
            peer->process.space != self->process.space)
            continue;
        if (0 == (count & (count + 1))) {  // grows to the next power of two
            MccHostPeer* larger = realloc(*found, 2 * (count + 1) * sizeof(**found));
            if (NULL == larger) return count;
            *found = larger;
        }
        (*found)[count++] = (MccHostPeer){.rank = rank, .process = peer->process};
    }
    return count;
}

size_t mcc_peers_on_host(ompi_communicator_t* comm, MccHostPeer** found) {
    MccComponent* c = &mcc_component;
    pthread_mutex_lock(&c->fabric.lock);
    const size_t count = find_on_host(comm, found);
    pthread_mutex_unlock(&c->fabric.lock);
    return count;
}

void mcc_peers_insert_all(void) {
    opal_process_name_t name = ompi_proc_local()->super.proc_name;
    ModexRecord record;
    fi_addr_t address;
    for (name.vpid = 0; name.vpid < ompi_process_info.num_procs; ++name.vpid)
        if (read_record(name, &record) && record.ready)  // a member's failure shows when its group forms
            (void)mcc_peer(&mcc_component.fabric, record.rest, &address);
}
