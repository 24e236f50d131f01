#include "core/collectives.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MCC_NAME(enumerator, name, collective) [enumerator] = #name,
const char* const mcc_collective_names[kMccCollectives] = {MCC_COLLECTIVES(MCC_NAME)};

#define MCC_OP(enumerator, name, collective) [enumerator] = collective,
const enum fi_collective_op mcc_collective_ops[kMccCollectives] = {MCC_COLLECTIVES(MCC_OP)};

enum { kAll = (1 << kMccCollectives) - 1 };

static bool is(const char* name, const char* word, size_t letters) {
    return strlen(name) == letters && 0 == strncmp(name, word, letters);
}

static bool read_word(const char* word, size_t letters, unsigned* bits) {
    *bits = is("all", word, letters) ? kAll : 0;
    bool known = 0 != *bits || is("none", word, letters);
    for (int i = 0; i < kMccCollectives && !known; ++i) {
        known = is(mcc_collective_names[i], word, letters);
        if (known) *bits = 1U << i;
    }
    return known;
}

bool mcc_read_collectives(const char* text, unsigned* enabled, char* reason, size_t reason_bytes) {
    *enabled = 0;
    for (bool first = true; '\0' != *text; first = false) {
        const size_t letters = strcspn(text, ",");
        const bool without = '^' == text[0];
        unsigned bits = 0;
        if (!read_word(text + without, letters - without, &bits)) {
            snprintf(reason, reason_bytes,
                     "'%.*s' is none of all, none"
#define MCC_LISTED(enumerator, name, collective) ", " #name
                     MCC_COLLECTIVES(MCC_LISTED),
                     (int)letters, text);
            return false;
        }
        if (first && without) *enabled = kAll;
        *enabled = without ? *enabled & ~bits : *enabled | bits;
        text += letters + (',' == text[letters]);
    }
    return true;
}

const char* mcc_read_number(const char* at, size_t* number) {
    static const char kUnits[] = "KMGkmg";
    char* end;
    if (!isdigit((unsigned char)*at)) return NULL;
    errno = 0;
    const unsigned long long digits = strtoull(at, &end, 10);
    const char* unit = '\0' != *end ? strchr(kUnits, *end) : NULL;
    const unsigned shift = NULL != unit ? 10 * (unsigned)((unit - kUnits) % 3 + 1) : 0;
    if (0 != errno || digits > SIZE_MAX >> shift) return NULL;
    *number = (size_t)digits << shift;
    return NULL != unit ? end + 1 : end;
}
