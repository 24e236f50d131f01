// The provider is opened if enough file descriptors are left: tests one less, exactly, one more.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/descriptors.h"
#include "core/provider.h"

// Sets the limit that leaves this many free descriptors.
static unsigned long leave(unsigned wanted) {
    struct rlimit limit;
    unsigned long max = 0;
    for (unsigned left = 0; left < wanted; ++max) left += fcntl((int)max, F_GETFD) < 0;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return max;
}

Test(descriptors, as_many_as_are_wanted_must_be_left) {
    char reason[kMccReasonBytes] = "", said[kMccReasonBytes];
    const unsigned long max = leave(100);
    cr_assert(mcc_descriptors_left(99, reason));
    cr_assert(mcc_descriptors_left(100, reason));
    cr_assert_str_empty(reason);
    cr_assert_not(mcc_descriptors_left(101, reason));
    snprintf(said, sizeof(said), "only 100 file descriptors are left (ulimit -n is %lu)", max);
    cr_assert(strstr(reason, said) == reason, "%s", reason);
}

Test(descriptors, none_are_left) {
    char reason[kMccReasonBytes] = "";
    leave(2);
    cr_assert(dup(0) >= 0);
    cr_assert(dup(0) >= 0);
    cr_assert(dup(0) < 0);
    cr_assert_not(mcc_descriptors_left(1, reason));
    cr_assert(strstr(reason, "only 0 file") == reason, "%s", reason);
}

Test(descriptors, large_jobs_want_more_up_to_a_bound) {
    cr_assert_eq(mcc_descriptors_to_open(4), 68U);
    cr_assert_eq(mcc_descriptors_to_open(255), 319U);
    cr_assert_eq(mcc_descriptors_to_open(256), 320U);
    cr_assert_eq(mcc_descriptors_to_open(100000), 320U);
}
