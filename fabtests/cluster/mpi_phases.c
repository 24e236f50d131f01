// mpi_phases -- verified broadcasts without a pause while another process changes the network.
//
// The effect of a multicast outage or recovery on operations under way shows only if operations are under way
// at that moment, on a fast machine as on a slow one. So phases do not depend on time: a phase is a number of
// broadcasts. When they are done, rank 0 creates the file DIR/done.N and continues to broadcast until the
// file DIR/go.N exists: then phase N+1 begins, on all ranks with the same broadcast, because the broadcasts
// carry the order to begin it. The broadcasts between two phases belong to neither. The last phase has at
// least three times as many broadcasts as all before it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "../mpi/mpi_support.h"

enum { kMaxPhases = 8, kOrders = 1 };  // the first byte of a broadcast is the order, the rest the pattern

typedef enum { kGoOn = 0, kNextPhase = 1, kEnd = 2 } Order;

typedef struct {
    uint64_t counts[kMaxPhases];
    int phases;
    uint64_t bytes;
    int root;  // -1: every rank in turn
    const char *folder, *json;
} Options;

typedef struct {
    uint64_t broadcasts, between;  // broadcasts counted, and broadcasts between this phase and the next
    double seconds;                // duration of the counted ones
} Phase;

static const char kHelp[] =
    "usage: mpirun ... mpi_phases --dir DIR [options]\n"
    "  --dir DIR          where done.N is left and go.N is looked for; must be empty\n"
    "  --phases N,N,...   broadcasts of each phase [300,300,300]\n"
    "  --size BYTES       of every broadcast, at least 1, with K or M [8]\n"
    "  --root N|rotate    the broadcasting rank [rotate]\n"
    "  --json FILE        write the result there too\n"
    "  --help, --version\n";

static int parse_phases(char* text, Options* o) {
    o->phases = 0;
    for (char* word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        if (o->phases == kMaxPhases || parse_size(word, &o->counts[o->phases]) != 0) return -1;
        if (o->counts[o->phases++] == 0) return -1;
    }
    return o->phases > 0 ? 0 : -1;
}

static Options parse(int argc, char** argv, int rank, int size) {
    Options o = {.counts = {300, 300, 300}, .phases = 3, .bytes = 8, .root = -1};
    static const struct option kLong[] = {
        {"dir", 1, NULL, 'd'},  {"phases", 1, NULL, 'p'}, {"size", 1, NULL, 's'},    {"root", 1, NULL, 'r'},
        {"json", 1, NULL, 'j'}, {"help", 0, NULL, 'h'},   {"version", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
    uint64_t root = 0;
    int bad = 0;
    opterr = rank == 0;
    for (int c; (c = getopt_long(argc, argv, "", kLong, NULL)) != -1;) {
        switch (c) {
            case 'd':
                o.folder = optarg;
                break;
            case 'p':
                bad |= parse_phases(optarg, &o);
                break;
            case 's':
                bad |= parse_size(optarg, &o.bytes) || o.bytes == 0 || o.bytes > (UINT64_C(1) << 28);
                break;
            case 'r':
                if (strcmp(optarg, "rotate") == 0) break;
                bad |= parse_size(optarg, &root) || root >= (uint64_t)size;
                o.root = (int)root;
                break;
            case 'j':
                o.json = optarg;
                break;
            case 'h':
                leave(rank, 0, kHelp);
                break;
            case 'v':
                leave(rank, 0, "mpi_phases " MCC_VERSION "\n");
                break;
            default:
                bad = 1;
        }
    }
    if (bad || optind != argc || o.folder == NULL) leave(rank, 2, "mpi_phases: bad arguments, see --help\n");
    return o;
}

static double now_s(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void path_of(char* path, size_t size, const Options* o, const char* what, int phase) {
    (void)snprintf(path, size, "%s/%s.%d", o->folder, what, phase + 1);
}

static void leave_mark(const Options* o, int phase) {
    char path[4096];
    path_of(path, sizeof path, o, "done", phase);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd >= 0) {
        close(fd);
        return;
    }
    fprintf(stderr, "mpi_phases: %s: %s\n", path, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, 2);
}

// Returns the root's order. All ranks have the same count and share a file system, so any rank can be the
// root.
static Order decide(const Options* o, const Phase* now, int phase, uint64_t target) {
    if (now->broadcasts < target) return kGoOn;
    char path[4096];
    path_of(path, sizeof path, o, "done", phase);
    if (access(path, F_OK) != 0) leave_mark(o, phase);
    if (phase == o->phases - 1) return kEnd;
    path_of(path, sizeof path, o, "go", phase);
    return access(path, F_OK) == 0 ? kNextPhase : kGoOn;
}

static void broadcast(const Options* o, uint8_t* buffer, int rank, int root, uint64_t number, Order* order) {
    for (uint64_t b = 0; b < o->bytes; ++b) buffer[b] = rank == root ? pattern_byte(number, b) : 0xa5;
    if (rank == root) buffer[0] = (uint8_t)*order;
    const int rc = MPI_Bcast(buffer, (int)o->bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    bool good = rc == MPI_SUCCESS && buffer[0] <= kEnd;
    for (uint64_t b = kOrders; good && b < o->bytes; ++b) good = buffer[b] == pattern_byte(number, b);
    if (!good) {
        fprintf(stderr, "rank %d: broadcast %llu from root %d: %s\n", rank, (unsigned long long)number, root,
                rc == MPI_SUCCESS ? "wrong bytes" : "MPI_Bcast returned an error");
        // The order may be wrong, too, and ranks with different orders would wait for each other for ever.
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    *order = (Order)buffer[0];
}

static uint64_t run(const Options* o, int rank, int size, Phase* phases) {
    uint8_t* buffer = malloc(o->bytes);
    if (buffer == NULL) {
        fprintf(stderr, "mpi_phases: no memory for %llu bytes\n", (unsigned long long)o->bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 0;
    }
    uint64_t number = 0;
    for (int phase = 0; phase < o->phases; ++phase) {
        Phase* now = &phases[phase];
        const bool last = phase == o->phases - 1;
        const uint64_t target = last && 3 * number > o->counts[phase] ? 3 * number : o->counts[phase];
        const double start = now_s();
        for (Order order = kGoOn; order == kGoOn; ++number) {
            const int root = o->root >= 0 ? o->root : (int)(number % (uint64_t)size);
            if (rank == root) order = decide(o, now, phase, target);
            broadcast(o, buffer, rank, root, number, &order);
            if (now->broadcasts < target) {
                if (++now->broadcasts == target) now->seconds = now_s() - start;
            } else {
                ++now->between;
            }
        }
    }
    free(buffer);
    return number;
}

static void report(const Options* o, int size, const Phase* phases, uint64_t broadcasts) {
    FILE* json = o->json != NULL ? fopen(o->json, "w") : NULL;
    if (o->json != NULL && json == NULL) {
        fprintf(stderr, "mpi_phases: %s: %s\n", o->json, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (json) {
        fprintf(json, "{\"ranks\": %d, \"bytes\": %llu, \"broadcasts\": %llu, \"phases\": [", size,
                (unsigned long long)o->bytes, (unsigned long long)broadcasts);
    }
    for (int p = 0; p < o->phases; ++p) {
        const unsigned long long counted = phases[p].broadcasts, between = phases[p].between;
        const double mean_us = phases[p].seconds * 1e6 / (double)counted;
        printf("phase %d: %llu broadcasts, %llu more until the next, %.0f us each\n", p + 1, counted, between,
               mean_us);
        if (json)
            fprintf(json, "%s{\"broadcasts\": %llu, \"between\": %llu, \"mean_us\": %.1f}", p > 0 ? ", " : "",
                    counted, between, mean_us);
    }
    printf("%llu broadcasts of %llu bytes, 0 bad: ok\n", (unsigned long long)broadcasts,
           (unsigned long long)o->bytes);
    if (json && (fputs("]}\n", json) < 0 || fclose(json) != 0))
        fprintf(stderr, "mpi_phases: %s: %s\n", o->json, strerror(errno));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const Options o = parse(argc, argv, rank, size);
    Phase phases[kMaxPhases] = {{0}};
    const uint64_t broadcasts = run(&o, rank, size, phases);
    if (rank == 0) report(&o, size, phases, broadcasts);
    MPI_Finalize();
    return 0;
}
