// Settings of a front end that are read from text: single values, and lists of KEY=VALUE for experiments.

#ifndef MCASTCOLL_MPI_CORE_SETTINGS_H
#define MCASTCOLL_MPI_CORE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kMccSettingBytes = 64 };

typedef struct {
    const char* name;
    uint64_t value;        // the default, then the value
    uint64_t low, high;    // permitted range
    const char* words[4];  // or the permitted words; the value is the index of a word
    char* text;            // or any text: kMccSettingBytes, with the default, then the value
} MccSetting;

// Reads digits with an optional K, M or G. Returns the end of the number, or NULL.
const char* mcc_read_number(const char* at, size_t* number);
// Reads the text `value` into the setting. False: the value is not allowed; `reason` (kMccReasonBytes) then
// begins with `prefix` and the setting's name.
bool mcc_read_setting(const char* prefix, MccSetting* setting, const char* value, char* reason);
// Reads `list`, the value of `variable`: comma-separated items KEY=VALUE; the keys are the names of the
// settings. If a key appears more than once, its last value counts. False with a reason for an invalid list.
bool mcc_read_experiment(const char* variable, const char* list, MccSetting* settings, size_t count,
                         char* reason);

#endif
