/* What an application can ask of mcastcoll beyond libfabric's own calls. Nothing here is needed to use the
 * provider; a program that was compiled with this header runs without the provider, too: fi_open_ops() then
 * fails.
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

/* Of a group: ranks have 32 bits, of which one value is nobody's. More are refused with -FI_E2BIG. The
 * provider at hand says its own in fi_query_collective(). */
#define FI_MCASTCOLL_MAX_MEMBERS UINT32_MAX

/* The name for fi_open_ops() on an address vector set. */
#define FI_MCASTCOLL_SET_OPS "mcastcoll_set_ops_v1"

/* As FI_MCASTCOLL_REPAIR. */
enum fi_mcastcoll_repair {
    FI_MCASTCOLL_REPAIR_PULL = 0,
    FI_MCASTCOLL_REPAIR_PUSH = 1,
    FI_MCASTCOLL_REPAIR_SYNC = 2,
    FI_MCASTCOLL_REPAIR_AUTO = 3,
};

/* As FI_MCASTCOLL_ROOT_SYNC. */
enum fi_mcastcoll_root_sync {
    FI_MCASTCOLL_ROOT_SYNC_NONE = 0,
    FI_MCASTCOLL_ROOT_SYNC_DELAY = 1,
    FI_MCASTCOLL_ROOT_SYNC_RANDOM = 2,
    FI_MCASTCOLL_ROOT_SYNC_ADAPTIVE = 3,
};

/* How groups are to work that are joined with this set from now on; what the variables say holds for all
 * others. The word of rank 0 counts for the whole group, so it suffices that rank 0 calls. Each returns 0,
 * or -FI_EINVAL when the set is not one of mcastcoll's or a value is none of the above. */
struct fi_mcastcoll_set_ops {
    size_t size; /* of this structure, as the provider knows it */
    /* repair: one of enum fi_mcastcoll_repair. */
    int (*set_repair)(struct fid_av_set* set, int repair);
    /* channels: 1 to 64, of the sync policy. */
    int (*set_channels)(struct fid_av_set* set, unsigned channels);
    /* root_sync: one of enum fi_mcastcoll_root_sync. delay_us: 0 to 100000, of FI_MCASTCOLL_ROOT_SYNC_DELAY,
     * otherwise not looked at. */
    int (*set_root_sync)(struct fid_av_set* set, int root_sync, unsigned delay_us);
};

/* The name for fi_open_ops() on a group, that is on &mc->fid. */
#define FI_MCASTCOLL_GROUP_OPS "mcastcoll_group_ops_v1"

/* What the group agreed on. */
struct fi_mcastcoll_group_settings {
    int repair;
    int root_sync;
    unsigned root_delay_us;
    unsigned channels;
};

/* One collective. What it does not need is not looked at. */
struct fi_mcastcoll_request {
    size_t size;                      /* of this structure, as the caller knows it */
    enum fi_collective_op collective; /* any of them */
    const void* input;                /* what this member gives; of FI_SCATTER (the root's only) and
                                         FI_ALLTOALL the parts for all members, in the order of their ranks.
                                         May be `buffer` itself (reductions, alltoall), or one may lie where
                                         its part has its place in the other (allgather, gather; scatter, at
                                         the root), but they may not overlap otherwise */
    void* buffer;                     /* of a broadcast: what is sent or received; else for the result. With
                                         FI_REDUCE and FI_GATHER only the root's is looked at. With
                                         FI_ALLGATHER, FI_GATHER and FI_ALLTOALL it has room for the parts of
                                         all members, in the order of their ranks, with FI_REDUCE_SCATTER for
                                         this member's slice: as many elements for everybody, and one more for
                                         each of the first few where that does not come out even. */
    size_t count;                     /* elements in one member's part; of FI_REDUCE_SCATTER in the whole
                                         vector; the same on all members */
    enum fi_datatype datatype;        /* FI_VOID counts bytes, where nothing is reduced */
    enum fi_op op;                    /* of reductions */
    uint32_t root;                    /* of those that have one: a rank of the group */
};

/* Where a group's members are: how many of each there are. Segments that no multicast connects count as
 * sites, near each other or not. */
struct fi_mcastcoll_group_shape {
    unsigned members;
    unsigned hosts;
    unsigned sites;
};

/* Later versions have more members: those that `size` does not reach are not there, and one that is NULL is
 * not offered. */
struct fi_mcastcoll_group_ops {
    size_t size;
    /* -FI_EOPBADSTATE until the join is complete. */
    int (*get_settings)(struct fid_mc* mc, struct fi_mcastcoll_group_settings* settings);
    /* One collective from its start to its end: no completion is written anywhere. In between, meanwhile
     * (argument) is called now and then, unless it is NULL. It returns 0 if it had nothing to do and the
     * thread may take a short nap. It may use the group's endpoint and queues, but not begin an operation on
     * this group. The order of a group's operations, blocking or not, is that of the calls, and the same on
     * all members. Several threads may be in here at once, each with another group, and others in the
     * endpoint's and queues' calls, whatever the domain's threading: no lock is held while a call waits.
     *
     * Returns 0 or
     *   -FI_EINVAL       a NULL pointer, an enumerator or a root out of range, input and result that
     *                    overlap, a `size` that is too small. Nothing was begun.
     *   -FI_EOPNOTSUPP   no such reduction of this datatype with this operator. Nothing was begun.
     *   -FI_ENOSYS       this group does not have this collective, and never will. Nothing was begun. That
     *                    depends on the group and the collective only, so that all members get it, or none.
     *   -FI_EAGAIN       too much is under way; call again. Nothing was begun.
     *   -FI_EOPBADSTATE  the join is not complete. Nothing was begun.
     *   -FI_ESHUTDOWN    the group is closed. Nothing was begun.
     * or what the completion would have had for an error: -FI_ECONNRESET (a member died), -FI_EHOSTDOWN (a
     * member's host has answered nothing for FI_MCASTCOLL_HOST_TIMEOUT), -FI_ETIMEDOUT, -FI_EMSGSIZE (members
     * disagree about the length), ... The result is then undefined. */
    ssize_t (*run)(struct fid_mc* mc, const struct fi_mcastcoll_request* request, int (*meanwhile)(void*),
                   void* argument);
    /* The name of the algorithm that would carry this out ("levels", "messages", "reduction", "chains" or
     * "split"), a string that lives as long as the provider; or NULL where the table of algorithms
     * (FI_MCASTCOLL_SELECTION) says "none": who has another way had better take it. That is all that "none"
     * does: `run` and libfabric's own calls serve the collective all the same. NULL, too, until the join is
     * complete, and for a `size`, collective, count, datatype or operator that `run` refuses. The root and
     * the buffers are not looked at, nor whether the group has failed since. All members that ask the same
     * get the same answer. */
    const char* (*advice)(struct fid_mc* mc, const struct fi_mcastcoll_request* request);
    /* The same on all members. -FI_EOPBADSTATE until the join is complete. */
    int (*get_shape)(struct fid_mc* mc, struct fi_mcastcoll_group_shape* shape);
    /* How often others have asked this member for what the network lost. Who waits for something else, and
     * sees this grow, had better poll the group's queue more often. */
    int (*get_asked)(struct fid_mc* mc, uint64_t* times);
    /* What all groups of this one's endpoint have counted, closed ones included, by the name that it has in
     * FI_MCASTCOLL_STATS: "group_operations", "fragments_repaired", ... -FI_ENOENT: nothing is called so. */
    int (*get_counter)(struct fid_mc* mc, const char* name, uint64_t* value);
    /* Why the group has failed, for people: which member was lost and how that was found out, as in
     * "lost rank 5 at 10.1.0.6:41234: its process 4711 has ended". At most `bytes` are written, the last one
     * is 0. Returns the length of the whole text; 0: the group has not failed, or no member is to blame.
     * -FI_EOPBADSTATE until the join is complete. */
    ssize_t (*get_failure)(struct fid_mc* mc, char* text, size_t bytes);
};

#ifdef __cplusplus
}
#endif
#endif
