// MPI's performance variables (MPI 3.1, 14.3): the provider's counters of this process.

#include "coll_mcastcoll.h"
#include "opal/mca/base/mca_base_pvar.h"

// The provider's counter names, the help texts, and the last known values.
static struct {
    const char *name, *help;
    uint64_t value;
} variables[] = {
    {"group_operations", "Completed collectives, except blocking ones inside one host", 0},
    {"group_bytes", "Bytes of the messages, vectors or blocks of these collectives", 0},
    {"host_operations", "Collectives, or parts of collectives, that used the shared memory of a host", 0},
    {"host_bytes", "Bytes of the collectives that used the shared memory of a host", 0},
    {"datagrams_sent", "Multicast datagrams that this process sent", 0},
    {"datagrams_received", "Multicast datagrams that this process received", 0},
    {"fragments_by_multicast", "Fragments received by multicast", 0},
    {"fragments_repaired", "Lost fragments that were received by message", 0},
    {"fragments_restored", "Lost fragments that were computed from parity", 0},
    {"duplicates", "Fragments received more than once", 0},
    {"messages_sent", "Messages that this process sent to other members", 0},
    {"naks_sent", "Retransmit requests (NAKs) that this process sent", 0},
    {"naks_received", "Retransmit requests (NAKs) that this process received", 0},
    {"multicast_demotions", "Times that a group changed from multicast to messages", 0},
    {"multicast_promotions", "Times that a group changed back to multicast", 0},
};

// Reads the counter from any group, since the counters belong to the shared endpoint. Without a group, the
// last value stays.
static int read_variable(const struct mca_base_pvar_t* variable, void* value, void* object) {
    (void)object;
    const size_t i = (size_t)(uintptr_t)variable->ctx;
    MccProvider* p = &mcc_component.fabric;
    pthread_mutex_lock(&p->lock);
    for (MccJoin* j = p->joins; NULL != j; j = j->next)
        if (NULL != j->mc && NULL != j->get_counter &&
            0 == j->get_counter(j->mc, variables[i].name, &variables[i].value))
            break;
    *(unsigned long long*)value = variables[i].value;
    pthread_mutex_unlock(&p->lock);
    return OMPI_SUCCESS;
}

void mcc_variables_register(const mca_base_component_t* component) {
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i)
        (void)mca_base_component_pvar_register(
            component, variables[i].name, variables[i].help, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
            MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_variable, NULL, NULL,
            (void*)(uintptr_t)i);
}
