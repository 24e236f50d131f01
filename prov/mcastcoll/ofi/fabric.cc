#include "ofi/fabric.h"

#include <time.h>

#include "ofi/collective_endpoint.h"

namespace mcastcoll::ofi {
namespace {

// With no operation in progress, every 64th read drives all collective endpoints.
constexpr unsigned kIdleReads = 64;

// A clock with ticks of a few milliseconds, cheaper to read than the precise clock. A caller that yields for
// a tick after each read would need too long for kIdleReads reads.
std::uint64_t coarse_tick() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) << 32 | static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

int Fabric::inner_trywait(fid& object) {
    fid* one = &object;
    return has(&inner_ops(), &fi_ops_fabric::trywait) ? inner_ops().trywait(&inner_, &one, 1) : -FI_ENOSYS;
}

void Fabric::progress_on_read() {
    // A thread that holds the lock is making progress already.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const std::uint64_t tick = coarse_tick();
    const bool all = ++reads_ % kIdleReads == 0 || tick != tick_;
    if (all) tick_ = tick;
    for (std::size_t i = 0; i < collective_endpoints_.size(); ++i)
        if (all || collective_endpoints_[i]->busy()) collective_endpoints_[i]->progress();
}

bool Fabric::prepare_wait() {
    if (!is_here()) return true;
    const std::lock_guard lock(mutex_);
    bool may_sleep = true;
    for (std::size_t i = 0; i < collective_endpoints_.size(); ++i)
        if (!collective_endpoints_[i]->prepare_wait()) may_sleep = false;
    return may_sleep;
}

int Fabric::add_collective_endpoint(CollectiveEndpoint& collective_endpoint) {
    collective_endpoints_.push_back(&collective_endpoint);
    for (provider::WaitObject* one : wait_objects_) {
        if (!one->add(collective_endpoint.wait_descriptor())) {
            remove_collective_endpoint(collective_endpoint);
            return -FI_ENOMEM;
        }
        // Threads already asleep must prepare again, now with this collective endpoint.
        one->wake_now();
    }
    active_.store(true, std::memory_order_relaxed);
    return 0;
}

void Fabric::remove_collective_endpoint(CollectiveEndpoint& collective_endpoint) {
    std::erase(collective_endpoints_, &collective_endpoint);
    for (provider::WaitObject* one : wait_objects_) one->remove(collective_endpoint.wait_descriptor());
    if (collective_endpoints_.empty()) active_.store(false, std::memory_order_relaxed);
}

int Fabric::add_wait_object(provider::WaitObject& one) {
    const std::lock_guard lock(mutex_);
    for (CollectiveEndpoint* collective_endpoint : collective_endpoints_)
        if (!one.add(collective_endpoint->wait_descriptor())) return -FI_ENOMEM;
    wait_objects_.push_back(&one);
    return 0;
}

void Fabric::remove_wait_object(provider::WaitObject& one) {
    if (!is_here()) return;
    const std::lock_guard lock(mutex_);
    std::erase(wait_objects_, &one);
}

Result<std::shared_ptr<ProgressThread>> Fabric::progress_thread() {
    const std::lock_guard lock(thread_mutex_);
    if (auto running = thread_.lock()) return running;
    auto started = ProgressThread::start(*this);
    if (started) thread_ = started.value();
    return started;
}

}  // namespace mcastcoll::ofi
