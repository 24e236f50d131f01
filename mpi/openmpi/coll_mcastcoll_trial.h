// Which of two ways is faster here, found by trying both (the word "measured" in coll_mcastcoll_select.c).
//
// Why it exists: whether a long broadcast gains by multicast depends on links and processors, and no table
// knows them. So some of a communicator's calls of a class of sizes go both ways by turns, and each member
// notes how long each took. Then all take the maximum over the members, hence the same numbers, and decide
// alike. The median of a way's turns counts, so that a member that was slow once decides nothing.
//
//     ours serve -> trial -> pause -> trial -> pause, twice as long -> trial ...
//                     \-> the other way won: a rest, a second trial; if it won again, it serves now
//
// A group's first long operations touch their buffers for the first time and are slow, so they are no part of
// a trial. A machine that is busy with something else makes a whole trial wrong. So one trial changes
// nothing, and what was found is tried again, ever more seldom.
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
    kMccTrialFirst = 80,   // calls before the first trial: more than buffers that the engine takes in turn
    kMccTrialRest = 30,    // calls between a trial that says otherwise and the second one
    kMccTrialPause = 500,  // calls before what was found is tried again; then twice as many, and so on
    kMccTrialLongestPause = 1 << 20,
    kMccTrialClasses = 64,
};

typedef enum { kMccOurs, kMccOthers, kMccWays } MccWay;

typedef struct {
    unsigned turns;  // of the trial under way, or next
    unsigned wait;   // calls until it begins
    unsigned pause;  // the last long one
    bool doubted;    // the last trial found the way that does not serve faster
    bool closed;     // there is no further one
    MccWay better;   // serves the calls between trials: ours, until two trials in a row say otherwise
    uint64_t ns[kMccWays][kMccTrialTurns];  // mine, and once they are agreed on, the slowest member's
} MccTrial;

// Powers of two of bytes, which MPI makes equal on all members.
static inline unsigned mcc_trial_class(size_t bytes) {
    return bytes > 0 ? kMccTrialClasses - 1 - (unsigned)__builtin_clzll(bytes) : 0;
}
// A call comes. True: it has no part in a trial.
static inline bool mcc_trial_rests(MccTrial* t) {
    if (t->closed) return true;
    if (0 == t->wait) return false;
    --t->wait;
    return true;
}
// All turns are taken: the members may agree, and decide.
static inline bool mcc_trial_is_over(const MccTrial* t) {
    return t->turns >= kMccWays * (kMccTrialTurns + 1);
}
static inline MccWay mcc_trial_turn(const MccTrial* t) {
    return 0 == t->turns % kMccWays ? kMccOurs : kMccOthers;
}
// Nothing is tried any more, and ours serves.
static inline void mcc_trial_close(MccTrial* t) {
    t->closed = true;
    t->better = kMccOurs;
}
void mcc_trial_note(MccTrial* t, uint64_t ns);
uint64_t mcc_trial_median(const MccTrial* t, MccWay way);
void mcc_trial_decide(MccTrial* t);

#endif
