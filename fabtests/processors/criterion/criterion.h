// The part of Criterion that our unit tests need, for processors without a Criterion package, and used on all
// emulated ones.  Each test has a process of its own here, too.  There are no time limits, because emulators
// are slow.
#pragma once
#pragma GCC system_header  // like Criterion's own header: comparisons in tests then cause no warnings

#include <fnmatch.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace criterion {

struct Options {
    double timeout = 0;
};

struct Case {
    std::string name;
    void (*run)();
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

inline bool add(const char* suite, const char* name, const Options&, void (*run)()) {
    cases().push_back({std::string(suite) + "/" + name, run});
    return true;
}

enum class Outcome { passed, failed, skipped };

[[noreturn]] inline void leave(Outcome outcome) {
    std::fflush(nullptr);
    ::_exit(static_cast<int>(outcome));
}

inline Outcome run(const Case& one) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        one.run();
        leave(Outcome::passed);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return Outcome::failed;
    if (WIFSIGNALED(status)) std::printf("%s\n", ::strsignal(WTERMSIG(status)));
    return WIFEXITED(status) ? static_cast<Outcome>(WEXITSTATUS(status)) : Outcome::failed;
}

// PROGRAM [PATTERN...]: runs the tests with names, suite/name, matching one of the patterns.
inline int run_all(int count, char** patterns) {
    int passed = 0, failed = 0, skipped = 0;
    for (const Case& one : cases()) {
        bool wanted = count <= 1;
        for (int i = 1; i < count; ++i) wanted = wanted || ::fnmatch(patterns[i], one.name.c_str(), 0) == 0;
        if (!wanted) continue;
        const Outcome outcome = run(one);
        ++(outcome == Outcome::passed ? passed : outcome == Outcome::skipped ? skipped : failed);
        if (outcome == Outcome::failed) std::printf("FAIL %s\n", one.name.c_str());
    }
    std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace criterion

// Weak, because each file of a program defines this function.
[[gnu::weak]] int main(int count, char** patterns) {
    return criterion::run_all(count, patterns);
}

#define Test(suite, name, ...)                                                                 \
    static void suite##_##name##_test();                                                       \
    static const bool suite##_##name##_there =                                                 \
        criterion::add(#suite, #name, criterion::Options{__VA_ARGS__}, suite##_##name##_test); \
    static void suite##_##name##_test()
#define TestSuite(suite, ...)                               \
    static const criterion::Options suite##_suite_options { \
        __VA_ARGS__                                         \
    }

#define cr_log_info(...) static_cast<void>((std::printf(__VA_ARGS__), std::printf("\n")))
#define cr_log_warn(...) cr_log_info(__VA_ARGS__)
#define cr_end(outcome, ...)                                                        \
    do {                                                                            \
        std::printf("%s:%d", __FILE__, __LINE__);                                   \
        __VA_OPT__(std::printf(": "); std::printf(__VA_ARGS__);) std::printf("\n"); \
        criterion::leave(criterion::Outcome::outcome);                              \
    } while (false)
#define cr_skip_test(...) cr_end(skipped, __VA_ARGS__)
#define cr_assert_fail(...) cr_end(failed, __VA_ARGS__)

#define cr_assert(condition, ...)                      \
    do {                                               \
        if (!(condition)) {                            \
            std::printf("not so: %s\n", #condition);   \
            cr_end(failed __VA_OPT__(, ) __VA_ARGS__); \
        }                                              \
    } while (false)
#define cr_assert_not(condition, ...) cr_assert(!(condition)__VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_eq(one, other, ...) cr_assert((one) == (other)__VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_eq(...) cr_assert_eq(__VA_ARGS__)
#define cr_assert_neq(one, other, ...) cr_assert((one) != (other)__VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_lt(one, other, ...) cr_assert((one) < (other)__VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_leq(one, other, ...) cr_assert((one) <= (other)__VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_gt(one, other, ...) cr_assert((one) > (other)__VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_geq(one, other, ...) cr_assert((one) >= (other)__VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_null(pointer, ...) cr_assert((pointer) == nullptr __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not_null(pointer, ...) cr_assert((pointer) != nullptr __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_eq(one, other, ...) cr_assert(std::strcmp(one, other) == 0 __VA_OPT__(, ) __VA_ARGS__)
