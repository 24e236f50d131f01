// Checks whether processes of this host still exist. Number and start time identify a process, so that a
// later process with the same number is not mistaken for the earlier one. Only the kernel decides whether a
// process lives; a slow or stopped process counts as alive.

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "coll_mcastcoll.h"

// Reads the state and the start time of a process. Returns 0 or an errno.
static int read_state(int64_t number, char* state, uint64_t* start) {
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)number);
    FILE* file = fopen(path, "re");
    if (NULL == file) return errno;
    const size_t got = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[got] = '\0';
    // The state follows the process name in brackets, which may contain any character.
    const char* rest = strrchr(text, ')');
    unsigned long long ticks = 0;
    if (NULL == rest || 2 != sscanf(rest + 1,
                                    " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                    "%*s %llu",
                                    state, &ticks))
        return ESRCH;
    *start = ticks;
    return 0;
}

// Returns a digest of the boot ID and the PID namespace: equal for processes that use the same process
// numbers. 0: unknown.
static uint64_t number_space(void) {
    char boot[64] = "", space[64] = "";
    FILE* file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool read = NULL != file && NULL != fgets(boot, sizeof(boot), file);
    if (NULL != file) (void)fclose(file);
    if (!read || readlink("/proc/self/ns/pid", space, sizeof(space) - 1) <= 0) return 0;
    const uint64_t state = mcc_digest(kMccDigest, boot, strlen(boot));
    const uint64_t digest = mcc_digest(state, space, strlen(space));
    return 0 != digest ? digest : 1;
}

MccProcess mcc_process_self(void) {
    char state;
    MccProcess self = {.space = number_space(), .number = getpid()};
    if (0 != read_state(self.number, &state, &self.start)) self.space = 0;
    return self;
}

bool mcc_process_gone(const MccProcess* process) {
    char state = '\0';
    uint64_t start = 0;
    const int error = read_state(process->number, &state, &start);
    // If /proc hides the process, only the number can be checked.
    if (0 != error) return 0 != kill((pid_t)process->number, 0) && ESRCH == errno;
    return start != process->start || 'Z' == state || 'X' == state;
}
