#include "ofi/progress_thread.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>

#include <csignal>
#include <system_error>

#include "ofi/fabric.h"
#include "ofi/log.h"

namespace mcastcoll::ofi {

Result<std::unique_ptr<ProgressThread>> ProgressThread::start(Fabric& fabric) {
    std::unique_ptr<ProgressThread> made(new ProgressThread(fabric));
    if (!made->nest_.open(-1)) return Error{FI_EMFILE, "no descriptors for the progress thread"};
    // Signals are the application's, and its threads'.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Result<void> started;
    try {
        made->thread_ = std::thread([thread = made.get()] { thread->work(); });
    } catch (const std::system_error& refused) {
        started = Error{FI_ENOMEM, refused.what()};
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) return started.error();
    pthread_setname_np(made->thread_.native_handle(), "mcastcoll");
    return made;
}

ProgressThread::~ProgressThread() {
    if (!thread_.joinable()) return;
    stop_.store(true, std::memory_order_release);
    nest_.stir();
    thread_.join();
}

void ProgressThread::work() {
    try {
        fabric_.add_nest(nest_);
        while (!stop_.load(std::memory_order_acquire)) {
            const WaitNest::Sleeper sleeper(nest_);
            nest_.calm();
            // The order of calm() and this look matters: who stops stirs last.
            if (stop_.load(std::memory_order_acquire)) break;
            if (fabric_.prepare_wait())
                nest_.sleep(-1);
            else
                ::sched_yield();
        }
    } catch (const std::exception& failure) {
        log_line(Level::warn, "the progress thread ends: {}", failure.what());
    }
    fabric_.remove_nest(nest_);
}

}  // namespace mcastcoll::ofi
