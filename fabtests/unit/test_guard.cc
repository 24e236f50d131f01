// Threads that are cancelled inside the provider.
#include <criterion/criterion.h>
#include <unistd.h>

#include <atomic>

#include "provider/guard.h"

using namespace mcastcoll;

// The guard logs through these functions; this test needs no log.
bool provider::log_enabled(Level) {
    return false;
}
void provider::write_log(Level, const std::string&) {}

namespace {

struct Thread {
    int pipe[2];
    std::atomic<bool> waits{false}, came_back{false};
};

void* work(void* argument) {
    auto& thread = *static_cast<Thread*>(argument);
    provider::guard([&] {
        char byte = 0;
        thread.waits = true;
        return read(thread.pipe[0], &byte, 1);  // threads are cancelled here
    });
    thread.came_back = true;
    pthread_testcancel();
    return nullptr;
}

// A cancelled thread leaves its frames without the address sanitizer's cleanup, so that the sanitizer reports
// the end of the thread as a use of these frames.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kLeftOut = true;
#else
constexpr bool kLeftOut = false;
#endif

}  // namespace

Test(guard, a_thread_that_is_cancelled_leaves_first, .timeout = 120, .disabled = kLeftOut) {
    Thread thread;
    cr_assert_eq(pipe(thread.pipe), 0);
    pthread_t handle;
    cr_assert_eq(pthread_create(&handle, nullptr, &work, &thread), 0);
    while (!thread.waits) usleep(1000);
    cr_assert_eq(pthread_cancel(handle), 0);
    usleep(10'000);
    cr_assert_eq(write(thread.pipe[1], "x", 1), 1);
    void* result = nullptr;
    cr_assert_eq(pthread_join(handle, &result), 0);
    cr_assert(thread.came_back && result == PTHREAD_CANCELED);
}
