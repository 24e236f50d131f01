#include "ofi/fabric.h"

#include <rdma/fi_errno.h>
#include <time.h>

#include <algorithm>
#include <memory>

#include "ofi/cq.h"
#include "ofi/domain.h"
#include "ofi/eq.h"
#include "ofi/inner.h"
#include "ofi/progress_thread.h"
#include "ofi/station.h"
#include "provider/fid_owner.h"
#include "provider/guard.h"
#include "provider/wait_object.h"

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

Fabric::Fabric(fid_fabric& inner) : inner_(inner) {}

Fabric::~Fabric() = default;

int Fabric::graft(fid_fabric& inner) {
    FidOwner<fid_fabric> opened(&inner);  // closed if anything fails before it has a new table
    auto fabric = std::unique_ptr<Fabric>(new (std::nothrow) Fabric(inner));
    if (!fabric) return -FI_ENOMEM;
    fabric->object_graft_.prepare(inner.fid.ops);
    fabric->fabric_graft_.prepare(inner.ops);
    opened.release();
    fabric->object_graft_.install(inner.fid.ops, fabric.get()).close = &Fabric::close;
    fi_ops_fabric& ops = fabric->fabric_graft_.install(inner.ops, fabric.get());
    ops.domain = &Fabric::open_domain;
    if (has(fabric->fabric_graft_.inner(), &fi_ops_fabric::domain2)) ops.domain2 = &Fabric::open_domain2;
    ops.eq_open = &Fabric::open_eq;
    ops.trywait = &Fabric::trywait;
    fabric.release();  // close() deletes it
    return 0;
}

int Fabric::close(fid* object) noexcept {
    return guard([&] {
        Fabric& fabric = Graft<fi_ops>::owner_of<Fabric>(object->ops);
        const int rc = close_inner(object, fabric.object_graft_, fabric.fabric_graft_);
        if (rc == 0) delete &fabric;
        return rc;
    });
}

template <typename Open>
int Fabric::open_any_domain(fi_info* info, fid_domain** domain, Open open) {
    if (info == nullptr || domain == nullptr) return -FI_EINVAL;
    const InfoOwner inner = to_inner(*info);
    if (!inner) return -FI_ENOMEM;
    const int rc = open(inner.get());
    return rc != 0 ? rc : Domain::graft(*this, **domain, *info);
}

int Fabric::open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept {
    return guard([&] {
        return of(*fabric).open_any_domain(info, domain, [&](fi_info* inner) {
            return of(*fabric).fabric_graft_.inner()->domain(fabric, inner, domain, context);
        });
    });
}

int Fabric::open_domain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                         void* context) noexcept {
    return guard([&] {
        return of(*fabric).open_any_domain(info, domain, [&](fi_info* inner) {
            return of(*fabric).fabric_graft_.inner()->domain2(fabric, inner, domain, flags, context);
        });
    });
}

int Fabric::open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept {
    return guard([&] {
        Fabric& self = of(*fabric);
        return Eq::open(self, *self.fabric_graft_.inner(), *fabric, attr, eq, context);
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
    const fi_ops_fabric* inner = fabric_graft_.inner();
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

}  // namespace mcastcoll::ofi
