#include "ofi/progress_thread.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>

#include <csignal>

#include "ofi/fabric.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {

Result<std::shared_ptr<ProgressThread>> ProgressThread::start(Fabric& fabric) {
    std::shared_ptr<ProgressThread> made(new ProgressThread(fabric));
    if (!made->wait_object_.open(-1))
        return Error{FI_EMFILE, "no file descriptors for the progress thread: raise ulimit -n"};
    if (fabric.add_wait_object(made->wait_object_) != 0)
        return Error{FI_ENOMEM, "cannot register the descriptor that wakes the progress thread"};
    // Signals must be delivered to the application's threads only.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started =
        provider::succeeds([&] { made->thread_ = std::thread([thread = made.get()] { thread->work(); }); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) {
        fabric.remove_wait_object(made->wait_object_);
        return Error{FI_ENOMEM,
                     "cannot create the progress thread: raise ulimit -u, or request FI_PROGRESS_MANUAL"};
    }
    pthread_setname_np(made->thread_.native_handle(), "mcastcoll");
    return made;
}

ProgressThread::~ProgressThread() {
    if (!thread_.joinable()) return;
    stop_.store(true, std::memory_order_release);
    wait_object_.wake_now();
    thread_.join();
}

void ProgressThread::work() {
    while (!stop_.load(std::memory_order_acquire)) {
        const provider::WaitObject::Sleeper sleeper(wait_object_);
        wait_object_.reset();
        // This check must follow reset(): the destructor sets stop_ first and wakes this thread afterwards.
        if (stop_.load(std::memory_order_acquire)) break;
        // An exception must not end this thread, because no other thread may be making progress.
        bool may_sleep = false;
        provider::succeeds([&] { may_sleep = fabric_.prepare_wait(); });
        if (may_sleep)
            wait_object_.sleep(-1);
        else
            ::sched_yield();
    }
    fabric_.remove_wait_object(wait_object_);
}

}  // namespace mcastcoll::ofi
