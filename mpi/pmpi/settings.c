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

// Refuses unknown names, since a misspelt setting would have no effect. For a name from before 0.9.0, the
// message gives the new one.
static bool check_names(const char* const names[], size_t count, char* reason) {
    static const struct {
        const char *former, *now;
    } kFormer[] = {{"MIN_BYTES", "BYTES=MIN-MAX"},
                   {"MAX_BYTES", "BYTES=MIN-MAX"},
                   {"PROVIDER", "EXPERIMENT=provider=NAME"},
                   {"JOIN_TIMEOUT", "EXPERIMENT=join_timeout=N"},
                   {"LINGER", "EXPERIMENT=linger=N"},
                   {"PROGRESS", "EXPERIMENT=progress=thread or none"},
                   {"WAIT", "EXPERIMENT=wait=auto, spin or nap"}};
    for (char** entry = environ; NULL != *entry; ++entry) {
        if (0 != strncmp(*entry, PREFIX, sizeof(PREFIX) - 1)) continue;
        const char* name = *entry + sizeof(PREFIX) - 1;
        const size_t letters = strcspn(name, "=");
        char all[kMccReasonBytes] = "";
        size_t i = 0;
        for (; i < count; ++i) {
            if (strlen(names[i]) == letters && 0 == strncmp(names[i], name, letters)) break;
            snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", 0 == i ? PREFIX : ", _", names[i]);
        }
        if (i < count) continue;
        snprintf(reason, kMccReasonBytes, PREFIX "%.*s: there are %s", (int)letters, name, all);
        for (i = 0; i < sizeof(kFormer) / sizeof(kFormer[0]); ++i)
            if (strlen(kFormer[i].former) == letters && 0 == strncmp(kFormer[i].former, name, letters))
                snprintf(reason, kMccReasonBytes, PREFIX "%s has another name now: set " PREFIX "%s",
                         kFormer[i].former, kFormer[i].now);
        return false;
    }
    return true;
}

// Reads BYTES: "N" or "N-" (at least N), "N-M", or "-M" (at most M).
static bool read_bytes(const char* text, PmpiSettings* s, char* reason) {
    enum { kMax = 1 << 30 };
    size_t low = 0, high = kMax;
    const char* at = text;
    if ('-' != *at) at = mcc_read_number(at, &low);
    if (NULL != at && '-' == *at && '\0' != *++at) at = mcc_read_number(at, &high);
    if (NULL != at && '\0' == *at && at != text + ('-' == *text) && low <= high && high <= kMax) {
        s->min_bytes = low;
        s->max_bytes = high;
        return true;
    }
    snprintf(reason, kMccReasonBytes,
             PREFIX "BYTES=%.60s: give MIN-MAX, MIN- or -MAX, from 0 to 1G (K, M and G are known)", text);
    return false;
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
    enum { kVerbose, kMinMembers, kNumbers };
    enum { kJoinTimeout, kLinger, kProgress, kWait, kProvider, kExperiments };
    static const char* const kNames[] = {"ENABLE", "MIN_MEMBERS", "BYTES", "VERBOSE", "EXPERIMENT"};
    *s = (PmpiSettings){.provider = "mcastcoll"};
    MccSetting numbers[kNumbers] = {[kVerbose] = {"VERBOSE", .high = 2},
                                    [kMinMembers] = {"MIN_MEMBERS", .value = 2, .low = 2, .high = 1 << 20}};
    MccSetting experiments[kExperiments] = {
        [kJoinTimeout] = {"join_timeout", .value = 30000, .low = 1, .high = 3600000},
        [kLinger] = {"linger", .value = 2000, .high = 3600000},
        [kProgress] = {"progress", .value = 1, .words = {"none", "thread"}},
        [kWait] = {"wait", .words = {"auto", "spin", "nap"}},
        [kProvider] = {"provider", .text = s->provider}};
    bool good = true;
    for (int i = 0; i < kNumbers && good; ++i) {
        const char* value = value_of(numbers[i].name);
        good = NULL == value || mcc_read_setting(PREFIX, &numbers[i], value, reason);
    }
    const char *enable = value_of("ENABLE"), *bytes = value_of("BYTES"), *list = value_of("EXPERIMENT");
    good = good && read_bytes(NULL != bytes ? bytes : "0-", s, reason) &&
           mcc_read_experiment(PREFIX "EXPERIMENT", NULL != list ? list : "", experiments, kExperiments,
                               reason) &&
           mcc_read_collectives(PREFIX "ENABLE", NULL != enable ? enable : "all", &s->enabled, reason) &&
           check_names(kNames, sizeof(kNames) / sizeof(kNames[0]), reason);
    s->verbose = (int)numbers[kVerbose].value;
    s->min_members = (int)numbers[kMinMembers].value;
    s->join_timeout_ms = (int)experiments[kJoinTimeout].value;
    s->linger_ms = (int)experiments[kLinger].value;
    s->progress_thread = 1 == experiments[kProgress].value;
    s->nap = 2 == experiments[kWait].value || (0 == experiments[kWait].value && more_ranks_than_cores());
    return good;
}
