// libfabric, loaded when the first group forms, and not with the component.
//
// Why it exists: libfabric brings the libraries of all its providers, and two of these take a tenth of a
// second each to start, in every process. A job that needs no group must not pay that. So what libfabric
// exports and we use has its namesake here, which no other library sees.

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "coll_mcastcoll.h"

static struct {
    uint32_t (*version)(void);
    struct fi_info* (*dupinfo)(const struct fi_info*);
    void (*freeinfo)(struct fi_info*);
    int (*getinfo)(uint32_t, const char*, const char*, uint64_t, const struct fi_info*, struct fi_info**);
    int (*fabric)(struct fi_fabric_attr*, struct fid_fabric**, void*);
    const char* (*strerror)(int);
    char* (*tostr)(const void*, enum fi_type);
} g_libfabric;  // set once, with the component's lock held

static bool find(void* library, const char* name, void* function) {
    void* found = dlsym(library, name);
    memcpy(function, &found, sizeof(found));
    return NULL != found;
}

bool mcc_libfabric_load(char* reason) {
    if (NULL != g_libfabric.tostr) return true;
    // It stays for good: other libraries in this process may use it as well.
    void* library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NODELETE);
    if (NULL == library) {
        snprintf(reason, kMccReasonBytes, "libfabric: %.200s", dlerror());
        return false;
    }
    const bool good = find(library, "fi_version", &g_libfabric.version) &&
                      find(library, "fi_dupinfo", &g_libfabric.dupinfo) &&
                      find(library, "fi_freeinfo", &g_libfabric.freeinfo) &&
                      find(library, "fi_getinfo", &g_libfabric.getinfo) &&
                      find(library, "fi_fabric", &g_libfabric.fabric) &&
                      find(library, "fi_strerror", &g_libfabric.strerror) &&
                      find(library, "fi_tostr", &g_libfabric.tostr);
    // Its structures may grow with a major version.
    if (good && FI_MAJOR(g_libfabric.version()) == FI_MAJOR_VERSION) return true;
    snprintf(reason, kMccReasonBytes, "libfabric: another version than the component was built for");
    memset(&g_libfabric, 0, sizeof(g_libfabric));
    return false;
}

struct fi_info* fi_dupinfo(const struct fi_info* info) {
    return g_libfabric.dupinfo(info);
}

void fi_freeinfo(struct fi_info* info) {
    g_libfabric.freeinfo(info);
}

int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags,
               const struct fi_info* hints, struct fi_info** info) {
    return g_libfabric.getinfo(version, node, service, flags, hints, info);
}

int fi_fabric(struct fi_fabric_attr* attr, struct fid_fabric** fabric, void* context) {
    return g_libfabric.fabric(attr, fabric, context);
}

// Errors are explained where it could not be loaded, too.
const char* fi_strerror(int error) {
    return NULL != g_libfabric.strerror ? g_libfabric.strerror(error) : strerror(error);
}

char* fi_tostr(const void* data, enum fi_type type) {
    return g_libfabric.tostr(data, type);
}
