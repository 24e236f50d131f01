// The settings MCASTCOLL_PMPI_*, environment variables because no launcher configures a preloaded library. An
// invalid setting leaves the whole job to its MPI, since the members must not differ, and the message lists
// the valid values.

#define _GNU_SOURCE  // sched_getaffinity()
#include <sched.h>
#include <stdarg.h>

#include "pmpi.h"

Pmpi pmpi = {.provider = {.lock = PTHREAD_MUTEX_INITIALIZER}, .own_comm = MPI_COMM_NULL};

#define PREFIX "MCASTCOLL_PMPI_"

extern char** environ;

typedef struct {
    const char* name;
    uint64_t value;        // the default, then the value
    uint64_t low, high;    // valid range
    const char* words[4];  // or the valid words; the value is the index of a word
} Setting;

void pmpi_log(int level, const char* format, ...) {
    if (level > pmpi.settings.verbose) return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    // A single call, so that lines of several ranks do not mix.
    fprintf(stderr, "mcastcoll-pmpi: %s\n", line);
}

static const char* value_of(const char* name) {
    char variable[64];
    snprintf(variable, sizeof(variable), PREFIX "%s", name);
    const char* value = getenv(variable);
    return NULL != value && '\0' != value[0] ? value : NULL;
}

// False: the value is invalid.
static bool read_setting(Setting* s, char* reason) {
    const char* value = value_of(s->name);
    if (NULL == value) return true;
    if (NULL == s->words[0]) {
        size_t number = 0;
        const char* end = mcc_read_number(value, &number);
        const bool good = NULL != end && '\0' == *end && number >= s->low && number <= s->high;
        if (good) s->value = number;
        if (good) return true;
        snprintf(reason, kMccReasonBytes,
                 PREFIX "%s=%s: give a number from %llu to %llu (K, M and G are known)", s->name, value,
                 (unsigned long long)s->low, (unsigned long long)s->high);
        return false;
    }
    char all[100] = "";
    for (s->value = 0; NULL != s->words[s->value]; ++s->value) {
        if (0 == strcmp(s->words[s->value], value)) return true;
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", 0 == s->value ? "" : ", ",
                 s->words[s->value]);
    }
    snprintf(reason, kMccReasonBytes, PREFIX "%s=%s is none of %s", s->name, value, all);
    return false;
}

// Refuses unknown names, since a misspelt setting would have no effect.
static bool check_names(const Setting* settings, int count, char* reason) {
    for (char** entry = environ; NULL != *entry; ++entry) {
        if (0 != strncmp(*entry, PREFIX, sizeof(PREFIX) - 1)) continue;
        const char* name = *entry + sizeof(PREFIX) - 1;
        const size_t letters = strcspn(name, "=");
        char all[kMccReasonBytes] = "";
        int i = 0;
        for (; i < count; ++i) {
            if (strlen(settings[i].name) == letters && 0 == strncmp(settings[i].name, name, letters)) break;
            snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", 0 == i ? PREFIX : ", _",
                     settings[i].name);
        }
        if (i < count) continue;
        snprintf(reason, kMccReasonBytes, PREFIX "%.*s: there are %s", (int)letters, name, all);
        return false;
    }
    return true;
}

// Hydra sets MPI_LOCALNRANKS to the number of the job's processes on this host. Without this variable,
// waiting threads spin, as MPI libraries do.
static bool more_ranks_than_cores(void) {
    const char* ranks = getenv("MPI_LOCALNRANKS");
    cpu_set_t cores;
    return NULL != ranks && 0 == sched_getaffinity(0, sizeof(cores), &cores) &&
           strtol(ranks, NULL, 10) > CPU_COUNT(&cores);
}

bool pmpi_settings_read(PmpiSettings* s, char* reason) {
    enum { kVerbose, kMinMembers, kMinBytes, kMaxBytes, kJoinTimeout, kLinger, kProgress, kWait, kRead };
    enum { kEnable = kRead, kProvider, kSettings };
    Setting settings[kSettings] = {
        [kVerbose] = {"VERBOSE", .high = 2},
        [kMinMembers] = {"MIN_MEMBERS", .value = 2, .low = 2, .high = 1 << 20},
        [kMinBytes] = {"MIN_BYTES", .high = 1 << 30},
        [kMaxBytes] = {"MAX_BYTES", .value = 1 << 30, .high = 1 << 30},
        [kJoinTimeout] = {"JOIN_TIMEOUT", .value = 30000, .low = 1, .high = 3600000},
        [kLinger] = {"LINGER", .value = 2000, .high = 3600000},
        [kProgress] = {"PROGRESS", .value = 1, .words = {"none", "thread"}},
        [kWait] = {"WAIT", .words = {"auto", "spin", "nap"}},
        [kEnable] = {"ENABLE", .value = 0},
        [kProvider] = {"PROVIDER", .value = 0}};
    bool good = true;
    for (int i = 0; i < kRead && good; ++i) good = read_setting(&settings[i], reason);
    const char *enable = value_of("ENABLE"), *provider = value_of("PROVIDER");
    *s = (PmpiSettings){.min_members = (int)settings[kMinMembers].value,
                        .min_bytes = settings[kMinBytes].value,
                        .max_bytes = settings[kMaxBytes].value,
                        .join_timeout_ms = (int)settings[kJoinTimeout].value,
                        .linger_ms = (int)settings[kLinger].value,
                        .progress_thread = 1 == settings[kProgress].value,
                        .verbose = (int)settings[kVerbose].value};
    s->nap = 2 == settings[kWait].value || (0 == settings[kWait].value && more_ranks_than_cores());
    snprintf(s->provider, sizeof(s->provider), "%s", NULL != provider ? provider : "mcastcoll");
    return good &&
           mcc_read_collectives(PREFIX "ENABLE", NULL != enable ? enable : "all", &s->enabled, reason) &&
           check_names(settings, kSettings, reason);
}
