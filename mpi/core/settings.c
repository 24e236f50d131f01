#include "core/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/rule_line.h"
#include "core/provider.h"

const char* mcc_read_number(const char* at, size_t* number) {
    const char* end = at + strspn(at, "0123456789");
    uint64_t value = 0;
    if ('\0' != *end && NULL != strchr("KMGkmg", *end)) ++end;
    if (!mcc_rule_number(at, end, true, &value)) return NULL;
    *number = (size_t)value;
    return end;
}

bool mcc_read_setting(const char* prefix, MccSetting* setting, const char* value, char* reason) {
    if (NULL != setting->text) {
        if (strlen(value) < kMccSettingBytes && '\0' != *value) {
            strcpy(setting->text, value);
            return true;
        }
        snprintf(reason, kMccReasonBytes, "%s%s: give 1 to %d characters", prefix, setting->name,
                 kMccSettingBytes - 1);
        return false;
    }
    if (NULL == setting->words[0]) {
        size_t number = 0;
        const char* end = mcc_read_number(value, &number);
        if (NULL != end && '\0' == *end && number >= setting->low && number <= setting->high) {
            setting->value = number;
            return true;
        }
        snprintf(reason, kMccReasonBytes,
                 "%s%s=%.60s: give a number from %llu to %llu (K, M and G are known)", prefix, setting->name,
                 value, (unsigned long long)setting->low, (unsigned long long)setting->high);
        return false;
    }
    char all[100] = "";
    for (size_t i = 0; NULL != setting->words[i]; ++i) {
        if (0 == strcmp(setting->words[i], value)) {
            setting->value = i;
            return true;
        }
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", 0 == i ? "" : ", ", setting->words[i]);
    }
    snprintf(reason, kMccReasonBytes, "%s%s=%.60s is none of %s", prefix, setting->name, value, all);
    return false;
}

static MccSetting* find(MccSetting* settings, size_t count, const char* name, size_t letters) {
    for (size_t i = 0; i < count; ++i)
        if (strlen(settings[i].name) == letters && 0 == strncmp(settings[i].name, name, letters))
            return &settings[i];
    return NULL;
}

bool mcc_read_experiment(const char* variable, const char* list, MccSetting* settings, size_t count,
                         char* reason) {
    char prefix[kMccSettingBytes], value[kMccSettingBytes];
    snprintf(prefix, sizeof(prefix), "%s: ", variable);
    while ('\0' != *list) {
        const size_t item = strcspn(list, ","), letters = strcspn(list, ",=");
        MccSetting* setting = find(settings, count, list, letters);
        const size_t bytes = letters < item ? item - letters - 1 : 0;
        if (item > 0 && (NULL == setting || letters == item || bytes >= sizeof(value))) {
            int end = snprintf(reason, kMccReasonBytes, "%s: '%.*s' is not KEY=VALUE with a key of", variable,
                               (int)(item < 40 ? item : 40), list);
            for (size_t i = 0; i < count && end < kMccReasonBytes; ++i)
                end += snprintf(reason + end, (size_t)(kMccReasonBytes - end), "%s %s", 0 == i ? "" : ",",
                                settings[i].name);
            return false;
        }
        if (item > 0) {
            memcpy(value, list + letters + 1, bytes);
            value[bytes] = '\0';
            if (!mcc_read_setting(prefix, setting, value, reason)) return false;
        }
        list += item + (',' == list[item]);
    }
    return true;
}
