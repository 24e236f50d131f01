#include "core/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/provider.h"

unsigned mcc_descriptors_to_open(int processes) {
    enum { kOfProvider = 64, kMaxOfMpi = 256 };
    return (unsigned)(kOfProvider + (processes < kMaxOfMpi ? processes : kMaxOfMpi));
}

// Counts the open descriptors below the limit; descriptors above the limit do not count. False: /proc is not
// readable.
static bool count_taken(unsigned long limit, unsigned long* taken) {
    DIR* folder = opendir("/proc/self/fd");
    *taken = limit;
    if (NULL == folder) return EMFILE == errno;
    *taken = 0;
    for (const struct dirent* entry; NULL != (entry = readdir(folder));)
        if ('.' != entry->d_name[0] && strtoul(entry->d_name, NULL, 10) < limit) ++*taken;
    closedir(folder);
    --*taken;  // opendir() has opened one of them
    return true;
}

bool mcc_descriptors_left(unsigned wanted, char* reason) {
    struct rlimit limit;
    unsigned long taken = 0;
    if (0 != getrlimit(RLIMIT_NOFILE, &limit) || RLIM_INFINITY == limit.rlim_cur ||
        !count_taken(limit.rlim_cur, &taken))
        return true;
    const unsigned long left = limit.rlim_cur - taken;
    if (left >= wanted) return true;
    snprintf(reason, kMccReasonBytes,
             "only %lu file descriptors are left (ulimit -n is %lu), and %u are needed", left,
             (unsigned long)limit.rlim_cur, wanted);
    return false;
}
