#include "ofi/cq.h"

#include <rdma/fi_errno.h>
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <memory>

#include "base/deadline.h"
#include "provider/fid_owner.h"
#include "provider/guard.h"
#include "provider/log.h"

namespace mcastcoll::ofi {
namespace {

constexpr std::size_t kFirstRing = 64;
constexpr std::size_t kMostCompletions = 65536;

}  // namespace

int Cq::open(Fabric& fabric, const fi_ops_domain& inner_ops, fid_domain& domain, fi_cq_attr* attr,
             fid_cq** cq, void* context) {
    if (attr == nullptr || cq == nullptr) return -FI_EINVAL;
    const fi_wait_obj wanted = attr->wait_obj;
    // Who slept on any other would be woken for what the inner provider does, and for no collective.
    if (wanted != FI_WAIT_NONE && wanted != FI_WAIT_UNSPEC && wanted != FI_WAIT_FD &&
        wanted != FI_WAIT_YIELD) {
        log_line(Level::warn, "fi_cq_open: of wait objects there are FI_WAIT_NONE, _UNSPEC, _FD and _YIELD");
        return -FI_ENOSYS;
    }
    // A queue whose wait object is the provider's choice is given a descriptor, which can be nested, when it
    // has one.
    int rc = -FI_ENOSYS;
    if (wanted == FI_WAIT_UNSPEC) {
        fi_cq_attr with_descriptor = *attr;
        with_descriptor.wait_obj = FI_WAIT_FD;
        rc = inner_ops.cq_open(&domain, &with_descriptor, cq, context);
        if (rc == 0) *attr = with_descriptor;
    }
    // Yielding is ours alone, and not all inner providers know it.
    if (wanted == FI_WAIT_YIELD) {
        fi_cq_attr without = *attr;
        without.wait_obj = FI_WAIT_NONE;
        rc = inner_ops.cq_open(&domain, &without, cq, context);
    } else if (rc != 0) {
        rc = inner_ops.cq_open(&domain, attr, cq, context);
    }
    if (rc != 0) return rc;

    FidOwner<fid_cq> opened(*cq);  // closed if anything fails
    auto own = std::make_unique<Cq>(fabric, **cq, attr->format);
    own->yields_ = wanted == FI_WAIT_UNSPEC || wanted == FI_WAIT_YIELD;
    own->object_graft_.prepare((*cq)->fid.ops);
    own->cq_graft_.prepare((*cq)->ops);
    int descriptor = -1;
    if ((wanted == FI_WAIT_UNSPEC || wanted == FI_WAIT_FD) && attr->wait_obj == FI_WAIT_FD &&
        fi_control(&(*cq)->fid, FI_GETWAIT, &descriptor) == 0) {
        if (!own->nest_.open(descriptor)) return -FI_EMFILE;
        own->yields_ = false;
        if (const int added = fabric.add_nest(own->nest_); added != 0) return added;
    } else if (wanted == FI_WAIT_FD) {
        return -FI_ENOSYS;  // there is nothing that we could nest
    }
    own->install();
    opened.release();
    own.release();  // close() deletes it
    return 0;
}

void Cq::install() {
    fi_ops& object_ops = object_graft_.install(inner_.fid.ops, this);
    object_ops.close = &Cq::close;
    fi_ops_cq& ops = cq_graft_.install(inner_.ops, this);
    ops.read = &Cq::read;
    ops.readfrom = &Cq::readfrom;
    ops.readerr = &Cq::readerr;
    // Without anything to sleep on a blocking read is refused. libfabric's own providers crash there.
    ops.sread = &Cq::sread;
    ops.sreadfrom = &Cq::sreadfrom;
    ops.signal = &Cq::signal;
    object_ops.control = &Cq::control;
}

Cq* Cq::find(fid& object) {
    if (object.fclass != FI_CLASS_CQ || object.ops->close != &Cq::close) return nullptr;
    return &Graft<fi_ops>::owner_of<Cq>(object.ops);
}

int Cq::close(fid* object) noexcept {
    return guard([&] {
        Cq& cq = Graft<fi_ops>::owner_of<Cq>(object->ops);
        cq.object_graft_.take_off();
        cq.cq_graft_.take_off();
        if (const int rc = fi_close(object); rc != 0) {
            cq.object_graft_.put_on();
            cq.cq_graft_.put_on();
            return rc;
        }
        if (cq.nest_.is_open()) cq.fabric_.remove_nest(cq.nest_);
        delete &cq;
        return 0;
    });
}

int Cq::control(fid* object, int command, void* argument) noexcept {
    Cq& cq = Graft<fi_ops>::owner_of<Cq>(object->ops);
    if (command != FI_GETWAIT) return cq.object_graft_.inner()->control(object, command, argument);
    return cq.nest_.get_wait(argument);
}

bool Cq::reserve() {
    const std::size_t needed = own_.size() + reserved_ + 1;
    if (needed > kMostCompletions) return false;
    if (needed > own_.capacity()) own_.grow(std::max(kFirstRing, 2 * own_.capacity()));
    ++reserved_;
    return true;
}

void Cq::push(const Completion& completion) {
    assert(reserved_ > 0);
    --reserved_;
    own_.push(completion);
    // Another thread may sleep, and the one that did the work left nothing that its descriptors would tell
    // of.
    nest_.wake();
}

void Cq::push(void* op_context, std::uint64_t flags, std::size_t length, void* buffer) {
    push({.op_context = op_context, .flags = flags, .length = length, .buffer = buffer});
}

void Cq::push_error(void* op_context, std::uint64_t flags, int error) {
    push({.op_context = op_context, .flags = flags, .error = error});
}

ssize_t Cq::read_own(void* buffer, std::size_t count, fi_addr_t* source) {
    if (!has_own()) return -FI_EAGAIN;
    const std::lock_guard lock(fabric_.mutex());
    const ssize_t taken = own_.take(buffer, count, source);
    if (taken == 0) return -FI_EAGAIN;
    if (taken > 0 && own_.any()) nest_.wake();  // another thread may sleep that this one was woken instead of
    return taken;
}

ssize_t Cq::read(fid_cq* fid, void* buffer, std::size_t count) noexcept {
    Cq& cq = of(*fid);
    if (cq.fabric_.active() || cq.has_own()) {
        const ssize_t got = guard([&] {
            cq.fabric_.progress_on_read();
            return cq.read_own(buffer, count, nullptr);
        });
        if (got != -FI_EAGAIN) return got;
    }
    return cq.cq_graft_.inner()->read(fid, buffer, count);
}

ssize_t Cq::readfrom(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* source) noexcept {
    Cq& cq = of(*fid);
    if (cq.fabric_.active() || cq.has_own()) {
        const ssize_t got = guard([&] {
            cq.fabric_.progress_on_read();
            return cq.read_own(buffer, count, source);
        });
        if (got != -FI_EAGAIN) return got;
    }
    return cq.cq_graft_.inner()->readfrom(fid, buffer, count, source);
}

ssize_t Cq::readerr(fid_cq* fid, fi_cq_err_entry* entry, std::uint64_t flags) noexcept {
    Cq& cq = of(*fid);
    if (cq.has_own()) {
        const std::lock_guard lock(cq.fabric_.mutex());
        if (cq.own_.take_error(*entry, cq.fabric_.api_version()) > 0) return 1;
    }
    return cq.cq_graft_.inner()->readerr(fid, entry, flags);
}

bool Cq::inner_pending() {
    // Nothing is taken, since there is room for nothing. A timeout of 0 would not even look at the
    // descriptor.
    std::byte nowhere[sizeof(fi_cq_tagged_entry)];
    return cq_graft_.inner()->sread(&inner_, nowhere, 0, nullptr, 1) != -FI_EAGAIN;
}

ssize_t Cq::read_blocking(void* buffer, std::size_t count, fi_addr_t* source, int timeout) {
    if (!nest_.is_open() && !yields_) return -FI_ENOSYS;
    const Deadline deadline(timeout);
    for (;;) {
        const ssize_t got =
            source != nullptr ? readfrom(&inner_, buffer, count, source) : read(&inner_, buffer, count);
        if (got != -FI_EAGAIN) return got;
        if (deadline.over() || nest_.take_signal()) return -FI_EAGAIN;
        if (!nest_.is_open()) {
            sched_yield();
            continue;
        }
        const WaitNest::Sleeper sleeper(nest_);
        nest_.calm();
        // What was taken from others that sleep here is looked at below, or by the next read.
        if (nest_.has_signal()) continue;
        if (fabric_.active() && (!fabric_.prepare_wait() || has_own())) continue;
        if (const int rc = fabric_.inner_trywait(inner_.fid); rc == -FI_EAGAIN)
            continue;
        else if (rc != 0)
            return rc;
        if (const int rc = nest_.sleep(deadline.left_ms()); rc != 0) return rc;
    }
}

ssize_t Cq::sread(fid_cq* fid, void* buffer, std::size_t count, const void*, int timeout) noexcept {
    return guard([&] { return of(*fid).read_blocking(buffer, count, nullptr, timeout); });
}

ssize_t Cq::sreadfrom(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* source, const void*,
                      int timeout) noexcept {
    return guard([&] { return of(*fid).read_blocking(buffer, count, source, timeout); });
}

int Cq::signal(fid_cq* fid) noexcept {
    Cq& cq = of(*fid);
    return cq.nest_.is_open() || cq.yields_ ? cq.nest_.signal() : -FI_ENOSYS;
}

}  // namespace mcastcoll::ofi
