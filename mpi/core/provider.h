// A libfabric provider with collectives, as an MPI library's face opens it: without any MPI types, so that
// faces of different MPIs can share it.
//
// Who owns what: MccProvider owns its libfabric objects and closes them in order, and knows every join that
// was begun (join.h), whether it is open or not. It has the lock, and whoever calls it takes that.

#ifndef MCASTCOLL_MPI_CORE_PROVIDER_H
#define MCASTCOLL_MPI_CORE_PROVIDER_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcastcoll/mcastcoll.h"

enum {
    kMccProviderReasonBytes = 160,
    kMccProviderAddressBytes = 256,
    kMccProviderDatatypes = 16,    // libfabric's, FI_UINT128 being the last
    kMccProviderCollectives = 16,  // FI_BARRIER ... FI_GATHER
};

typedef ssize_t (*MccRun)(struct fid_mc*, const struct fi_mcastcoll_request*, int (*)(void*), void*);

typedef struct {
    pthread_mutex_t lock;   // guards all below, and every call of the provider but MccRun
    struct MccJoin* joins;  // oldest first
    unsigned ending;        // of these, which nobody uses any more
    // What is open.
    struct fi_info* info;
    struct fid_fabric* fabric;
    struct fid_domain* domain;
    struct fid_eq* eq;
    struct fid_cq* cq;
    struct fid_av* av;
    struct fid_ep* ep;
    size_t max_members;
    uint32_t collectives;  // bit FI_BROADCAST and so on: what it has
    // Bit FI_SUM of [FI_ALLREDUCE][FI_INT32] and so on: what it combines.
    uint16_t reductions[kMccProviderCollectives][kMccProviderDatatypes];
    uint8_t address[kMccProviderAddressBytes];
    size_t address_bytes;
    void* peers;  // the addresses met so far (mcc_peer)
} MccProvider;

// Opens everything, up to an enabled endpoint. `wait_object`: of the completion queue. On failure false, with
// a reason of kMccProviderReasonBytes at most and nothing left open.
bool mcc_provider_open(MccProvider* p, const char* name, size_t peers, enum fi_wait_obj wait_object,
                       char* reason);
void mcc_provider_close(MccProvider* p);
// Whether it has this collective, for these elements and this operator where it combines any (else FI_NOOP).
bool mcc_provider_has(const MccProvider* p, enum fi_collective_op collective, enum fi_datatype type,
                      enum fi_op op);
// What the provider calls the process at these address_bytes: 0, or a positive FI_E code. A member of several
// communicators is put into the address vector once, so that all its groups name it alike.
int mcc_peer(MccProvider* p, const uint8_t* bytes, fi_addr_t* address);

#endif
