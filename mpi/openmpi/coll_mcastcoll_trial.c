#include "coll_mcastcoll_trial.h"

#include <stdlib.h>
#include <string.h>

#include "core/base.h"

void mcc_trial_note(MccTrial* t, uint64_t ns) {
    const unsigned turn = t->turns / kMccWays;
    if (turn > 0 && turn <= kMccTrialTurns) t->ns[mcc_trial_turn(t)][turn - 1] = ns;
    ++t->turns;
}

uint64_t mcc_trial_median(const MccTrial* t, MccWay way) {
    uint64_t sorted[kMccTrialTurns];
    memcpy(sorted, t->ns[way], sizeof(sorted));
    qsort(sorted, kMccTrialTurns, sizeof(*sorted), mcc_compare);
    return sorted[kMccTrialTurns / 2];
}

static void pause_for(MccTrial* t, unsigned calls) {
    t->wait = t->pause = calls < kMccTrialLongestPause ? calls : kMccTrialLongestPause;
}

void mcc_trial_decide(MccTrial* t) {
    const uint64_t ours = mcc_trial_median(t, kMccOurs), others = mcc_trial_median(t, kMccOthers);
    const MccWay faster = others + others * kMccTrialPerCent / 100 < ours ? kMccOthers : kMccOurs;
    const bool again = t->doubted;
    t->turns = 0;
    t->doubted = faster != t->better && !again;
    if (t->doubted) {
        t->wait = kMccTrialRest;
    } else if (faster == t->better && t->pause != 0) {
        pause_for(t, 2 * t->pause);
    } else {
        t->better = faster;
        pause_for(t, kMccTrialPause);
    }
}
