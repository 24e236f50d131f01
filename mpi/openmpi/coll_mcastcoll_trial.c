#include "coll_mcastcoll_trial.h"

#include <stdlib.h>
#include <string.h>

void mcc_trial_note(MccTrial* t, uint64_t ns) {
    const unsigned turn = t->calls / kMccWays;
    if (turn > 0 && turn <= kMccTrialTurns) t->ns[mcc_trial_turn(t)][turn - 1] = ns;
    ++t->calls;
}

static int compare(const void* a, const void* b) {
    const uint64_t first = *(const uint64_t*)a, second = *(const uint64_t*)b;
    return (first > second) - (first < second);
}

uint64_t mcc_trial_median(const MccTrial* t, MccWay way) {
    uint64_t sorted[kMccTrialTurns];
    memcpy(sorted, t->ns[way], sizeof(sorted));
    qsort(sorted, kMccTrialTurns, sizeof(*sorted), compare);
    return sorted[kMccTrialTurns / 2];
}

void mcc_trial_decide(MccTrial* t) {
    const uint64_t ours = mcc_trial_median(t, kMccOurs), others = mcc_trial_median(t, kMccOthers);
    mcc_trial_end(t, others + others * kMccTrialPerCent / 100 < ours ? kMccOthers : kMccOurs);
}
