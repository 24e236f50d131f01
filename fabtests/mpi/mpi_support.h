// Shared by the MPI test programs: a seeded generator with the same sequence on every rank, the byte pattern
// of an operation, and the command line with strict parsing of numbers. Header only, so that each program is
// a single file for mpicc.

#ifndef MCASTCOLL_FABTESTS_MPI_SUPPORT_H
#define MCASTCOLL_FABTESTS_MPI_SUPPORT_H

#include <errno.h>
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MCC_VERSION
#define MCC_VERSION "development"
#endif

static inline uint64_t next_random(uint64_t* state) {  // splitmix64
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t random_between(uint64_t* state, uint64_t low, uint64_t high) {
    return high - low == UINT64_MAX ? next_random(state) : low + next_random(state) % (high - low + 1);
}

// Returns the byte at an offset of an operation. The byte depends on the operation and on every bit of the
// offset, so that a byte of another fragment or broadcast is detected.
static inline uint8_t pattern_byte(uint64_t operation, uint64_t offset) {
    const uint64_t x = offset * UINT64_C(0x9e3779b97f4a7c15) + operation * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (uint8_t)((x ^ (x >> 29)) >> 17);
}

// Parses 4096, 64K, 16M, 1G. Returns 0 and sets *value, or -1.
static inline int parse_size(const char* text, uint64_t* value) {
    char* end = NULL;
    errno = 0;
    if (text[0] < '0' || text[0] > '9') return -1;
    uint64_t number = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (*end == 'K' || *end == 'k') shift = 10;
    if (*end == 'M' || *end == 'm') shift = 20;
    if (*end == 'G' || *end == 'g') shift = 30;
    if (shift != 0) ++end;
    if (errno != 0 || *end != '\0' || number > (UINT64_MAX >> shift)) return -1;
    *value = number << shift;
    return 0;
}

// Ends the job with this status: 2 after an error, 0 after --help and --version. All ranks parse the same
// command line; only rank 0 prints.
static inline void leave(int rank, int status, const char* text) {
    if (rank == 0) fputs(text, status == 0 ? stdout : stderr);
    MPI_Finalize();
    exit(status);
}

static inline void refuse_arguments(int rank, const char* program) {
    char text[100];
    snprintf(text, sizeof(text), "%s: bad arguments, see --help\n", program);
    leave(rank, 2, text);
}

// A command-line option: a number within bounds, a word, or a switch.
typedef struct {
    const char* name;
    uint64_t* number;
    uint64_t low, high;
    const char** word;
    bool* given;
} Option;

enum { kMaxOptions = 12, kFirstOption = 256 };

// Parses the options, and --help and --version. The last of `options` has no name.
static inline void parse_options(int argc, char** argv, int rank, const char* program, const char* help,
                                 const Option* options) {
    struct option all[kMaxOptions + 3] = {{"help", 0, NULL, 'h'}, {"version", 0, NULL, 'v'}};
    for (int i = 0; i < kMaxOptions && options[i].name != NULL; ++i)
        all[i + 2] = (struct option){options[i].name, options[i].given == NULL, NULL, kFirstOption + i};
    bool bad = false;
    opterr = rank == 0;
    for (int c; (c = getopt_long(argc, argv, "", all, NULL)) != -1;) {
        if (c == 'h') leave(rank, 0, help);
        if (c == 'v') {
            char text[100];
            snprintf(text, sizeof(text), "%s %s\n", program, MCC_VERSION);
            leave(rank, 0, text);
        }
        const Option* o = &options[c < kFirstOption ? 0 : c - kFirstOption];
        if (c < kFirstOption)
            bad = true;
        else if (o->given != NULL)
            *o->given = true;
        else if (o->word != NULL)
            *o->word = optarg;
        else
            bad |= parse_size(optarg, o->number) != 0 || *o->number < o->low || *o->number > o->high;
    }
    if (bad || optind != argc) refuse_arguments(rank, program);
}

#endif
