// Settings that the MPI front ends read from text: each limit at limit - 1, limit and limit + 1, and what the
// reason says of a value that is refused.
#include <criterion/criterion.h>
#include <string.h>

#include "core/collectives.h"
#include "core/layout.h"
#include "core/provider.h"
#include "core/settings.h"

// Needed by collectives.c only.
size_t mcc_width(MPI_Datatype type) {
    return NULL == type ? 0 : 1;
}

enum { kNumber, kWord, kText, kSettings };
static char text[kMccSettingBytes];
static MccSetting settings[kSettings];
static char reason[kMccReasonBytes];

static bool read_list(const char* list) {
    strcpy(text, "before");
    reason[0] = '\0';
    settings[kNumber] = (MccSetting){"number", .value = 5, .low = 2, .high = 2048};
    settings[kWord] = (MccSetting){"word", .words = {"none", "some"}};
    settings[kText] = (MccSetting){"text", .text = text};
    return mcc_read_experiment("VARIABLE", list, settings, kSettings, reason);
}

static void refused(const char* list, const char* expected) {
    cr_assert_not(read_list(list), "%s", list);
    cr_assert(strstr(reason, expected) == reason, "%s: %s", list, reason);
}

Test(settings, defaults_remain_without_a_value) {
    cr_assert(read_list(""));
    cr_assert_eq(settings[kNumber].value, 5U);
    cr_assert_eq(settings[kWord].value, 0U);
    cr_assert_str_eq(text, "before");
    cr_assert(read_list(",word=some,"), "%s", reason);
    cr_assert_eq(settings[kNumber].value, 5U);
    cr_assert_eq(settings[kWord].value, 1U);
}

Test(settings, the_last_value_of_a_key_counts) {
    cr_assert(read_list("number=2,word=some,number=2K,text=tcp;ofi_rxm,word=none"), "%s", reason);
    cr_assert_eq(settings[kNumber].value, 2048U);
    cr_assert_eq(settings[kWord].value, 0U);
    cr_assert_str_eq(text, "tcp;ofi_rxm");
}

Test(settings, a_reason_names_the_variable_the_key_and_the_permitted_values) {
    refused("number=1", "VARIABLE: number=1: give a number from 2 to 2048");
    refused("number=2049", "VARIABLE: number=2049: give a number");
    refused("number=-2", "VARIABLE: number=-2: give a number");
    refused("number=2X", "VARIABLE: number=2X: give a number");
    refused("number=", "VARIABLE: number=: give a number");
    refused("word=any", "VARIABLE: word=any is none of none, some");
    refused("text=", "VARIABLE: text: give 1 to 63 characters");
    refused("number", "VARIABLE: 'number' is not KEY=VALUE with a key of number, word, text");
    refused("word=some,numbers=2", "VARIABLE: 'numbers=2' is not KEY=VALUE");
    refused("numb=2", "VARIABLE: 'numb=2' is not KEY=VALUE");
    refused("=2", "VARIABLE: '=2' is not KEY=VALUE");
}

Test(settings, a_text_has_at_most_63_characters) {
    char list[100] = "text=";
    memset(list + 5, 'x', 63);
    cr_assert(read_list(list), "%s", reason);
    cr_assert_eq(strlen(text), 63U);
    list[68] = 'x';
    refused(list, "VARIABLE: 'text=xxx");
}
