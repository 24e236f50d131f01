// Leaves the communicators of one-sided windows to Open MPI.
//
// In Open MPI's osc components, MPI_Win_fence and MPI_Win_free end with a barrier on the window's
// communicator. osc/rdma treats the local completion of a put as the remote completion where the network
// reports no remote completion (btl/ofi, btl/tcp), and relies on a barrier that travels behind the puts on
// the same connections. A group's barrier overtakes the puts. Open MPI never waits for the remote completion,
// so a group cannot wait for it either.
//
// A window's communicator is a copy of the program's communicator, made by the osc component without any
// mark. But each osc component calls collectives on the copy before MPI_Win_create returns. So this file adds
// an osc component to Open MPI's list. The added component accepts each window, passes the window to the
// component that Open MPI would have chosen, and records meanwhile for which communicator the thread creates
// a window. If the first collective of a communicator comes during this time, the communicator belongs to the
// window. Every member finds the same, since the creation of a window is collective.

#include "coll_mcastcoll.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"

typedef ompi_osc_base_component_t Osc;

static _Thread_local const ompi_communicator_t* window_of;

static Osc windows;

static int select_best(struct ompi_win_t* win, void** base, size_t size, int unit, ompi_communicator_t* comm,
                       struct opal_info_t* info, int flavor, Osc** best) {
    mca_base_component_list_item_t* item;
    int max = -1, refusal = -1;
    *best = NULL;
    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components, mca_base_component_list_item_t) {
        Osc* one = (Osc*)(uintptr_t)item->cli_component;
        // osc/monitoring wraps other components, as this component does, and would pass the window back.
        if (one == &windows || 0 == strcmp(one->osc_version.mca_component_name, "monitoring")) continue;
        const int priority = one->osc_query(win, base, size, unit, comm, info, flavor);
        if (OMPI_ERR_RMA_SHARED == priority) refusal = priority;  // returned by Open MPI 4.1
        if (priority <= max) continue;
        max = priority;
        *best = one;
    }
    return NULL != *best ? max : refusal;
}

// Returns the priority of the best other component. Among components with the same priority, Open MPI chooses
// the first in its list, which is this component.
static int query_windows(struct ompi_win_t* win, void** base, size_t size, int unit,
                         struct ompi_communicator_t* comm, struct opal_info_t* info, int flavor) {
    Osc* best;
    return select_best(win, base, size, unit, comm, info, flavor, &best);
}

static int make_window(struct ompi_win_t* win, void** base, size_t size, int unit,
                       struct ompi_communicator_t* comm, struct opal_info_t* info, int flavor, int* model) {
    Osc* best;
    (void)select_best(win, base, size, unit, comm, info, flavor, &best);
    if (NULL == best) return OMPI_ERR_NOT_SUPPORTED;
    window_of = comm;
    const int rc = best->osc_select(win, base, size, unit, comm, info, flavor, model);
    window_of = NULL;
    return rc;
}

static int init_windows(bool progress_threads, bool mpi_threads) {
    (void)progress_threads;
    (void)mpi_threads;
    return OMPI_SUCCESS;
}

static int finalize_windows(void) {
    return OMPI_SUCCESS;
}

static Osc windows = {
    .osc_version =
        {
            OMPI_OSC_BASE_VERSION_3_0_0,
            .mca_component_name = "mcastcoll",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        },
    .osc_init = init_windows,
    .osc_query = query_windows,
    .osc_select = make_window,
    .osc_finalize = finalize_windows,
};

void mcc_watch_windows(void) {
    opal_list_t* components = &ompi_osc_base_framework.framework_components;
    mca_base_component_list_item_t* item;
    if (0 == opal_list_get_size(components)) return;
    OPAL_LIST_FOREACH(item, components, mca_base_component_list_item_t) {
        if (item->cli_component == &windows.osc_version) return;
    }
    item = OBJ_NEW(mca_base_component_list_item_t);
    if (NULL == item) return;
    item->cli_component = &windows.osc_version;
    opal_list_prepend(components, &item->super);
}

// Called for blocking collectives only. Open MPI's progress may start non-blocking collectives of any
// communicator while a window is created.
void mcc_note_window(MccModule* m, ompi_communicator_t* comm) {
    if (NULL == window_of || comm == window_of || MPI_COMM_WORLD == comm || 0 != m->seen) return;
    m->state = kMccLeft;
    if (0 == ompi_comm_rank(comm))
        MCC_VERBOSE(1, "coll/mcastcoll leaves %s to Open MPI's own collectives: it belongs to a window",
                    comm->c_name);
}
