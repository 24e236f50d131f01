// The private face of the Open MPI coll component: what its files share.
//
// The way of a call: an entry (_calls.c) has a job planned (MccJob), which also decides who serves it
// (_run.c, _select.c) and has what is handed over laid out (core/plan.h), and runs it (_run.c) or starts it
// (_request.c). Below, a file needs only those that stand before it; _component.c needs them all.
//
// Who owns what: the component owns the provider's objects (MccProvider), what is kept of peers and every
// group ever joined, so that MPI_Finalize can close all of them in order whatever communicators the program
// left behind. A module (one per communicator) borrows its group and holds references to the modules it falls
// back to.

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
#include "core/plan.h"
#include "core/probe.h"
#include "core/provider.h"

// For qsort().
static inline int mcc_compare(const void* a, const void* b) {
    const uint64_t first = *(const uint64_t*)a, second = *(const uint64_t*)b;
    return (first > second) - (first < second);
}

// Each collective has two forms.
typedef enum { kMccBlocking, kMccNonblocking, kMccForms } MccForm;

// An operation that is waited for. It lives in its group, not on a stack: a provider may still hold its
// address after it was given up.
typedef struct {
    struct fi_context2 context;  // completions are recognised by its address
    atomic_bool done;
    int error;  // positive FI_E code
    char text[kMccReasonBytes];
} MccOperation;

// A communicator's members as the provider knows them.
typedef struct {
    MccJoin join;  // first; where it has no way to run an operation to its end, that is posted and polled for
    unsigned known;       // bits of enum fi_collective_op: what it is known to have
    bool failed;          // an operation failed; every further one does
    atomic_uint waiting;  // requests that are not yet handed to the provider, first to last:
    struct MccRequest *first, *last;
    char name[MPI_MAX_OBJECT_NAME];  // of its communicator, which may be gone
    MccOperation operation;
} MccGroup;

typedef enum {
    kMccFresh,    // too few collectives yet for a group to be worth it
    kMccWorthy,   // the next one that the rules want here forms it
    kMccForming,  // it forms: what is called meanwhile is part of that
    kMccServing,  // the group serves this communicator
    kMccLeft,     // the previous modules serve it for ever
    kMccBroken,   // a member was lost before there was a group: calls fail
} MccModuleState;

// Who served an operation before us.
typedef struct {
    void (*function)(void);  // cast to its own type when called
    mca_coll_base_module_t* module;
} MccPrevious;

// What the communicator held of blocking collectives before a call of the previous module.
typedef struct {
    MccPrevious blocking[kMccCollectives];
} MccHeld;

// Who serves a call.
typedef enum {
    kMccPrevious,  // the previous module, on all ranks
    kMccHere,      // the group; where there is a job, it is complete
    kMccMeasured,  // not known yet: both by turns
    kMccOver,      // nobody: nothing to do, or an error, and the job's rc is for the caller
} MccRoute;

// A trial: which of two ways is faster here, found by trying both (the word "measured" in
// coll_mcastcoll_select.c; why, and what must stay so, is in README.md). The median of a way's turns counts,
// so that a member that was slow once decides nothing. Pure: no clock, no messages, nothing of Open MPI.
//
//     ours serve -> trial -> pause -> trial -> pause, twice as long -> trial ...
//                     \-> the other way won: a rest, a second trial; if it won again, it serves now
enum {
    kMccTrialTurns = 5,    // of each way that count; one before them does not
    kMccTrialPerCent = 5,  // by so much the others have to be faster
    kMccTrialFirst = 80,   // calls before the first trial: more than buffers that the engine takes in turn
    kMccTrialRest = 30,    // calls between a trial that says otherwise and the second one
    kMccTrialPause = 500,  // calls before what was found is tried again; then twice as many, and so on
    kMccTrialLongestPause = 1 << 20,
    kMccTrialClasses = 64,
};

typedef enum { kMccOurs, kMccOthers, kMccWays } MccWay;

typedef struct {
    unsigned turns;  // of the trial under way, or next
    unsigned wait;   // calls until it begins
    unsigned pause;  // the last long one
    bool doubted;    // the last trial found the way that does not serve faster
    bool closed;     // there is no further one
    MccWay better;   // serves the calls between trials: ours, until two trials in a row say otherwise
    uint64_t ns[kMccWays][kMccTrialTurns];  // mine, and once they are agreed on, the slowest member's
} MccTrial;

// What was selected (mcc_select): from 0 bytes on, and from each further step on.
typedef struct {
    size_t from_bytes;
    MccRoute who;
} MccStep;
typedef struct {
    MccRoute who;
    MccStep* more;
    size_t count;
    MccTrial* trials;  // by class of sizes, of blocking forms of which some are measured
} MccSteps;

typedef struct {
    mca_coll_base_module_t super;
    _Atomic MccModuleState state;
    size_t seen;    // collectives, as coll_mcastcoll_form_after counts them
    size_t wanted;  // so many, before a group forms
    unsigned attempts;
    int hosts;
    unsigned sites;  // 0 until there is a group
    MccGroup* group;
    MccBounce bounce;  // packed bytes of derived datatypes
    MccPrevious previous[kMccForms][kMccCollectives];
    MccSteps selection[kMccForms][kMccCollectives];
} MccModule;
OBJ_CLASS_DECLARATION(MccModule);

typedef struct {
    const mca_base_component_t* base;  // whose parameters and cards these are

    // MCA parameters
    int priority;
    char* provider;
    int form_after;
    int min_comm_size;
    int single_host;
    size_t bcast_min_message;
    size_t max_message;
    size_t segment;
    size_t longest;  // of one operation: a segment, or what the provider takes once it is open
    size_t reduce_scatter_small;
    char* enable;
    char* selection;
    bool nonblocking;
    bool disable_on_error;
    bool eager_progress;
    bool progress_thread;
    int join_timeout_ms;
    int linger_ms;
    int verbose;

    // state
    int output;
    unsigned enabled;  // 1 << kMccBcast | ...
    struct MccRules* rules;
    uint64_t terms;                // digest of all parameters that must be the same everywhere
    bool has_accelerator;          // buffers may be in its memory
    bool ready;                    // the parameters are good
    bool opened;                   // the provider is
    char reason[kMccReasonBytes];  // why it is not so
    bool reported;
    MccProvider fabric;            // its lock guards all below, too
    atomic_int broken;             // positive FI_E code once the completion queue itself failed
    void* peers;                   // processes whose cards were good
    void* hosts;                   // of these
    MccKeyPair keys;               // of this process: the public one is on its card
    double rests_until_s, rest_s;  // no join between hosts before, since one timed out
    atomic_int modules;
    struct MccChunk* chunks;  // of slots for operations of requests
    struct MccSlot* free_slots;
    struct MccRequest *finished, *finished_last;  // to be completed without the lock
    atomic_uint open;                             // requests that are not complete
    atomic_uint backlog;                          // of these, waiting to be handed to the provider
    atomic_uint finished_count;
    atomic_uint turns;  // of the progress callback
    _Atomic double poll_at_s, poll_every_s;
    uint64_t asked;      // how often others had, at the last poll, for what they lost
    bool polling;        // the progress callback is registered
    atomic_int waiting;  // threads that poll by themselves
    MccStandIn stand_in;
} MccComponent;

// A job: one collective of MPI, planned, and then run to its end or started as a request: its blocking and
// non-blocking forms differ only in who waits.
//
// Who owns what: a blocking job borrows its module's bounce buffer; a non-blocking one has memory of its own,
// which goes with its request, and holds a reference to a derived datatype, since the program may free it.
typedef struct {
    MccPlan plan;  // of all segments
    MccModule* module;
    ompi_communicator_t* comm;
    MccForm form;
    MccCollective collective;
    int rc;
    size_t bytes;  // of a message, a vector or a block, for what is said of it

    bool divisible;    // may become several operations, one segment each
    size_t longest;    // bytes of one: the module may be gone when a later one is posted
    bool streamed;     // a large blocking broadcast of a derived datatype, packed segment by segment
    MccBounce memory;  // of a non-blocking job
    int* vectors;      // of a non-blocking job: its own copy of counts and places

    MccTrial* trial;  // that this call is part of, or NULL; then the time is noted
    int64_t begun_ns;
} MccJob;

extern MccComponent mcc_component;  // _settings.c

// By the user's parameters.
static inline bool mcc_is_enabled(int collective, MccForm form) {
    return 0 != (mcc_component.enabled >> collective & 1) &&
           (kMccBlocking == form || mcc_component.nonblocking);
}

#define MCC_VERBOSE(level, ...) opal_output_verbose(level, mcc_component.output, __VA_ARGS__)

// coll_mcastcoll_settings.c
void mcc_settings_register(const mca_base_component_t* component);
// False with the component's reason where one is not what it may be.
bool mcc_settings_check(void);
bool mcc_pml_is(const char* name);  // the point-to-point layer that was selected; once one was

// coll_mcastcoll_variables.c
void mcc_variables_register(const mca_base_component_t* component);

// coll_mcastcoll_libfabric.c
bool mcc_load(char* reason);  // once; the lock is held, or there is one thread

// coll_mcastcoll_pack.c: beside core/layout.h, piece by piece.
bool mcc_prepare(opal_convertor_t* convertor, bool packs, const MccLayout* layout);
// The next packed bytes, into memory that has `*filled` and room for more until there are `wanted`, or out of
// it. False if the convertor fails.
bool mcc_convert(opal_convertor_t* convertor, bool packs, uint8_t* memory, size_t room, size_t* filled,
                 size_t wanted);

// coll_mcastcoll_select.c: which calls are served here, and which by the module that was there before,
// because it is faster, or which both serve by turns until that is known. A table of rules, from a file or
// built in; every rank has the same, which the cards check.
typedef struct MccRules MccRules;
// path: NULL or empty for what is built in. NULL with a reason if there is something wrong with it; else to
// be freed.
MccRules* mcc_rules_read(const char* path, char* reason);
uint64_t mcc_rules_digest(const MccRules* rules, uint64_t state);
// Through the component's output, in the form of the file.
void mcc_rules_print(const MccRules* rules);
// What the rules say for a communicator; false: no memory.
bool mcc_select(const MccRules* rules, MccModule* m, int members);
void mcc_select_free(MccModule* m);
// Here, previous or, of blocking forms only and until it is known, measured.
MccRoute mcc_selected(const MccModule* m, MccForm form, MccCollective collective, size_t bytes);

// coll_mcastcoll_select.c: trials.
// Powers of two of bytes, which MPI makes equal on all members.
static inline unsigned mcc_trial_class(size_t bytes) {
    return bytes > 0 ? kMccTrialClasses - 1 - (unsigned)__builtin_clzll(bytes) : 0;
}
// A call comes. True: it has no part in a trial.
static inline bool mcc_trial_rests(MccTrial* t) {
    if (t->closed) return true;
    if (0 == t->wait) return false;
    --t->wait;
    return true;
}
// All turns are taken: the members may agree, and decide.
static inline bool mcc_trial_is_over(const MccTrial* t) {
    return t->turns >= kMccWays * (kMccTrialTurns + 1);
}
static inline MccWay mcc_trial_turn(const MccTrial* t) {
    return 0 == t->turns % kMccWays ? kMccOurs : kMccOthers;
}
// Nothing is tried any more, and ours serves.
static inline void mcc_trial_close(MccTrial* t) {
    t->closed = true;
    t->better = kMccOurs;
}
void mcc_trial_note(MccTrial* t, uint64_t ns);
uint64_t mcc_trial_median(const MccTrial* t, MccWay way);
void mcc_trial_decide(MccTrial* t);

// coll_mcastcoll_process.c
typedef struct {
    uint64_t space;  // in which the number means this process; 0: it cannot be looked at
    uint64_t start;  // tells it from a later process of the same number
    int64_t number;
} MccProcess;
MccProcess mcc_process_self(void);
bool mcc_process_gone(const MccProcess* process);

// coll_mcastcoll_peers.c
int mcc_peers_open(void);  // publishes this process's card; an Open MPI code
void mcc_peers_close(void);
// Whether all members could be in a group, as far as their cards tell, and on how many hosts they are (0: no
// memory); else the reason.
bool mcc_peers_agree(ompi_communicator_t* comm, int* host_count, char* reason);
// Compares the addresses of all hosts, and notes where the provider is to be opened (MccProvider's wanted),
// if it is not open yet. False: no network connects the hosts, for a reason that is the same on all members.
bool mcc_peers_choose_way(ompi_communicator_t* comm, char* reason);
// Whether the members' addresses, one after the other, can be those of one group; else the reason, as above.
bool mcc_peers_distinct(ompi_communicator_t* comm, const uint8_t* addresses, char* reason);
// One member of each host but rank 0's, of not more hosts than are probed; how many.
unsigned mcc_peers_senders(ompi_communicator_t* comm, int ranks[kMccMaxProbed]);
// The job's addresses, from the cards of those that published them. The lock is held.
void mcc_peers_meet_all(void);
// Those of the communicator's members, this one not, that are on its host and can be looked at; how many. To
// be freed. Its cards were agreed on.
typedef struct {
    int rank;
    MccProcess process;
} MccNear;
size_t mcc_peers_near(ompi_communicator_t* comm, MccNear** near);
// The key that this process and that member have in common. False: its card has none.
bool mcc_peers_edge(ompi_communicator_t* comm, int rank, MccEdgeKey* edge);
uint64_t mcc_offers_digest(void);  // of what the provider has, once it is open

// coll_mcastcoll_meeting.c
// The messages between members while a group forms. Waiting ends when a member is known to be lost, and has
// no limit in time.
typedef struct {
    void* talk;          // while it goes on
    uint8_t* addresses;  // of all, one after the other
    bool has_secret;     // else the secret for this member was not for it, or was changed on its way
    MccSecret secret;    // rank 0's
    int unwilling;       // the first rank that does not want to join now, or -1
    MccProbe probe;      // whether datagrams arrive, which the next agreement says
} MccMeeting;
// Now that the provider was opened: all of it, the addresses to be freed in any case, or the same reason on
// all members, or that one does not want to join. 0, or a positive FI_E code: a member was lost (-1: it is
// not known which), and nobody can rely on the others any more. It goes on where there is nothing of all
// that.
int mcc_meeting_hold(ompi_communicator_t* comm, bool wants, MccMeeting* meeting, char* reason, int* lost);
// All members learn the worst result of a step: 0, or an error and one of the ranks that has it. Returns as
// above. `last`: or where there is an error: the meeting ends.
typedef struct {
    int error, rank;
} MccAgreed;
int mcc_meeting_agree(MccMeeting* meeting, int error, bool last, MccAgreed* agreed, int* lost);

// coll_mcastcoll_previous.c
void mcc_offer(MccModule* m, MccForm form, int collective, void (*function)(void));
// Modules are enabled from the lowest priority up: what the communicator holds now is what served before us.
// What nobody served is not served here either.
void mcc_previous_keep(MccModule* m, ompi_communicator_t* comm);
void mcc_previous_release(MccModule* m);
// Before and after a call of a previous module.
MccPrevious mcc_step_aside(MccModule* m, ompi_communicator_t* comm, MccCollective collective, MccHeld* held);
void mcc_step_back(MccModule* m, ompi_communicator_t* comm, const MccHeld* held);

// coll_mcastcoll_windows.c
void mcc_watch_windows(void);  // once Open MPI has its osc components
// A blocking collective was called. Leaves the communicator to Open MPI if an osc component called it, for a
// window that this thread is making.
void mcc_note_window(MccModule* m, ompi_communicator_t* comm);

// coll_mcastcoll_job.c
size_t mcc_longest_part(const MccJob* job);
// The part of the job from element `offset` on, as the next operation.
struct fi_mcastcoll_request mcc_part(const MccJob* job, size_t offset);
ssize_t mcc_post(MccGroup* g, const struct fi_mcastcoll_request* request, void* context);
bool mcc_unpacks_derived(const MccJob* job);  // afterwards, into a datatype that may be freed
// What is left to do when the provider is done. Once, in any case: lets go of datatypes and memory.
bool mcc_finish_job(MccJob* job, bool good);
// Says what failed, and returns MPI's code for it.
int mcc_fail(MccGroup* g, const MccJob* job, int error);

// coll_mcastcoll_request.c
// False if the previous module is to serve the call, or job->rc is for the caller.
bool mcc_start_job(MccJob* job, MccRoute route, ompi_request_t** request);
// The lock is held.
bool mcc_slot_ended(const void* context, int error, const char* text);  // false: it is no slot's context
void mcc_post_backlog(void);
void mcc_slots_free(void);
// The lock is not held. Returns how many requests were completed.
int mcc_complete_requests(void);

// coll_mcastcoll_fabric.c
// True where its collectives need to know the whole job before the first group.
bool mcc_fabric_is_eager(void);
// Opens the provider, unless that was tried before.
void mcc_fabric_open(void);                // the lock is held, or there is one thread
void mcc_progress_start(void);             // when there is a group; the lock is held
void mcc_stand_in_for(const MccGroup* g);  // when it has formed; the lock is held
void mcc_progress_stop(void);              // the lock is not held
void mcc_wait_step(void);                  // one turn of a waiting loop; the lock is not held
void mcc_groups_reap(bool all);            // the lock is held

// coll_mcastcoll_group.c
// A blocking collective of so many bytes has come, and there is no group yet: forms it, if that is worth it
// by now. An Open MPI code; the module's state says who serves the call.
int mcc_group_consider(MccModule* module, ompi_communicator_t* comm, MccCollective collective, size_t bytes);
void mcc_group_orphan(MccGroup* group);
// As far as is known: the provider has it, and this module's group did not refuse it.
bool mcc_group_has(const MccModule* m, enum fi_collective_op collective);
// Says that the communicator is left to others; where it is the whole job, the user hears of it.
void mcc_report_off(ompi_communicator_t* comm, const char* reason);

// coll_mcastcoll_run.c
// A member was lost, or an operation failed. No further call succeeds, neither here nor in the previous
// modules, since members may have made different numbers of calls.
bool mcc_has_failed(const MccModule* m);
// Who serves this job, by what MPI makes equal on all ranks: its collective and its bytes (see
// coll_mcastcoll_select.c), and whether the group has the provider's collective. Makes the group at the first
// call.
MccRoute mcc_route(MccJob* job, enum fi_collective_op needed, size_t bytes);
// One operation from its start to its end. A positive FI_E code; FI_ENOSYS says that it was not begun, on no
// member.
int mcc_run(MccGroup* g, const struct fi_mcastcoll_request* request);
bool mcc_run_job(MccJob* job, MccRoute route);  // as mcc_start_job()
void mcc_measured(MccJob* job);                 // the end of a call that is part of a trial

// coll_mcastcoll_calls.c
void (*mcc_entry(MccCollective collective, MccForm form))(void);

#endif
