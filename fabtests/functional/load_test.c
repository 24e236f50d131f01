// load_test [--help] [--version] PATH -- opens the provider as libfabric does, in plain C: dlopen(),
// fi_prov_ini(), checks of the returned provider; then closes it and opens it again. Exits with 0 on success.

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <string.h>

typedef struct fi_provider* (*init_function)(void);

static int complain(const char* what, const char* detail) {
    fprintf(stderr, "load_test: %s%s%s\n", what, detail != NULL ? ": " : "", detail != NULL ? detail : "");
    return 1;
}

static int check_provider(const struct fi_provider* provider) {
    if (provider == NULL) return complain("fi_prov_ini() returned nothing", NULL);
    if (provider->name == NULL || strcmp(provider->name, "mcastcoll") != 0)
        return complain("wrong name", provider->name);
    if (FI_VERSION_LT(provider->fi_version, fi_version()))
        return complain("older than this libfabric, which would skip it", NULL);
    if (provider->version == 0) return complain("no version of its own", NULL);
    if (provider->getinfo == NULL || provider->fabric == NULL || provider->cleanup == NULL)
        return complain("entry points are missing", NULL);

    // libfabric does not make this call, but the provider must not crash on it.
    struct fid_fabric* fabric = NULL;
    struct fi_fabric_attr attr = {.name = "no such fabric", .prov_name = "mcastcoll"};
    if (provider->fabric(&attr, &fabric, NULL) != -FI_ENODEV)
        return complain("opened a fabric that is not there", NULL);
    if (provider->fabric(NULL, &fabric, NULL) != -FI_EINVAL) return complain("took a null attribute", NULL);
    return 0;
}

int main(int argc, char** argv) {
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return printf("usage: load_test [--help] [--version] PATH-OF-libmcastcoll-fi.so\n"), 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) return printf("load_test (mcastcoll)\n"), 0;
    if (argc != 2) return complain("one argument is needed: the path of libmcastcoll-fi.so", NULL), 2;

    for (int round = 0; round < 2; ++round) {
        void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) return complain("dlopen", dlerror());
        init_function init = NULL;
        *(void**)&init = dlsym(library, "fi_prov_ini");
        if (init == NULL) return complain("dlsym", dlerror());
        struct fi_provider* provider = init();
        if (check_provider(provider) != 0) return 1;
        if (provider != init()) return complain("a second call returned another provider", NULL);
        provider->cleanup();
        if (dlclose(library) != 0) return complain("dlclose", dlerror());
    }
    return 0;
}
