// Loads libfabric when the first group forms and not with the component: libfabric loads the libraries of all
// its providers, and two of these need 0.1 s each to start, in every process. So this file defines wrappers
// for the libfabric functions in use; the wrappers are invisible to other libraries.

#include <dlfcn.h>

#include "coll_mcastcoll.h"

#define MCC_LIBFABRIC(X) \
    X(fi_version)        \
    X(fi_dupinfo)        \
    X(fi_freeinfo)       \
    X(fi_getinfo)        \
    X(fi_fabric)         \
    X(fi_strerror)

#define MCC_POINTER(name) __typeof__(name)* name;
static struct { MCC_LIBFABRIC(MCC_POINTER) } g_libfabric;  // set once, with the lock held

bool mcc_load(char* reason) {
    if (NULL != g_libfabric.fi_strerror) return true;
    // Stays loaded, since other libraries of the process may use libfabric as well.
    void* library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NODELETE);
    if (NULL == library) {
        snprintf(reason, kMccReasonBytes, "libfabric: %.200s", dlerror());
        return false;
    }
    bool good = true;
#define MCC_FIND(name)                                    \
    {                                                     \
        void* found = dlsym(library, #name);              \
        memcpy(&g_libfabric.name, &found, sizeof(found)); \
        good = good && NULL != found;                     \
    }
    MCC_LIBFABRIC(MCC_FIND)
    // A new major version may change the structures.
    if (good && FI_MAJOR(g_libfabric.fi_version()) == FI_MAJOR_VERSION) return true;
    snprintf(reason, kMccReasonBytes,
             "libfabric has another version than the one that the component was built for");
    memset(&g_libfabric, 0, sizeof(g_libfabric));
    return false;
}

struct fi_info* fi_dupinfo(const struct fi_info* info) {
    return g_libfabric.fi_dupinfo(info);
}

void fi_freeinfo(struct fi_info* info) {
    g_libfabric.fi_freeinfo(info);
}

int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags,
               const struct fi_info* hints, struct fi_info** info) {
    return g_libfabric.fi_getinfo(version, node, service, flags, hints, info);
}

int fi_fabric(struct fi_fabric_attr* attr, struct fid_fabric** fabric, void* context) {
    return g_libfabric.fi_fabric(attr, fabric, context);
}

// If libfabric could not be loaded, returns the C library's text.
const char* fi_strerror(int error) {
    return NULL != g_libfabric.fi_strerror ? g_libfabric.fi_strerror(error) : strerror(error);
}
