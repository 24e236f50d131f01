// The previous modules of a communicator, and calls of previous modules. Open MPI expects each module to
// store the modules that served the communicator before.
//
// Some Open MPI collectives are composites: they call other collectives of the same communicator and assume
// that these are Open MPI's own. allgatherv (basic_default) and reduce_scatter(_block) (basic) ignore the
// result of the last call. coll/han falls back to the communicator's current module, which must not be the
// module that called coll/han. So during a call of a previous module, the communicator holds the previous
// modules, as without this component. If the call installs another module, as coll/han does, this module
// becomes the new previous module.

#include "coll_mcastcoll.h"

typedef void (*Function)(void);

// The offsets of a collective's two forms in Open MPI's module structure and in the communicator's table.
static const struct {
    size_t in_module, held, held_module;  // function in the module; function and module in the table
} kFields[kMccCollectives][kMccForms] = {
#define MCC_FIELD(field)                                                                     \
    {                                                                                        \
        offsetof(mca_coll_base_module_t, field), offsetof(mca_coll_base_comm_coll_t, field), \
            offsetof(mca_coll_base_comm_coll_t, field##_module)                              \
    }
#define MCC_FIELDS(enumerator, name, collective) \
    [enumerator] = {MCC_FIELD(coll_##name), MCC_FIELD(coll_i##name)},
    MCC_COLLECTIVES(MCC_FIELDS)};

static void read_held(const ompi_communicator_t* comm, MccForm form, int collective, MccPrevious* held) {
    const char* base = (const char*)comm->c_coll;
    memcpy(&held->function, base + kFields[collective][form].held, sizeof(held->function));
    memcpy(&held->module, base + kFields[collective][form].held_module, sizeof(held->module));
}

static void write_held(ompi_communicator_t* comm, MccForm form, int collective, const MccPrevious* held) {
    char* base = (char*)comm->c_coll;
    memcpy(base + kFields[collective][form].held, &held->function, sizeof(held->function));
    memcpy(base + kFields[collective][form].held_module, &held->module, sizeof(held->module));
}

void mcc_offer(MccModule* m, MccForm form, int collective, Function function) {
    memcpy((char*)&m->super + kFields[collective][form].in_module, &function, sizeof(function));
}

void mcc_previous_keep(MccModule* m, ompi_communicator_t* comm) {
    for (int form = 0; form < kMccForms; ++form) {
        for (int i = 0; i < kMccCollectives; ++i) {
            MccPrevious* previous = &m->previous[form][i];
            read_held(comm, form, i, previous);
            if (NULL == previous->module) {
                mcc_offer(m, form, i, NULL);
            } else {
                OBJ_RETAIN(previous->module);
            }
        }
    }
}

void mcc_previous_release(MccModule* m) {
    for (int form = 0; form < kMccForms; ++form)
        for (int i = 0; i < kMccCollectives; ++i)
            if (NULL != m->previous[form][i].module) OBJ_RELEASE(m->previous[form][i].module);
}

MccPrevious mcc_install_previous(MccModule* m, ompi_communicator_t* comm, MccCollective collective,
                                 MccSavedModules* saved) {
    for (int i = 0; i < kMccCollectives; ++i) {
        read_held(comm, kMccBlocking, i, &saved->blocking[i]);
        if (NULL != m->previous[kMccBlocking][i].module)
            write_held(comm, kMccBlocking, i, &m->previous[kMccBlocking][i]);
    }
    return m->previous[kMccBlocking][collective];
}

// Installs the previous modules permanently in a communicator that will never have a group, so that later
// calls cost no more than without this component. This component's non-blocking forms stay installed, since
// another thread may be about to call a non-blocking collective.
static void install_permanently(MccModule* m, ompi_communicator_t* comm) {
    for (int i = 0; i < kMccCollectives; ++i) {
        const MccPrevious* previous = &m->previous[kMccBlocking][i];
        MccPrevious held;
        read_held(comm, kMccBlocking, i, &held);
        if (NULL == previous->module || &m->super != held.module) continue;
        OBJ_RETAIN(previous->module);
        write_held(comm, kMccBlocking, i, previous);
        OBJ_RELEASE(held.module);
    }
}

// A module's reference moves together with the module between `previous` and the communicator.
void mcc_restore_modules(MccModule* m, ompi_communicator_t* comm, const MccSavedModules* saved) {
    for (int i = 0; i < kMccCollectives; ++i) {
        MccPrevious* previous = &m->previous[kMccBlocking][i];
        if (NULL == previous->module) continue;
        read_held(comm, kMccBlocking, i, previous);
        write_held(comm, kMccBlocking, i, &saved->blocking[i]);
    }
    if (kMccLeft == m->state) install_permanently(m, comm);
}
