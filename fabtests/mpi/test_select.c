// Tests the component's selection without an MPI job: rules are read, a communicator's steps follow from
// them, and trials lead to a decision. The functions that the selection needs from the component are replaced
// here.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll_mcastcoll.h"

MccComponent mcc_component;
static const char* pml = "ob1";
bool mcc_pml_is(const char* name) {
    return 0 == strcmp(pml, name);
}

size_t mcc_width(MPI_Datatype type) {
    return NULL == type ? 0 : 1;
}

static MccModule m;
static char reason[kMccReasonBytes];

static MccRules* read_rules(const char* text) {
    char path[] = "/tmp/mcc-rules-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && (ssize_t)strlen(text) == write(fd, text, strlen(text)));
    close(fd);
    MccRules* rules = mcc_rules_read(path, reason);
    unlink(path);
    return rules;
}

static void select_by(const char* text, int hosts, unsigned sites) {
    MccRules* rules = read_rules(text);
    cr_assert_not_null(rules, "%s", reason);
    m.hosts = hosts;
    m.sites = sites;
    cr_assert(mcc_select(rules, &m, 8));
    free(rules);
}

static MccRoute route_of(size_t bytes) {
    return mcc_selected(&m, kMccBlocking, kMccBcast, bytes);
}

static void try_all(MccTrial* t, uint64_t group_ns, uint64_t previous_ns) {
    while (!mcc_trial_is_over(t))
        mcc_trial_note(t, kMccSideGroup == mcc_trial_side(t) ? group_ns : previous_ns);
}

static void try_once(MccTrial* t, uint64_t group_ns, uint64_t previous_ns) {
    try_all(t, group_ns, previous_ns);
    mcc_trial_decide(t);
}

static unsigned pauses(MccTrial* t) {
    unsigned calls = 0;
    while (calls < 100000 && mcc_trial_pauses(t)) ++calls;
    return calls;
}

Test(select, long_broadcasts_between_hosts_of_a_site_are_measured_with_any_pml) {
    for (int i = 0; i < 2; ++i) {
        pml = 0 == i ? "ob1" : "cm";
        select_by("", 8, 1);
        cr_assert(kMccHere == route_of(65535) && kMccMeasured == route_of(65536) &&
                  kMccMeasured == route_of(1 << 30));
        select_by("", 8, 2);
        cr_assert(kMccHere == route_of(65536), "several sites");
        select_by("", 8, 0);
        cr_assert(kMccHere == route_of(65536), "no group yet");
        select_by("", 1, 1);
        cr_assert(kMccHere == route_of(65536), "one host");
    }
    mcc_select_free(&m);
}

Test(select, a_rule_of_the_file_comes_before_and_keeps_its_range) {
    select_by("bcast * * * here\n", 8, 1);
    cr_assert(kMccHere == route_of(1 << 20));
    select_by("bcast 8 * 1K-2K measured ob1\nbcast * * 4K- previous # to Open MPI\n", 8, 1);
    cr_assert(kMccHere == route_of(1023) && kMccMeasured == route_of(1024) &&
              kMccMeasured == route_of(2048) && kMccHere == route_of(2049) && kMccPrevious == route_of(4096));
    mcc_select_free(&m);
}

Test(select, a_wrong_word_is_named_with_its_line) {
    cr_assert_null(read_rules("bcast * * * here\nbcast * * * guessed\n"));
    cr_assert_not_null(
        strstr(reason, "line 2: not OPERATION MEMBERS HOSTS BYTES here|previous|measured [PML]"));
}

Test(select, numbers_have_units_and_no_other_letters) {
    size_t number = 0;
    cr_assert(0 == strcmp(" -", mcc_read_number("12k -", &number)) && 12288 == number);
    cr_assert(NULL != mcc_read_number("18446744073709551615", &number) && SIZE_MAX == number);
    cr_assert_null(mcc_read_number("18446744073709551616", &number));
    cr_assert_null(mcc_read_number("17179869184G", &number));
    cr_assert_null(mcc_read_number("K", &number));
    cr_assert_null(mcc_read_number("-1", &number));
    cr_assert_null(read_rules("bcast * * 1T here\n"));
}

// The provider's table has the same grammar (fabtests/unit/test_selection.cc).
Test(select, a_broadcast_has_two_names_and_only_bytes_have_units) {
    select_by("broadcast\t8 1-8 1k-2K\tprevious\r\n\nall * * -1023 measured", 8, 1);
    cr_assert(kMccPrevious == route_of(1024) && kMccPrevious == route_of(2048) &&
              kMccMeasured == route_of(1023));
    cr_assert_null(read_rules("bcast 1K * * here\n"));
    cr_assert_null(read_rules("bcast * * - here\n"));
    cr_assert_null(read_rules("bcast * * 2-1 here\n"));
    cr_assert_null(read_rules("bcast * * 1 here ob1 cm\n"));
    mcc_select_free(&m);
}

Test(select, members_with_other_words_have_other_digests) {
    MccRules *here = read_rules("bcast * * * here\n"), *measured = read_rules("bcast * * * measured\n");
    cr_assert_neq(mcc_rules_digest(here, 1), mcc_rules_digest(measured, 1));
    free(here);
    free(measured);
}

Test(select, a_class_of_sizes_is_decided_for_itself_and_for_the_other_form) {
    select_by("", 8, 1);
    MccTrial* trials = m.selection[kMccBlocking][kMccBcast].trials;
    cr_assert_not_null(trials);
    cr_assert_eq(pauses(&trials[16]), kMccTrialFirst, "the first calls are no part of a trial");
    const MccForm other = kMccNonblocking;
    cr_assert(kMccHere == mcc_selected(&m, other, kMccBcast, 65536), "not known yet");
    for (int i = 0; i < 2; ++i) try_once(&trials[16], 200, 100);
    cr_assert(kMccPrevious == mcc_selected(&m, other, kMccBcast, 65536));
    cr_assert(kMccPrevious == mcc_selected(&m, other, kMccBcast, 131071));
    cr_assert(kMccHere == mcc_selected(&m, other, kMccBcast, 131072));
    cr_assert(kMccMeasured == route_of(65536), "calls are counted, and tried again");
    mcc_select_free(&m);
}

Test(trial, sides_alternate_and_the_first_call_of_each_does_not_count) {
    MccTrial t = {0};
    for (unsigned i = 0; i < 2 * (kMccTrialCalls + 1); ++i) {
        cr_assert(!mcc_trial_is_over(&t) &&
                  (i % 2 == 0 ? kMccSideGroup : kMccSidePrevious) == mcc_trial_side(&t));
        mcc_trial_note(&t, i < 2 ? 1000000 : 10 + i % 2);
    }
    cr_assert(mcc_trial_is_over(&t));
    cr_assert(10 == mcc_trial_median(&t, kMccSideGroup) && 11 == mcc_trial_median(&t, kMccSidePrevious));
}

Test(trial, a_call_that_was_slow_once_decides_nothing) {
    for (int slow = 2; slow <= 3; ++slow) {
        MccTrial t = {0};
        try_all(&t, 100, 200);
        for (int i = 0; i < slow; ++i) t.ns[kMccSideGroup][i] = 1000000;
        mcc_trial_decide(&t);
        cr_assert_eq(t.contradicted, slow > kMccTrialCalls / 2, "%d of %d calls were slow", slow,
                     kMccTrialCalls);
    }
}

Test(trial, the_previous_module_must_be_clearly_faster) {
    MccTrial t = {0};
    try_once(&t, 1050, 1000);
    cr_assert_not(t.contradicted);
    t = (MccTrial){0};
    try_once(&t, 1051, 1000);
    cr_assert(t.contradicted);
}

Test(trial, two_in_a_row_change_the_side_and_one_does_not) {
    MccTrial t = {0};
    // From the group to the other side, and back.
    for (MccSide side = kMccSideGroup; side < kMccSides; ++side) {
        const uint64_t group = kMccSideGroup == side ? 200 : 100, previous = 300 - group;
        try_once(&t, group, previous);
        cr_assert(side == t.better && kMccTrialShortPause == pauses(&t));
        try_once(&t, previous, group);
        cr_assert(side == t.better && pauses(&t) >= kMccTrialPause, "the second one did not agree");
        try_once(&t, group, previous);
        cr_assert(side == t.better && kMccTrialShortPause == pauses(&t));
        try_once(&t, group, previous);
        cr_assert(side != t.better && kMccTrialPause == pauses(&t));
    }
}

Test(trial, a_result_is_checked_ever_more_rarely) {
    MccTrial t = {0};
    for (unsigned pause = kMccTrialPause; pause < 100000; pause *= 2) {
        try_once(&t, 100, 200);
        cr_assert_eq(pauses(&t), pause);
    }
    t.pause = kMccTrialLongestPause - 1;
    for (int i = 0; i < 2; ++i) {
        try_once(&t, 100, 200);
        cr_assert_eq(t.wait, kMccTrialLongestPause);
        t.wait = 0;
    }
}

Test(trial, a_closed_trial_pauses_forever_and_the_group_serves) {
    MccTrial t = {0};
    for (int i = 0; i < 2; ++i) try_once(&t, 200, 100);
    mcc_trial_close(&t);
    cr_assert(100000 == pauses(&t) && kMccSideGroup == t.better);
}

Test(trial, classes_are_powers_of_two) {
    cr_assert(0 == mcc_trial_class(0) && 0 == mcc_trial_class(1) && 1 == mcc_trial_class(2) &&
              1 == mcc_trial_class(3) && 16 == mcc_trial_class(65536) && 63 == mcc_trial_class(SIZE_MAX));
}
