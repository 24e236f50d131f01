// Internal header of the Open MPI coll component.
//
// Path of a call: an entry function (_entries.c) fills an MccCall, decides which side serves the call, the
// provider's group or the previous module (_run.c, _select.c), prepares the buffers (core/prepared_call.h),
// and runs the operation (_run.c) or starts it (_request.c). In the list below, each file uses only the
// functions of the files before it; _component.c uses functions of every file.
//
// Ownership: the component owns the provider's objects (MccProvider), the peer records, and every group from
// its join on, so that MPI_Finalize can close the groups in order even if the program has not freed its
// communicators. A module (one per communicator) borrows its group and holds references to the previous
// modules.

#ifndef MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_H
#define MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_mcastcoll_ompi.h"
#include "core/descriptors.h"
#include "core/prepared_call.h"
#include "core/probe.h"
#include "core/progress_thread.h"
#include "core/provider.h"
#include "core/settings.h"

// Compares two uint64_t for qsort().
static inline int mcc_compare(const void* a, const void* b) {
    const uint64_t first = *(const uint64_t*)a, second = *(const uint64_t*)b;
    return (first > second) - (first < second);
}

// Each collective has a blocking and a non-blocking form.
typedef enum { kMccBlocking, kMccNonblocking, kMccForms } MccForm;

// An operation with a waiting thread. It is part of the group and not on a stack, because a provider may
// still hold its address after the operation was given up.
typedef struct {
    struct fi_context2 context;  // identifies the completions of this operation
    atomic_bool done;
    int error;  // positive FI_E code
    char text[kMccReasonBytes];
} MccOperation;

// A provider group: the members of a communicator.
typedef struct {
    MccJoin join;         // first field; without MccRun, operations are posted and polled for
    unsigned known;       // bits of enum fi_collective_op accepted by the provider for this group
    bool failed;          // an operation failed; every later operation fails, too
    atomic_uint waiting;  // length of the backlog of requests, which starts at `first`:
    struct MccRequest *first, *last;
    char name[MPI_MAX_OBJECT_NAME];  // of the communicator, which may have been freed
    MccOperation operation;
} MccGroup;

typedef enum {
    kMccFresh,    // too few collectives so far to form a group
    kMccDue,      // the next collective for the group forms the group
    kMccForming,  // the group forms; collectives called meanwhile go to the previous modules
    kMccServing,  // the group serves this communicator
    kMccLeft,     // permanently served by the previous modules
    kMccBroken,   // a member was lost while the group formed: calls fail
} MccModuleState;

// The function and module that served a collective before this component was installed.
typedef struct {
    void (*function)(void);  // cast to the real type for the call
    mca_coll_base_module_t* module;
} MccPrevious;

// The communicator's blocking collectives as stored before a call of a previous module.
typedef struct {
    MccPrevious blocking[kMccCollectives];
} MccSavedModules;

// The side that serves a call.
typedef enum {
    kMccPrevious,  // the previous module, on every rank
    kMccHere,      // the group; prepare() in _entries.c has then filled the MccCall
    kMccMeasured,  // undecided: both sides in turn
    kMccOver,      // neither: nothing to do, or an error; the result is the call's rc
} MccRoute;

// A trial: measures whether the group or the previous module is faster for a class of message sizes (rule
// keyword "measured", coll_mcastcoll_select.c; README.md has the reasons and the invariants). The medians of
// both sides are compared, so that a single slow call decides nothing. The code uses no clock, no messages
// and no Open MPI functions.
//
//     group serves -> trial -> pause -> trial -> pause, twice as long -> trial ...
//                     \-> the other side won: a short pause, a second trial; if it wins again, it serves
enum {
    kMccTrialCalls = 5,        // counted calls per side, after an uncounted one
    kMccTrialPerCent = 5,      // the previous module must be faster by this much
    kMccTrialFirst = 80,       // calls before the first trial: more than the engine's rotating buffers
    kMccTrialShortPause = 30,  // calls between a trial with a contrary result and the second trial
    kMccTrialPause = 500,      // calls until the result is checked by another trial; doubles each time
    kMccTrialLongestPause = 1 << 20,
    kMccTrialClasses = 64,
};

typedef enum { kMccSideGroup, kMccSidePrevious, kMccSides } MccSide;

typedef struct {
    unsigned calls;     // calls done in the current or next trial
    unsigned wait;      // calls until the next trial begins
    unsigned pause;     // the last long pause
    bool contradicted;  // the last trial contradicted the current choice
    bool closed;        // no further trials
    MccSide better;  // serves the calls between trials: the group, until two trials in a row find the other
                     // side faster
    uint64_t ns[kMccSides][kMccTrialCalls];  // own times; after the agreement, times of the slowest member
} MccTrial;

typedef struct {
    size_t from_bytes;
    MccRoute route;
} MccStep;
// The result of mcc_select() for one collective: messages take `route` from 0 bytes on, and the route of each
// of the `more` steps from that step's size on.
typedef struct {
    MccRoute route;
    MccStep* more;
    size_t count;
    MccTrial* trials;  // indexed by mcc_trial_class(); only for blocking forms with a measured step
} MccSteps;

typedef struct {
    mca_coll_base_module_t super;
    _Atomic MccModuleState state;
    size_t seen;    // collectives so far, as coll_mcastcoll_form_after counts them
    size_t wanted;  // number of collectives before a group forms
    unsigned attempts;
    int hosts;
    unsigned sites;  // 0 before the group has formed
    MccGroup* group;
    MccBounce bounce;  // packed bytes of derived datatypes
    MccPrevious previous[kMccForms][kMccCollectives];
    MccSteps selection[kMccForms][kMccCollectives];
} MccModule;
OBJ_CLASS_DECLARATION(MccModule);

typedef struct {
    const mca_base_component_t* base;  // registered owner of the parameters and the modex record

    // MCA parameters
    int priority;
    int form_after;
    int min_comm_size;
    char* enable;
    char* selection;
    bool progress_thread;
    int join_timeout_ms;
    int verbose;
    char* experiment;

    // Values of coll_mcastcoll_experiment
    char provider[kMccSettingBytes];  // libfabric provider; it must support FI_COLLECTIVE
    int single_host;  // serve communicators on one host: 1 yes, 0 no, -1 only with the pml cm, whose messages
                      // do not use shared memory
    size_t bcast_min_message;  // bytes; shorter broadcasts are left to the other components
    size_t max_message;        // bytes; longer messages are left to the other components
    size_t segment;            // maximum bytes of one operation of the provider
    // Maximum bytes of a reduce_scatter with uneven parts that is run as an allreduce.
    size_t reduce_scatter_small;
    bool nonblocking;
    bool disable_on_error;  // leave a communicator to the other components after a failed operation
    bool eager_progress;    // poll the provider in every iteration of Open MPI's progress loop
    int linger_ms;          // time that a group outlives its communicator

    // State
    int output;
    size_t longest;    // bytes per operation: the segment, or the provider's maximum if smaller
    unsigned enabled;  // 1 << kMccBcast | ...
    struct MccRules* rules;
    uint64_t terms;                // digest of the parameters that must be the same on every rank
    bool has_accelerator;          // buffers may be in an accelerator's memory
    bool ready;                    // the parameters are valid
    bool opened;                   // the provider is open
    char reason[kMccReasonBytes];  // cause if not ready or not opened
    bool reported;
    MccProvider fabric;                 // its lock also guards the fields below
    atomic_int broken;                  // positive FI_E code after the completion queue itself has failed
    void* peers;                        // processes with a valid modex record
    void* hosts;                        // hosts of these processes
    MccKeyPair keys;                    // key pair of this process; the modex record has the public key
    double backoff_until_s, backoff_s;  // after a timeout, no join between hosts until then
    atomic_int modules;
    struct MccChunk* chunks;  // slots for the operations of requests
    struct MccSlot* free_slots;
    struct MccRequest *finished, *finished_last;  // waiting to be completed without the lock
    atomic_uint open;                             // incomplete requests
    atomic_uint backlog;                          // open requests with operations still to be posted
    atomic_uint finished_count;
    atomic_uint progress_calls;  // calls of the progress callback
    _Atomic double poll_at_s, poll_every_s;
    uint64_t naks_received;  // NAKs received from peers, at the last poll
    bool polling;            // the progress callback is registered
    atomic_int waiting;      // threads that poll the provider by themselves
    MccProgressThread thread;
} MccComponent;

// One MPI collective call: prepared, then run to its end or started as a request. The two forms differ only
// in the waiting.
//
// Ownership: a blocking call borrows the module's bounce buffer. A non-blocking call owns its memory, freed
// with the request, and holds a reference to a derived datatype, since the program may free the datatype.
typedef struct {
    MccPreparedCall prepared;  // covers every segment
    MccModule* module;
    ompi_communicator_t* comm;
    MccForm form;
    MccCollective collective;
    int rc;
    size_t bytes;  // of a message, a vector or a block, for reports

    bool divisible;  // may be split into operations of one segment each
    size_t longest;  // bytes of one operation; copied, since the module may be freed before a later operation
                     // is posted
    bool streamed;   // a large blocking broadcast of a derived datatype, packed segment by segment
    MccBounce memory;  // of a non-blocking call
    int* vectors;      // of a non-blocking call: copy of counts and displacements

    MccTrial* trial;  // the trial with this call, or NULL
    int64_t begun_ns;
} MccCall;

extern MccComponent mcc_component;  // _settings.c

// Returns whether the user's parameters enable this form of the collective.
static inline bool mcc_is_enabled(int collective, MccForm form) {
    return 0 != (mcc_component.enabled >> collective & 1) &&
           (kMccBlocking == form || mcc_component.nonblocking);
}

#define MCC_VERBOSE(level, ...) opal_output_verbose(level, mcc_component.output, __VA_ARGS__)

// coll_mcastcoll_settings.c
void mcc_settings_register(const mca_base_component_t* component);
// Checks the parameters. False: a parameter is out of range; the component's reason names the parameter.
bool mcc_settings_check(void);
bool mcc_pml_is(const char* name);  // compares with the selected point-to-point layer, after its selection

// coll_mcastcoll_variables.c
void mcc_variables_register(const mca_base_component_t* component);

// coll_mcastcoll_libfabric.c
// Loads libfabric at the first call. The lock is held, or there is a single thread.
bool mcc_load(char* reason);

// coll_mcastcoll_pack.c: the functions of core/layout.h, and packing and unpacking in pieces.
bool mcc_prepare_convertor(opal_convertor_t* convertor, bool packs, const MccLayout* layout);
// Packs the next bytes of the layout into `memory`, or unpacks bytes of `memory`. *filled counts the bytes
// packed or unpacked so far. Continues until *filled is `wanted` or more, at most `room`. False if the
// convertor fails.
bool mcc_convert(opal_convertor_t* convertor, bool packs, uint8_t* memory, size_t room, size_t* filled,
                 size_t wanted);

// coll_mcastcoll_select.c: the rules that decide which calls the group serves, which calls the previous
// module serves because it is faster, and for which calls both sides are measured. The rules come from a file
// and from a built-in table. They are the same on every rank; the modex records verify this.
typedef struct MccRules MccRules;
// Reads the rules. path: the file, or NULL or empty for the built-in rules only. Returns rules that the
// caller frees, or NULL with a reason.
MccRules* mcc_rules_read(const char* path, char* reason);
uint64_t mcc_rules_digest(const MccRules* rules, uint64_t state);
// Prints the rules to the component's output, in the form of the file.
void mcc_rules_print(const MccRules* rules);
// Applies the rules to a communicator. False: no memory.
bool mcc_select(const MccRules* rules, MccModule* m, int members);
void mcc_select_free(MccModule* m);
// Returns kMccHere or kMccPrevious, or for blocking forms kMccMeasured while undecided.
MccRoute mcc_selected(const MccModule* m, MccForm form, MccCollective collective, size_t bytes);

// coll_mcastcoll_select.c: trials.

// Returns the size class of a message of `bytes`: its power of two. MPI makes the bytes equal on every
// member.
static inline unsigned mcc_trial_class(size_t bytes) {
    return bytes > 0 ? kMccTrialClasses - 1 - (unsigned)__builtin_clzll(bytes) : 0;
}
// Returns whether a call takes no part in a trial, because of a pause between trials or after the last trial.
// Counts the call towards the pause.
static inline bool mcc_trial_pauses(MccTrial* t) {
    if (t->closed) return true;
    if (0 == t->wait) return false;
    --t->wait;
    return true;
}
// True after the last call of a trial: the members can agree on the times and decide.
static inline bool mcc_trial_is_over(const MccTrial* t) {
    return t->calls >= kMccSides * (kMccTrialCalls + 1);
}
static inline MccSide mcc_trial_side(const MccTrial* t) {
    return 0 == t->calls % kMccSides ? kMccSideGroup : kMccSidePrevious;
}
// Ends the trials: from now on, the group serves.
static inline void mcc_trial_close(MccTrial* t) {
    t->closed = true;
    t->better = kMccSideGroup;
}
void mcc_trial_note(MccTrial* t, uint64_t ns);
uint64_t mcc_trial_median(const MccTrial* t, MccSide side);
void mcc_trial_decide(MccTrial* t);

// coll_mcastcoll_process.c
typedef struct {
    uint64_t space;  // namespace of `number`; 0: unknown, so other processes cannot check this process
    uint64_t start;  // start time; distinguishes a later process with the same number
    int64_t number;
} MccProcess;
MccProcess mcc_process_self(void);
bool mcc_process_gone(const MccProcess* process);

// coll_mcastcoll_peers.c
int mcc_peers_open(void);  // publishes this process's modex record; returns an Open MPI code
void mcc_peers_close(void);
// Checks by the modex records whether the members can be in one group, and counts their hosts (0: no memory).
// If the members cannot, returns false with a reason.
bool mcc_peers_agree(ompi_communicator_t* comm, int* host_count, char* reason);
// Compares the addresses of all hosts and, if the provider is not open yet, stores the addresses at which to
// open the provider (`wanted` of MccProvider). False: no network connects the hosts; the reason is the same
// on every member.
bool mcc_peers_choose_address(ompi_communicator_t* comm, char* reason);
// Checks whether the members' addresses, in the order of ranks, can belong to one group. If not, returns
// false with a reason.
bool mcc_peers_distinct(ompi_communicator_t* comm, const uint8_t* addresses, char* reason);
// Stores one member of each host other than rank 0's, at most kMccMaxProbed, and returns their number.
unsigned mcc_peers_senders(ompi_communicator_t* comm, int ranks[kMccMaxProbed]);
// Inserts the addresses of all processes of the job whose modex records contain an address into the address
// vector. The lock is held.
void mcc_peers_insert_all(void);
typedef struct {
    int rank;
    MccProcess process;
} MccHostPeer;
// Finds the other members on this member's host whose end this process can observe. Returns their number, and
// an array that the caller frees. mcc_peers_agree() must have succeeded for the communicator.
size_t mcc_peers_on_host(ompi_communicator_t* comm, MccHostPeer** found);
// Computes the key that this process shares with a member. False: the member's modex record has no valid key.
bool mcc_peers_edge(ompi_communicator_t* comm, int rank, MccEdgeKey* edge);
uint64_t mcc_capabilities_digest(void);  // of the open provider's capabilities

// coll_mcastcoll_handshake.c: the setup handshake, the messages between members while a group forms. Waiting
// for a message has no time limit and ends when a member is known to be lost.
typedef struct {
    void* state;         // internal state during the handshake
    uint8_t* addresses;  // of the members, in the order of ranks
    bool has_secret;     // false: the wrapped secret was not for this member, or was altered on its way
    MccSecret secret;    // rank 0's
    int unwilling;       // the first rank that refuses to join at present, or -1
    MccProbe probe;      // if open, the next mcc_handshake_agree() reports missing datagrams
} MccHandshake;
// Runs the first part of the setup handshake, after the attempt to open the provider. Returns 0 with one of
// three results, the same on every member: the addresses are complete and the handshake continues (`state` is
// set; `has_secret` may still differ between members); `reason` says why there can be no group; or
// `unwilling` names a rank that does not want to join now. Returns a positive FI_E code if a member was lost
// (`lost`: its rank, or -1 if unknown); the members then may have different results. The caller frees
// `addresses` in any case.
int mcc_handshake_begin(ompi_communicator_t* comm, bool wants, MccHandshake* handshake, char* reason,
                        int* lost);
typedef struct {
    int error, rank;
} MccAgreed;
// Gives every member the worst result of a step: 0, or an error and a rank with this error. Returns 0, or as
// mcc_handshake_begin() a positive FI_E code if a member was lost. The handshake ends if the result is an
// error or `last` is set.
int mcc_handshake_agree(MccHandshake* handshake, int error, bool last, MccAgreed* agreed, int* lost);

// coll_mcastcoll_previous.c
void mcc_offer(MccModule* m, MccForm form, int collective, void (*function)(void));
// Stores the previous modules. Open MPI enables modules from the lowest priority up, so the communicator now
// holds the modules that served it before. Collectives without such a module are not served by this component
// either.
void mcc_previous_keep(MccModule* m, ompi_communicator_t* comm);
void mcc_previous_release(MccModule* m);
// Installs the previous modules in the communicator, for a call of a previous module. mcc_restore_modules()
// must follow the call.
MccPrevious mcc_install_previous(MccModule* m, ompi_communicator_t* comm, MccCollective collective,
                                 MccSavedModules* saved);
void mcc_restore_modules(MccModule* m, ompi_communicator_t* comm, const MccSavedModules* saved);

// coll_mcastcoll_windows.c
void mcc_watch_windows(void);  // once Open MPI has opened its osc components
// Called for a blocking collective. Leaves the communicator to Open MPI if an osc component made the call
// while this thread creates a window.
void mcc_note_window(MccModule* m, ompi_communicator_t* comm);

// coll_mcastcoll_call.c
size_t mcc_longest_part(const MccCall* call);  // maximum bytes of one operation of the call
// Returns the next operation of the call, from element `offset` on.
struct fi_mcastcoll_request mcc_part(const MccCall* call, size_t offset);
ssize_t mcc_post(MccGroup* g, const struct fi_mcastcoll_request* request, void* context);
// Returns whether completion unpacks into a derived datatype, which the program may free meanwhile.
bool mcc_unpacks_derived(const MccCall* call);
// Delivers the result if the provider has finished without an error (`good`), and releases datatypes and
// memory. Must be called exactly once per call.
bool mcc_finish_call(MccCall* call, bool good);
// Reports a failure and returns MPI's error code.
int mcc_fail(MccGroup* g, const MccCall* call, int error);

// coll_mcastcoll_request.c
// False: the previous module must serve the call. Otherwise call->rc is the result for the caller.
bool mcc_start_call(MccCall* call, MccRoute route, ompi_request_t** request);
// Ends the operation with this context. False: the context does not belong to a request's operation. The lock
// is held.
bool mcc_slot_ended(const void* context, int error, const char* text);
void mcc_post_backlog(void);  // the lock is held
void mcc_slots_free(void);
// Returns the number of completed requests. The lock is not held.
int mcc_complete_requests(void);

// coll_mcastcoll_fabric.c
// Returns whether the provider's collectives must know all addresses of the job before the first group.
bool mcc_fabric_is_eager(void);
// Opens the provider, unless an earlier call has tried to. The lock is held, or there is a single thread.
void mcc_fabric_open(void);
void mcc_progress_start(void);                    // when a group is made; the lock is held
void mcc_progress_thread_for(const MccGroup* g);  // when a group has formed; the lock is held
void mcc_progress_stop(void);                     // the lock is not held
void mcc_wait_step(void);                         // one iteration of a waiting loop; the lock is not held
void mcc_groups_reap(bool all);                   // the lock is held

// coll_mcastcoll_group.c
// Counts a blocking collective of `bytes` on a communicator without a group, and forms the group when the
// count is reached. Returns an Open MPI code; the module's state says which side serves the call.
int mcc_group_consider(MccModule* module, ompi_communicator_t* comm, MccCollective collective, size_t bytes);
void mcc_group_orphan(MccGroup* group);
// Returns whether the provider has the collective and the module's group has not refused it, as far as known.
bool mcc_group_has(const MccModule* m, enum fi_collective_op collective);
// Reports that the communicator is left to Open MPI. Without coll_mcastcoll_verbose, the user sees the line
// only if it concerns the whole job.
void mcc_report_off(ompi_communicator_t* comm, const char* reason);

// coll_mcastcoll_run.c
// Returns whether a member was lost or an operation failed. Then all later calls fail, even calls that a
// previous module would serve, since the members may have made different numbers of calls.
bool mcc_has_failed(const MccModule* m);
// Decides which side serves the call, by values that MPI makes equal on every rank (collective and bytes, see
// coll_mcastcoll_select.c) and by the collectives of the group. First forms the group if the group is due.
MccRoute mcc_route(MccCall* call, enum fi_collective_op needed, size_t bytes);
// Runs an operation to its end. Returns 0 or a positive FI_E code. FI_ENOSYS: no member has begun the
// operation.
int mcc_run(MccGroup* g, const struct fi_mcastcoll_request* request);
// Runs a blocking call to its end. False: the previous module must serve the call. Otherwise call->rc is the
// result for the caller.
bool mcc_run_call(MccCall* call, MccRoute route);
void mcc_measured(MccCall* call);  // ends a call that is part of a trial

// coll_mcastcoll_entries.c
void (*mcc_entry(MccCollective collective, MccForm form))(void);

#endif
