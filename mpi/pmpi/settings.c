// MCASTCOLL_PMPI_*: the only settings a library has that no launcher knows. A bad one leaves the whole job to
// its MPI, since the members must not differ, and says which values there are.

#define _GNU_SOURCE  // sched_getaffinity()
#include <sched.h>
#include <stdarg.h>

#include "pmpi.h"

#define PREFIX "MCASTCOLL_PMPI_"

extern char** environ;

static const char* const kSettings[] = {"ENABLE",       "PROVIDER", "MIN_MEMBERS", "MIN_BYTES", "MAX_BYTES",
                                        "JOIN_TIMEOUT", "LINGER",   "PROGRESS",    "WAIT",      "VERBOSE"};

void pmpi_say(int level, const char* format, ...) {
    if (level > pmpi.settings.verbose) return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fprintf(stderr, "mcastcoll-pmpi: %s\n", line);  // one call, one line, whatever other ranks write
}

static const char* value_of(const char* name) {
    char variable[64];
    snprintf(variable, sizeof(variable), PREFIX "%s", name);
    const char* value = getenv(variable);
    return NULL != value && '\0' != value[0] ? value : NULL;
}

static bool read_number(const char* name, uint64_t low, uint64_t high, uint64_t* number, char* reason,
                        size_t reason_bytes) {
    const char* value = value_of(name);
    if (NULL == value) return true;
    size_t got = 0;
    const char* end = mcc_read_number(value, &got);
    if (NULL == end || '\0' != *end || got < low || got > high) {
        snprintf(reason, reason_bytes, PREFIX "%s=%s: give a number from %llu to %llu (K, M and G are known)",
                 name, value, (unsigned long long)low, (unsigned long long)high);
        return false;
    }
    *number = got;
    return true;
}

// The index of the variable's word among `words`, which end with NULL; left as it is where it is not set.
static bool read_word(const char* name, const char* const* words, int* index, char* reason,
                      size_t reason_bytes) {
    const char* value = value_of(name);
    if (NULL == value) return true;
    char all[100] = "";
    for (int i = 0; NULL != words[i]; ++i) {
        if (0 == strcmp(words[i], value)) {
            *index = i;
            return true;
        }
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", 0 == i ? "" : ", ", words[i]);
    }
    snprintf(reason, reason_bytes, PREFIX "%s=%s is none of %s", name, value, all);
    return false;
}

static bool read_enabled(unsigned* enabled, char* reason, size_t reason_bytes) {
    static const char kPrefix[] = PREFIX "ENABLE: ";
    const char* value = value_of("ENABLE");
    snprintf(reason, reason_bytes, "%s", kPrefix);
    return mcc_read_collectives(NULL != value ? value : "all", enabled, reason + sizeof(kPrefix) - 1,
                                reason_bytes - sizeof(kPrefix) + 1);
}

// A setting that is misspelt would otherwise be silently without effect.
static bool check_names(char* reason, size_t reason_bytes) {
    for (char** entry = environ; NULL != *entry; ++entry) {
        if (0 != strncmp(*entry, PREFIX, sizeof(PREFIX) - 1)) continue;
        const char* name = *entry + sizeof(PREFIX) - 1;
        const size_t letters = strcspn(name, "=");
        bool known = false;
        for (size_t i = 0; i < sizeof(kSettings) / sizeof(kSettings[0]); ++i)
            known = known || (strlen(kSettings[i]) == letters && 0 == strncmp(name, kSettings[i], letters));
        if (known) continue;
        snprintf(reason, reason_bytes,
                 PREFIX "%.*s: there are " PREFIX
                        "ENABLE, _PROVIDER, _MIN_MEMBERS, _MIN_BYTES, _MAX_BYTES, _JOIN_TIMEOUT, _LINGER, "
                        "_PROGRESS, _WAIT and _VERBOSE",
                 (int)letters, name);
        return false;
    }
    return true;
}

// Hydra says how many of the job's processes are on this host. Where nobody says, threads stay awake, as MPIs
// do.
static bool more_ranks_than_cores(void) {
    const char* ranks = getenv("MPI_LOCALNRANKS");
    cpu_set_t cores;
    return NULL != ranks && 0 == sched_getaffinity(0, sizeof(cores), &cores) &&
           strtol(ranks, NULL, 10) > CPU_COUNT(&cores);
}

bool pmpi_settings_read(PmpiSettings* s, char* reason, size_t reason_bytes) {
    static const char* const kProgress[] = {"none", "thread", NULL};
    static const char* const kWait[] = {"auto", "spin", "nap", NULL};
    uint64_t verbose = 0, members = 2, join_timeout = 30000, linger = 2000;
    int progress = 1, wait = 0;
    memset(s, 0, sizeof(*s));
    s->max_bytes = UINT64_C(1) << 30;
    const char* provider = value_of("PROVIDER");
    snprintf(s->provider, sizeof(s->provider), "%s", NULL != provider ? provider : "mcastcoll");
    const bool good = read_number("VERBOSE", 0, 2, &verbose, reason, reason_bytes) &&
                      read_enabled(&s->enabled, reason, reason_bytes) &&
                      read_number("MIN_MEMBERS", 2, 1 << 20, &members, reason, reason_bytes) &&
                      read_number("MIN_BYTES", 0, 1 << 30, &s->min_bytes, reason, reason_bytes) &&
                      read_number("MAX_BYTES", 0, 1 << 30, &s->max_bytes, reason, reason_bytes) &&
                      read_number("JOIN_TIMEOUT", 1, 3600000, &join_timeout, reason, reason_bytes) &&
                      read_number("LINGER", 0, 3600000, &linger, reason, reason_bytes) &&
                      read_word("PROGRESS", kProgress, &progress, reason, reason_bytes) &&
                      read_word("WAIT", kWait, &wait, reason, reason_bytes) &&
                      check_names(reason, reason_bytes);
    s->verbose = (int)verbose;
    s->min_members = (int)members;
    s->join_timeout_ms = (int)join_timeout;
    s->linger_ms = (int)linger;
    s->progress_thread = 1 == progress;
    s->nap = 2 == wait || (0 == wait && more_ranks_than_cores());
    return good;
}
