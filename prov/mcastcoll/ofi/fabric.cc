#include "ofi/fabric.h"

#include <pthread.h>
#include <rdma/fi_endpoint.h>
#include <sched.h>
#include <time.h>

#include <csignal>

#include "mcastcoll/mcastcoll.h"
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

// What fi_query_collective() says an operation can have; README.md does, too.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

void Fabric::graft(fid_fabric& inner) {
    const Fabric& fabric = take(inner);
    fi_ops_fabric& ops = *inner.ops;
    ops.domain = &Fabric::open_domain;
    if (has(fabric.graft_.inner(), &fi_ops_fabric::domain2)) ops.domain2 = &Fabric::open_domain2;
    ops.eq_open = &Fabric::open_eq;
    ops.trywait = &Fabric::trywait;
}

template <typename Open>
int Fabric::open_any_domain(fi_info* info, fid_domain** domain, Open open) {
    if (info == nullptr || domain == nullptr) return -FI_EINVAL;
    const InfoOwner inner = to_inner(*info);
    if (!inner) return -FI_ENOMEM;
    const int rc = open(inner.get());
    if (rc == 0) Domain::graft(*this, **domain, *info);
    return rc;
}

int Fabric::open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept {
    return guard([&] {
        return of(*fabric).open_any_domain(info, domain, [&](fi_info* inner) {
            return of(*fabric).graft_.inner()->domain(fabric, inner, domain, context);
        });
    });
}

int Fabric::open_domain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                         void* context) noexcept {
    return guard([&] {
        return of(*fabric).open_any_domain(info, domain, [&](fi_info* inner) {
            return of(*fabric).graft_.inner()->domain2(fabric, inner, domain, flags, context);
        });
    });
}

int Fabric::open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept {
    return guard([&] {
        Fabric& self = of(*fabric);
        return Eq::open(self, *self.graft_.inner(), *fabric, attr, eq, context);
    });
}

int Fabric::trywait(fid_fabric* fabric, fid** objects, int count) noexcept {
    return guard([&]() -> int {
        Fabric& self = of(*fabric);
        for (int i = 0; i < count; ++i)
            if (WaitObject* one = wait_object_of(*objects[i]); one != nullptr) {
                one->reset();
                one->arm();
            }
        if (self.active() && !self.prepare_wait()) return -FI_EAGAIN;
        for (int i = 0; i < count; ++i)
            if (Cq* cq = Cq::find(*objects[i]); cq != nullptr && cq->has_own()) return -FI_EAGAIN;
        for (int i = 0; i < count; ++i)
            if (const int rc = self.inner_trywait(*objects[i]); rc != 0) return rc;
        return 0;
    });
}

int Fabric::inner_trywait(fid& object) {
    const fi_ops_fabric* inner = graft_.inner();
    if (!has(inner, &fi_ops_fabric::trywait)) return -FI_ENOSYS;
    fid* objects[1] = {&object};
    if (const int rc = inner->trywait(&inner_, objects, 1); rc != 0) return rc;
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

int Fabric::begin_automatic() {
    const std::lock_guard lock(automatic_mutex_);
    if (!thread_) {
        auto started = ProgressThread::start(*this);
        if (!started) {
            log_line(Level::warn, "FI_PROGRESS_AUTO: {}", started.error().message);
            return -started.error().code;
        }
        thread_ = std::move(started).value();
    }
    ++automatic_;
    return 0;
}

void Fabric::end_automatic() {
    const std::lock_guard lock(automatic_mutex_);
    if (--automatic_ == 0) thread_.reset();
}

void Domain::graft(Fabric& fabric, fid_domain& inner, const fi_info& info) {
    Domain& domain = take(inner, fabric);
    domain.collective_ = (info.caps & FI_COLLECTIVE) != 0;
    domain.automatic_ =
        info.domain_attr != nullptr && (info.domain_attr->data_progress == FI_PROGRESS_AUTO ||
                                        info.domain_attr->control_progress == FI_PROGRESS_AUTO);
    fi_ops_domain& ops = *inner.ops;
    ops.endpoint = &Domain::open_endpoint;
    if (has(domain.graft_.inner(), &fi_ops_domain::endpoint2)) ops.endpoint2 = &Domain::open_endpoint2;
    if (!domain.collective_) return;
    ops.cq_open = &Domain::open_cq;
    ops.av_open = &Domain::open_av;
    ops.poll_open = &Domain::open_poll;
    ops.query_collective = &Domain::query_collective;
}

template <typename Open>
int Domain::open_any_endpoint(fi_info* info, fid_ep** endpoint, Open open) {
    if (info == nullptr || endpoint == nullptr) return -FI_EINVAL;
    InfoOwner inner = to_inner(*info);
    if (!inner) return -FI_ENOMEM;
    const bool wanted = collective_ && (info->caps & FI_COLLECTIVE) != 0;
    if (!wanted) return open(inner.get());
    auto prepared = std::make_unique<Endpoint>(*this, std::move(inner));
    if (const int rc = open(prepared->info.get()); rc != 0) return rc;
    Endpoint::graft(std::move(prepared), **endpoint);
    return 0;
}

int Domain::open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) noexcept {
    return guard([&] {
        Domain& self = of(*domain);
        return self.open_any_endpoint(info, endpoint, [&](fi_info* inner) {
            return self.graft_.inner()->endpoint(domain, inner, endpoint, context);
        });
    });
}

int Domain::open_endpoint2(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                           void* context) noexcept {
    return guard([&] {
        Domain& self = of(*domain);
        return self.open_any_endpoint(info, endpoint, [&](fi_info* inner) {
            return self.graft_.inner()->endpoint2(domain, inner, endpoint, flags, context);
        });
    });
}

int Domain::open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept {
    return guard([&] {
        Domain& self = of(*domain);
        return Cq::open(self.fabric_, *self.graft_.inner(), *domain, attr, cq, context);
    });
}

// A set of the inner provider's would never tell of a collective.
int Domain::open_poll(fid_domain*, fi_poll_attr*, fid_poll**) noexcept {
    log_line(Level::warn, "fi_poll_open: there are no poll sets where there are collectives");
    return -FI_ENOSYS;
}

int Domain::open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) noexcept {
    return guard([&] {
        Domain& self = of(*domain);
        if (attr == nullptr || av == nullptr) return -FI_EINVAL;
        const int rc = self.graft_.inner()->av_open(domain, attr, av, context);
        if (rc == 0) Av::graft(**av, *attr);
        return rc;
    });
}

int Domain::query_collective(fid_domain*, fi_collective_op operation, fi_collective_attr* attr,
                             std::uint64_t flags) noexcept {
    if (attr == nullptr || attr->mode != 0 || flags != 0) return -FI_EINVAL;
    if (const int rc = supports(operation, attr->datatype, attr->op); rc != 0) return rc;
    const std::size_t width = datatype_bytes(attr->datatype).value_or(1);
    attr->datatype_attr = {.count = kMostBytes / width, .size = width};
    static_assert(FI_MCASTCOLL_MAX_MEMBERS == wire::kMostMembers);
    attr->max_members = FI_MCASTCOLL_MAX_MEMBERS;
    return 0;
}

Result<std::unique_ptr<ProgressThread>> ProgressThread::start(Fabric& fabric) {
    std::unique_ptr<ProgressThread> made(new ProgressThread(fabric));
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
