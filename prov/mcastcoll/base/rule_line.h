// The grammar of tables of rules: the provider's algorithms (levels/selection.h) and the Open MPI component's
// choice of the side that serves a collective (mpi/openmpi/coll_mcastcoll_select.c): the group or Open MPI.
// Also compiled as C.
//
// A line is OPERATION MEMBERS HOSTS BYTES CHOICE [MORE], separated by blanks; a # starts a comment. MEMBERS,
// HOSTS and BYTES are *, N, N-M, N- or -M; a number of BYTES may have K, M or G (powers of 1024).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    kMccRuleOperation,
    kMccRuleMembers,
    kMccRuleHosts,
    kMccRuleBytes,
    kMccRuleChoice,
    kMccRuleMore,
    kMccRuleWords
};

typedef struct {
    const char* text;  // not terminated
    size_t bytes;
} MccRuleWord;

typedef struct {
    uint64_t min, max;
} MccRuleRange;

typedef struct {
    MccRuleWord words[kMccRuleWords];
    size_t count;                         // number of words in the line, which may be more than fit
    MccRuleRange ranges[kMccRuleChoice];  // of members, hosts and bytes; valid if count is at least 5
    int wrong;                            // index of the first word that is not the range it should be, or 0
} MccRuleLine;

static inline bool mcc_rule_is(MccRuleWord word, const char* name) {
    return strlen(name) == word.bytes && 0 == memcmp(word.text, name, word.bytes);
}

// MPI calls a broadcast bcast, libfabric broadcast: tables accept both.
static inline bool mcc_rule_is_operation(MccRuleWord word, const char* name) {
    const bool broadcast = 0 == strcmp(name, "bcast") || 0 == strcmp(name, "broadcast");
    return mcc_rule_is(word, name) ||
           (broadcast && (mcc_rule_is(word, "bcast") || mcc_rule_is(word, "broadcast")));
}

static inline bool mcc_rule_number(const char* at, const char* end, bool units, uint64_t* number) {
    const char* const first = at;
    uint64_t value = 0;
    unsigned shift = 0;
    for (; at < end && *at >= '0' && *at <= '9'; ++at) {
        const unsigned digit = *at - '0';
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = 10 * value + digit;
    }
    if (at == first) return false;
    if (units && at < end) {
        const char unit = *at++;
        shift = 'K' == unit || 'k' == unit ? 10 : 'M' == unit || 'm' == unit ? 20 : 30;
        if (30 == shift && 'G' != unit && 'g' != unit) return false;
    }
    if (at != end || value > UINT64_MAX >> shift) return false;
    *number = value << shift;
    return true;
}

static inline bool mcc_rule_range(MccRuleWord word, bool units, MccRuleRange* range) {
    const char *const end = word.text + word.bytes, *dash = word.text;
    range->min = 0;
    range->max = UINT64_MAX;
    if (mcc_rule_is(word, "*")) return true;
    while (dash < end && '-' != *dash) ++dash;
    if (dash > word.text && !mcc_rule_number(word.text, dash, units, &range->min)) return false;
    if (dash == end) {
        range->max = range->min;
        return word.bytes > 0;
    }
    if (1 == word.bytes) return false;  // "-"
    if (dash + 1 < end && !mcc_rule_number(dash + 1, end, units, &range->max)) return false;
    return range->min <= range->max;
}

// Splits a line into words, and reads its ranges. The count of an empty line is 0.
static inline MccRuleLine mcc_rule_line(const char* text, size_t bytes) {
    MccRuleLine line;
    memset(&line, 0, sizeof(line));
    for (const char *at = text, *const end = text + bytes; at < end && '#' != *at;) {
        const char* const from = at;
        while (at < end && '#' != *at && NULL == strchr(" \t\r\n", *at)) ++at;
        if (at == from) {  // a blank
            ++at;
            continue;
        }
        if (line.count < kMccRuleWords) {
            line.words[line.count].text = from;
            line.words[line.count].bytes = at - from;
        }
        ++line.count;
    }
    if (line.count <= kMccRuleChoice) return line;
    for (int i = kMccRuleBytes; i >= kMccRuleMembers; --i)
        if (!mcc_rule_range(line.words[i], kMccRuleBytes == i, &line.ranges[i])) line.wrong = i;
    return line;
}
