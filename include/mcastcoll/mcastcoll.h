/* mcastcoll's extensions of libfabric. Applications can use the provider without these extensions. A program
 * compiled with this header also runs without the provider: fi_open_ops() then returns an error.
 *
 *     struct fi_mcastcoll_set_ops *ops;
 *     if (fi_open_ops(&set->fid, FI_MCASTCOLL_SET_OPS, 0, (void **)&ops, NULL) == 0)
 *         ops->set_repair(set, FI_MCASTCOLL_REPAIR_SYNC);
 */
#ifndef MCASTCOLL_MCASTCOLL_H
#define MCASTCOLL_MCASTCOLL_H

#include <rdma/fi_collective.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of members of a group: ranks have 32 bits, and one value means "no rank". Larger groups are
 * refused with -FI_E2BIG. fi_query_collective() returns the limit of the installed provider. */
#define FI_MCASTCOLL_MAX_MEMBERS UINT32_MAX

/* Name for fi_open_ops() on an address vector set. */
#define FI_MCASTCOLL_SET_OPS "mcastcoll_set_ops_v1"

/* Values of FI_MCASTCOLL_EXPERIMENT=repair=... */
enum fi_mcastcoll_repair {
    FI_MCASTCOLL_REPAIR_PULL = 0,
    FI_MCASTCOLL_REPAIR_PUSH = 1,
    FI_MCASTCOLL_REPAIR_SYNC = 2,
    FI_MCASTCOLL_REPAIR_AUTO = 3,
};

/* Values of FI_MCASTCOLL_EXPERIMENT=root_sync=... */
enum fi_mcastcoll_root_sync {
    FI_MCASTCOLL_ROOT_SYNC_NONE = 0,
    FI_MCASTCOLL_ROOT_SYNC_DELAY = 1,
    FI_MCASTCOLL_ROOT_SYNC_RANDOM = 2,
    FI_MCASTCOLL_ROOT_SYNC_ADAPTIVE = 3,
};

/* Settings for groups joined with this set after the call. Without a call, groups use the environment
 * variables. Rank 0's settings apply to the whole group, so it is sufficient to call these functions on rank
 * 0. Each returns 0, or -FI_EINVAL if the set belongs to another provider or a value is out of range. */
struct fi_mcastcoll_set_ops {
    size_t size; /* of this structure, in the provider */
    /* repair: one of enum fi_mcastcoll_repair. */
    int (*set_repair)(struct fid_av_set* set, int repair);
    /* channels: 1 to 64, for the repair policy sync. */
    int (*set_channels)(struct fid_av_set* set, unsigned channels);
    /* root_sync: one of enum fi_mcastcoll_root_sync. delay_us: 0 to 100000 microseconds, for
     * FI_MCASTCOLL_ROOT_SYNC_DELAY; otherwise ignored. */
    int (*set_root_sync)(struct fid_av_set* set, int root_sync, unsigned delay_us);
};

/* Name for fi_open_ops() on a group, that is on &mc->fid. */
#define FI_MCASTCOLL_GROUP_OPS "mcastcoll_group_ops_v1"

/* One collective operation. Fields that the collective does not need are ignored. */
struct fi_mcastcoll_request {
    size_t size;                      /* of this structure, in the caller */
    enum fi_collective_op collective; /* any */
    const void* input;                /* this member's contribution. For FI_SCATTER (root only) and
                                         FI_ALLTOALL: the parts for all members, in rank order. May equal
                                         `buffer` (reductions, alltoall). For allgather and gather `input` may
                                         lie at the position of this member's part in `buffer`; for scatter, at
                                         the root, `buffer` at this position in `input`. Any other overlap is
                                         an error. */
    void* buffer;                     /* broadcast: the data to send or receive; otherwise the result. For
                                         FI_REDUCE and FI_GATHER used on the root only. For FI_ALLGATHER,
                                         FI_GATHER and FI_ALLTOALL with room for the parts of all members, in
                                         rank order. For FI_REDUCE_SCATTER with room for this member's slice:
                                         count / members elements, and an additional element on each of the
                                         first count % members ranks. */
    size_t count;                     /* elements in one member's part; for FI_REDUCE_SCATTER in the whole
                                         vector; the same on all members */
    enum fi_datatype datatype;        /* FI_VOID counts bytes, except in reductions */
    enum fi_op op;                    /* for reductions */
    uint32_t root;                    /* for collectives with a root: its rank in the group */
};

/* The numbers of a group's members, hosts and sites. Segments without a multicast connection count as
 * separate sites, even if the segments are close to each other. */
struct fi_mcastcoll_group_shape {
    unsigned members;
    unsigned hosts;
    unsigned sites;
};

/* Later versions append members. A member beyond `size` does not exist in the installed provider, and a
 * member that is NULL is not supported. */
struct fi_mcastcoll_group_ops {
    size_t size;
    /* Runs one collective and returns when it has completed. No completion is written to a queue. While
     * waiting, run() repeatedly calls meanwhile(argument), unless `meanwhile` is NULL. meanwhile() returns 0
     * if it had no work and the thread may sleep briefly. meanwhile() may use the group's endpoint and
     * queues, but must not start an operation on this group. A group's operations, blocking or not, take
     * place in the order of the calls, which must be the same on all members. With every threading model of
     * the domain, several threads may call run() at the same time, each for a different group, while further
     * threads use the endpoint and the queues: no lock is held while a call waits.
     *
     * Returns 0 if the operation has completed, or one of these errors if no operation was started:
     *   -FI_EINVAL       a NULL pointer, an enumerator or a root out of range, input and result that
     *                    overlap, or a `size` that is too small
     *   -FI_EOPNOTSUPP   no reduction of this datatype with this operator
     *   -FI_ENOSYS       this group does not support this collective. The result depends only on the group
     *                    and the collective, and is the same on all members.
     *   -FI_EAGAIN       too many operations are in progress; call again
     *   -FI_EOPBADSTATE  the join is not complete
     *   -FI_ESHUTDOWN    the group is closed
     * or the error of the operation: -FI_ECONNRESET (a member died), -FI_EHOSTDOWN (a member's host has
     * answered nothing for FI_MCASTCOLL_HOST_TIMEOUT), -FI_ETIMEDOUT, -FI_EMSGSIZE (members disagree about
     * the length), ... The result is then undefined. */
    ssize_t (*run)(struct fid_mc* mc, const struct fi_mcastcoll_request* request, int (*meanwhile)(void*),
                   void* argument);
    /* Stores the group's numbers, which are the same on all members. Returns 0, or -FI_EOPBADSTATE until the
     * join is complete. */
    int (*get_shape)(struct fid_mc* mc, struct fi_mcastcoll_group_shape* shape);
    /* Stores the number of NAKs (requests for retransmissions) that this member has received. A caller that
     * waits for another event and sees this number grow should poll the group's queue more often. */
    int (*get_naks_received)(struct fid_mc* mc, uint64_t* times);
    /* Stores the value of a counter, summed over all groups of the endpoint, including closed groups. The
     * names are those of FI_MCASTCOLL_STATS: "group_operations", "fragments_repaired", ... Returns 0, or
     * -FI_ENOENT if the name is unknown. */
    int (*get_counter)(struct fid_mc* mc, const char* name, uint64_t* value);
    /* Stores the reason of the group's failure, as text for the user: the lost member and how the loss was
     * detected, as in "lost rank 5 at 10.1.0.6:41234: its process 4711 has ended". Writes at most `bytes`
     * bytes, including a final NUL. Returns the length of the whole text; 0: the group has not failed, or no
     * particular member caused the failure. -FI_EOPBADSTATE until the join is complete. */
    ssize_t (*get_failure)(struct fid_mc* mc, char* text, size_t bytes);
};

#ifdef __cplusplus
}
#endif
#endif
