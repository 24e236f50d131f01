// Open MPI headers for several files, and wrappers for the differences between Open MPI's releases. Only this
// header depends on the release: 4.1 has a run-time layer (rte); 5.0 uses PRRTE and PMIx instead.

#ifndef MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_OMPI_H
#define MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_OMPI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"
#include "ompi/runtime/params.h"
#include "ompi_config.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/info.h"
#include "opal/util/output.h"

// A communicator's number: the same on every member, and unique among the existing communicators.
typedef struct {
    uint64_t base, sub;
} MccContextNumber;

#if __has_include("ompi/mca/rte/rte.h")

#include "ompi/mca/rte/rte.h"
#include "opal/mca/pmix/pmix.h"

#define MCC_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#define MCC_FOR_ALL OPAL_PMIX_GLOBAL  // scope of a modex record

static inline MccContextNumber mcc_context_number(const ompi_communicator_t* comm) {
    return (MccContextNumber){comm->c_contextid, 0};
}

// Reads the communicator's value of an info key. False: the communicator does not have the key.
static inline bool mcc_info(const ompi_communicator_t* comm, const char* key, char* value, size_t bytes) {
    int found = 0;
    if (NULL != comm->super.s_info)
        (void)opal_info_get(comm->super.s_info, key, (int)bytes - 1, value, &found);
    return 0 != found;
}

#else

#include "ompi/runtime/ompi_rte.h"
#include "opal/mca/pmix/pmix-internal.h"

#define MCC_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#define MCC_FOR_ALL PMIX_GLOBAL

static inline MccContextNumber mcc_context_number(const ompi_communicator_t* comm) {
    return (MccContextNumber){comm->c_contextid.cid_base, comm->c_contextid.cid_sub.u64};
}

static inline bool mcc_info(const ompi_communicator_t* comm, const char* key, char* value, size_t bytes) {
    int found = 0;
    opal_cstring_t* text = NULL;
    if (NULL != comm->super.s_info) (void)opal_info_get(comm->super.s_info, key, &text, &found);
    if (0 == found) return false;
    snprintf(value, bytes, "%s", text->string);
    OBJ_RELEASE(text);
    return true;
}

#endif

// Accelerator memory: Open MPI 5.0 has an accelerator framework; 4.1 has CUDA functions if built with CUDA.
#if __has_include("opal/mca/accelerator/base/base.h")

#include <string.h>

#include "opal/mca/accelerator/base/base.h"

static inline bool mcc_has_accelerator(void) {
    const mca_base_component_t* selected = &opal_accelerator_base_selected_component.base_version;
    return 0 != strcmp("null", selected->mca_component_name);
}

static inline bool mcc_is_accelerators(const void* base) {
    int device = MCA_ACCELERATOR_NO_DEVICE_ID;
    uint64_t flags = 0;
    return opal_accelerator.check_addr(base, &device, &flags) > 0;
}

#elif OPAL_CUDA_SUPPORT

#include "opal/runtime/opal_params.h"

bool opal_cuda_check_bufs(char* first, char* second);  // the header is installed only with CUDA

static inline bool mcc_has_accelerator(void) {
    return opal_cuda_support;
}

static inline bool mcc_is_accelerators(const void* base) {
    return opal_cuda_check_bufs((char*)(uintptr_t)base, NULL);
}

#else

static inline bool mcc_has_accelerator(void) {
    return false;
}

static inline bool mcc_is_accelerators(const void* base) {
    (void)base;
    return false;
}

#endif

// MPI's fault tolerance (mpi_ft_enable, from 5.0 on). A communicator may be revoked, which ends its active
// collectives.
static inline bool mcc_may_revoke(void) {
#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
    return ompi_ftmpi_enabled;
#else
    return false;
#endif
}

#endif
