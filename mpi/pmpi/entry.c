// What the program calls in place of MPI's own: serve it, or hand it on as it came.
//
// Nothing here looks at anything; MPI_..._c, the large-count calls of MPI 4, may meet the ordinary ones on
// other members and share everything with them.

#include "pmpi.h"

#define EXPORT __attribute__((visibility("default")))

// The signatures are MPI's, of one count type (int, MPI_Count) and one of displacements (int, MPI_Aint).
#define ENTRIES(suffix, Count, Place)                                                                        \
    EXPORT int MPI_Bcast##suffix(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {    \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_bcast(buffer, count, type, root, comm, &rc)                                              \
                   ? rc                                                                                      \
                   : PMPI_Bcast##suffix(buffer, count, type, root, comm);                                    \
    }                                                                                                        \
    EXPORT int MPI_Reduce##suffix(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op,      \
                                  int root, MPI_Comm comm) {                                                 \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_reduce(in, out, count, type, op, root, comm, &rc)                                        \
                   ? rc                                                                                      \
                   : PMPI_Reduce##suffix(in, out, count, type, op, root, comm);                              \
    }                                                                                                        \
    EXPORT int MPI_Allreduce##suffix(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op,   \
                                     MPI_Comm comm) {                                                        \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_allreduce(in, out, count, type, op, comm, &rc)                                           \
                   ? rc                                                                                      \
                   : PMPI_Allreduce##suffix(in, out, count, type, op, comm);                                 \
    }                                                                                                        \
    EXPORT int MPI_Allgather##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,        \
                                     Count out_count, MPI_Datatype out_type, MPI_Comm comm) {                \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_allgather(LAYOUT(in, in_count, in_type), LAYOUT(out, out_count, out_type), comm, &rc)    \
                   ? rc                                                                                      \
                   : PMPI_Allgather##suffix(in, in_count, in_type, out, out_count, out_type, comm);          \
    }                                                                                                        \
    EXPORT int MPI_Alltoall##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,         \
                                    Count out_count, MPI_Datatype out_type, MPI_Comm comm) {                 \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_alltoall(LAYOUT(in, in_count, in_type), LAYOUT(out, out_count, out_type), comm, &rc)     \
                   ? rc                                                                                      \
                   : PMPI_Alltoall##suffix(in, in_count, in_type, out, out_count, out_type, comm);           \
    }                                                                                                        \
    EXPORT int MPI_Gather##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,           \
                                  Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {         \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_gather(LAYOUT(in, in_count, in_type), LAYOUT(out, out_count, out_type), root, comm, &rc) \
                   ? rc                                                                                      \
                   : PMPI_Gather##suffix(in, in_count, in_type, out, out_count, out_type, root, comm);       \
    }                                                                                                        \
    EXPORT int MPI_Scatter##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,          \
                                   Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {        \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_scatter(LAYOUT(in, in_count, in_type), LAYOUT(out, out_count, out_type), root, comm,     \
                            &rc)                                                                             \
                   ? rc                                                                                      \
                   : PMPI_Scatter##suffix(in, in_count, in_type, out, out_count, out_type, root, comm);      \
    }                                                                                                        \
    EXPORT int MPI_Allgatherv##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,       \
                                      const Count* counts, const Place* places, MPI_Datatype out_type,       \
                                      MPI_Comm comm) {                                                       \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_allgatherv(LAYOUT(in, in_count, in_type), out, LIST(counts), LIST(places), out_type,     \
                               comm, &rc)                                                                    \
                   ? rc                                                                                      \
                   : PMPI_Allgatherv##suffix(in, in_count, in_type, out, counts, places, out_type, comm);    \
    }                                                                                                        \
    EXPORT int MPI_Reduce_scatter##suffix(const void* in, void* out, const Count* counts, MPI_Datatype type, \
                                          MPI_Op op, MPI_Comm comm) {                                        \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_reduce_scatter(in, out, LIST(counts), type, op, comm, &rc)                               \
                   ? rc                                                                                      \
                   : PMPI_Reduce_scatter##suffix(in, out, counts, type, op, comm);                           \
    }                                                                                                        \
    EXPORT int MPI_Reduce_scatter_block##suffix(const void* in, void* out, Count count, MPI_Datatype type,   \
                                                MPI_Op op, MPI_Comm comm) {                                  \
        int rc = MPI_SUCCESS;                                                                                \
        return pmpi_reduce_scatter_block(in, out, count, type, op, comm, &rc)                                \
                   ? rc                                                                                      \
                   : PMPI_Reduce_scatter_block##suffix(in, out, count, type, op, comm);                      \
    }

// Displacements of the large calls are addresses.
_Static_assert(sizeof(MPI_Aint) == sizeof(int) || sizeof(MPI_Aint) == sizeof(MPI_Count), "mcc_item()");
#define LIST(items) ((MccList){items, sizeof(*(items)) != sizeof(int)})
#define LAYOUT(buffer, number, datatype) ((MccLayout){.base = buffer, .count = number, .type = datatype})

ENTRIES(, int, int)
#if MPI_VERSION >= 4
ENTRIES(_c, MPI_Count, MPI_Aint)
#endif

EXPORT int MPI_Barrier(MPI_Comm comm) {
    int rc = MPI_SUCCESS;
    return pmpi_barrier(comm, &rc) ? rc : PMPI_Barrier(comm);
}
