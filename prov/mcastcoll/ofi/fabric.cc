#include "ofi/fabric.h"

#include <pthread.h>
#include <rdma/fi_endpoint.h>
#include <sched.h>
#include <time.h>

#include <csignal>

#include "ofi/av.h"
#include "ofi/endpoint.h"
#include "ofi/inner.h"
#include "ofi/queues.h"
#include "ofi/station.h"

namespace mcastcoll::ofi {
namespace {

// A read with nothing under way looks after stations only every so often.
constexpr unsigned kIdleReads = 64;

// Of a few milliseconds, and cheaper than the clock itself: for who reads and then yields to others for that
// long.
std::uint64_t coarse_tick() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) << 32 | static_cast<std::uint64_t>(now.tv_nsec);
}

WaitObject* wait_object_of(fid& object) {
    WaitObject* one = nullptr;
    if (Cq* cq = Cq::find(object); cq != nullptr) one = &cq->wait_object();
    if (Eq* eq = Eq::find(object); eq != nullptr) one = &eq->wait_object();
    return one != nullptr && one->is_open() ? one : nullptr;
}

}  // namespace

void Fabric::graft(fid_fabric& inner) {
    const Fabric& fabric = take(inner);
    fi_ops_fabric& ops = *inner.ops;
    ops.domain = [](fid_fabric* object, fi_info* info, fid_domain** domain, void* context) noexcept {
        return open_domain(object, info, domain, 0, context);
    };
    if (has(&fabric.inner_ops(), &fi_ops_fabric::domain2)) ops.domain2 = &Fabric::open_domain;
    ops.eq_open = [](fid_fabric* object, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept {
        return guard([&] { return Eq::open(of(*object), attr, eq, context); });
    };
    ops.trywait = [](fid_fabric* object, fid** objects, int count) noexcept {
        return guard([&] { return of(*object).trywait(objects, count); });
    };
}

int Fabric::open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                        void* context) noexcept {
    return guard([&] {
        if (info == nullptr || domain == nullptr) return -FI_EINVAL;
        const InfoOwner inner = to_inner(*info);
        if (!inner) return -FI_ENOMEM;
        Fabric& self = of(*fabric);
        const int rc = flags == 0 ? self.inner_ops().domain(fabric, inner.get(), domain, context)
                                  : self.inner_ops().domain2(fabric, inner.get(), domain, flags, context);
        if (rc == 0) Domain::graft(self, **domain, *info);
        return rc;
    });
}

int Fabric::trywait(fid** objects, int count) {
    for (int i = 0; i < count; ++i)
        if (WaitObject* one = wait_object_of(*objects[i]); one != nullptr) {
            one->reset();
            one->arm();
        }
    if (active() && !prepare_wait()) return -FI_EAGAIN;
    for (int i = 0; i < count; ++i)
        if (Cq* cq = Cq::find(*objects[i]); cq != nullptr && cq->has_own()) return -FI_EAGAIN;
    for (int i = 0; i < count; ++i)
        if (const int rc = inner_trywait(*objects[i]); rc != 0) return rc;
    return 0;
}

int Fabric::inner_trywait(fid& object) {
    if (!has(&inner_ops(), &fi_ops_fabric::trywait)) return -FI_ENOSYS;
    fid* objects[1] = {&object};
    if (const int rc = inner_ops().trywait(&inner_, objects, 1); rc != 0) return rc;
    // The provider "net" says 0 whatever there is, and leaves its descriptor readable for what has long been
    // read: who believes it spins. Only its blocking read clears that.
    const WaitObject* one = wait_object_of(object);
    if (one == nullptr || !one->inner_readable()) return 0;
    Cq* cq = Cq::find(object);
    return (cq != nullptr ? cq->inner_pending() : Eq::find(object)->inner_pending()) ? -FI_EAGAIN : 0;
}

void Fabric::progress_on_read() {
    // Whoever else holds the lock is making progress already.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const std::uint64_t tick = coarse_tick();
    const bool all = ++reads_ % kIdleReads == 0 || tick != tick_;
    if (all) tick_ = tick;
    for (std::size_t i = 0; i < stations_.size(); ++i)
        if (all || stations_[i]->busy()) stations_[i]->progress();
}

bool Fabric::prepare_wait() {
    const std::lock_guard lock(mutex_);
    bool may_sleep = true;
    for (std::size_t i = 0; i < stations_.size(); ++i)
        if (!stations_[i]->prepare_wait()) may_sleep = false;
    return may_sleep;
}

int Fabric::add_station(Station& station) {
    stations_.push_back(&station);
    for (WaitObject* one : wait_objects_) {
        if (!one->add(station.wait_descriptor())) {
            remove_station(station);
            return -FI_ENOMEM;
        }
        one->wake_now();  // who sleeps already must prepare again, with this station
    }
    active_.store(true, std::memory_order_relaxed);
    return 0;
}

void Fabric::remove_station(Station& station) {
    std::erase(stations_, &station);
    for (WaitObject* one : wait_objects_) one->remove(station.wait_descriptor());
    if (stations_.empty()) active_.store(false, std::memory_order_relaxed);
}

int Fabric::add_wait_object(WaitObject& one) {
    const std::lock_guard lock(mutex_);
    for (Station* station : stations_)
        if (!one.add(station->wait_descriptor())) return -FI_ENOMEM;
    wait_objects_.push_back(&one);
    return 0;
}

void Fabric::remove_wait_object(WaitObject& one) {
    const std::lock_guard lock(mutex_);
    std::erase(wait_objects_, &one);
}

bool Fabric::somebody_sleeps() const {
    return std::any_of(wait_objects_.begin(), wait_objects_.end(),
                       [](const WaitObject* one) { return one->armed(); });
}

Result<std::shared_ptr<ProgressThread>> Fabric::progress_thread() {
    const std::lock_guard lock(thread_mutex_);
    if (auto running = thread_.lock()) return running;
    auto started = ProgressThread::start(*this);
    if (started) thread_ = started.value();
    return started;
}

void Domain::graft(Fabric& fabric, fid_domain& inner, const fi_info& info) {
    Domain& domain = take(inner, fabric);
    domain.collective_ = (info.caps & FI_COLLECTIVE) != 0;
    domain.automatic_ =
        info.domain_attr != nullptr && (info.domain_attr->data_progress == FI_PROGRESS_AUTO ||
                                        info.domain_attr->control_progress == FI_PROGRESS_AUTO);
    fi_ops_domain& ops = *inner.ops;
    ops.endpoint = [](fid_domain* object, fi_info* its_info, fid_ep** endpoint, void* context) noexcept {
        return open_endpoint(object, its_info, endpoint, 0, context);
    };
    if (has(&domain.inner_ops(), &fi_ops_domain::endpoint2)) ops.endpoint2 = &Domain::open_endpoint;
    if (!domain.collective_) return;
    ops.cq_open = [](fid_domain* object, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept {
        return guard([&] { return Cq::open(of(*object), attr, cq, context); });
    };
    ops.av_open = [](fid_domain* object, fi_av_attr* attr, fid_av** av, void* context) noexcept {
        return guard([&] {
            if (attr == nullptr || av == nullptr) return -FI_EINVAL;
            const int rc = of(*object).inner_ops().av_open(object, attr, av, context);
            if (rc == 0) Av::graft(**av, *attr);
            return rc;
        });
    };
    // A set of the inner provider's would never tell of a collective.
    ops.poll_open = [](fid_domain*, fi_poll_attr*, fid_poll**) noexcept {
        log_line(Level::warn, "fi_poll_open: there are no poll sets where there are collectives");
        return -FI_ENOSYS;
    };
    ops.query_collective = &query_collective;
}

int Domain::open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                          void* context) noexcept {
    return guard([&] {
        if (info == nullptr || endpoint == nullptr) return -FI_EINVAL;
        InfoOwner inner = to_inner(*info);
        if (!inner) return -FI_ENOMEM;
        Domain& self = of(*domain);
        const auto open = [&](fi_info* with) {
            return flags == 0 ? self.inner_ops().endpoint(domain, with, endpoint, context)
                              : self.inner_ops().endpoint2(domain, with, endpoint, flags, context);
        };
        if (!self.collective_ || (info->caps & FI_COLLECTIVE) == 0) return open(inner.get());
        auto prepared = std::make_unique<Endpoint>(self, std::move(inner));
        if (const int rc = open(prepared->info.get()); rc != 0) return rc;
        Endpoint::graft(std::move(prepared), **endpoint);
        return 0;
    });
}

Result<std::shared_ptr<ProgressThread>> ProgressThread::start(Fabric& fabric) {
    std::shared_ptr<ProgressThread> made(new ProgressThread(fabric));
    if (!made->wait_object_.open(-1)) return Error{FI_EMFILE, "no descriptors for the progress thread"};
    if (fabric.add_wait_object(made->wait_object_) != 0)
        return Error{FI_ENOMEM, "nothing would wake the progress thread"};
    // Signals are the application's, and its threads'.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started =
        succeeds([&] { made->thread_ = std::thread([thread = made.get()] { thread->work(); }); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) {
        fabric.remove_wait_object(made->wait_object_);
        return Error{FI_ENOMEM, "the system has no thread for it"};
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
        const WaitObject::Sleeper sleeper(wait_object_);
        wait_object_.reset();
        // The order of reset() and this look matters: who stops wakes last.
        if (stop_.load(std::memory_order_acquire)) break;
        // Nobody else moves anything, so that what is thrown here must not end it.
        bool may_sleep = false;
        succeeds([&] { may_sleep = fabric_.prepare_wait(); });
        if (may_sleep)
            wait_object_.sleep(-1);
        else
            ::sched_yield();
    }
    fabric_.remove_wait_object(wait_object_);
}

}  // namespace mcastcoll::ofi
