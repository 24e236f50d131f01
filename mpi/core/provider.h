// A libfabric provider with collectives, as an MPI library's face opens it: without any MPI types, so that
// faces of different MPIs can share it.
//
// Who owns what: MccProvider owns its libfabric objects and closes them in order. It does not lock; whoever
// has several threads does.

#ifndef MCASTCOLL_MPI_CORE_PROVIDER_H
#define MCASTCOLL_MPI_CORE_PROVIDER_H

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
    struct MccJoin* joins;
} MccProvider;

// Opens everything, up to an enabled endpoint. `wait_object`: of the completion queue. On failure false, with
// a reason of kMccProviderReasonBytes at most and nothing left open.
bool mcc_provider_open(MccProvider* p, const char* name, size_t peers, enum fi_wait_obj wait_object,
                       char* reason);
void mcc_provider_close(MccProvider* p);

#endif
