// Which of two ways is faster here, found by trying both (the word "measured" in coll_mcastcoll_select.h).
//
// Why it exists: whether a long broadcast gains by multicast depends on links and processors, and no table
// knows them. So a communicator's first calls of a class of sizes go both ways by turns, and each member
// notes how long each took. Then all take the maximum over the members, hence the same numbers, and decide
// alike. The median of a way's turns counts, so that a member that was slow once decides nothing.
//
// Pure: no clock, no messages, nothing of Open MPI.

#ifndef MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_TRIAL_H
#define MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    kMccTrialTurns = 5,    // of each way that count; one before them does not
    kMccTrialPerCent = 5,  // by so much the others have to be faster
    kMccTrialClasses = 64,
};

typedef enum { kMccOurs, kMccOthers, kMccWays } MccWay;

typedef struct {
    unsigned calls;
    bool known;  // and then better is
    MccWay better;
    uint64_t ns[kMccWays][kMccTrialTurns];  // mine, and once they are agreed on, the slowest member's
} MccTrial;

// Powers of two of bytes, which MPI makes equal on all members.
static inline unsigned mcc_trial_class(size_t bytes) {
    return bytes > 0 ? kMccTrialClasses - 1 - (unsigned)__builtin_clzll(bytes) : 0;
}
// Nothing is left to try: the members may agree, and decide.
static inline bool mcc_trial_is_over(const MccTrial* t) {
    return t->calls >= kMccWays * (kMccTrialTurns + 1);
}
static inline MccWay mcc_trial_turn(const MccTrial* t) {
    return 0 == t->calls % kMccWays ? kMccOurs : kMccOthers;
}
static inline void mcc_trial_end(MccTrial* t, MccWay better) {
    t->known = true;
    t->better = better;
}
void mcc_trial_note(MccTrial* t, uint64_t ns);
uint64_t mcc_trial_median(const MccTrial* t, MccWay way);
void mcc_trial_decide(MccTrial* t);

#endif
