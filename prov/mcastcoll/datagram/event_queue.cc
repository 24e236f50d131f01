#include "datagram/event_queue.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "datagram/fabric.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {
namespace {

constexpr std::size_t kMostEvents = 65536;
constexpr std::size_t kMostBytes = 4096;  // of one event

}  // namespace

int EventQueue::open(Fabric& fabric, fi_eq_attr* attr, fid_eq** eq, void* context) {
    static fi_ops_eq ops{sizeof(fi_ops_eq), &read, &readerr, &write, &sread, &describe_error<fid_eq>};
    if (attr == nullptr || eq == nullptr) return -FI_EINVAL;
    auto made = std::unique_ptr<EventQueue>(new EventQueue(fabric));
    if (const int rc = open_wait(made->wait_object_, attr->wait_obj); rc != 0) return rc;
    made->writable_ = (attr->flags & FI_WRITE) != 0;
    made->fid_eq::ops = &ops;
    *eq = hand_out(std::move(made), context);
    return 0;
}

bool EventQueue::push(Event event) {
    const std::lock_guard lock(mutex_);
    if (events_.size() >= kMostEvents) return false;
    events_.push_back(std::move(event));
    if (wait_object_.is_open()) wait_object_.wake_now();
    return true;
}

void EventQueue::pop() {
    events_.pop_front();
    if (events_.empty() && wait_object_.is_open()) wait_object_.reset();
}

bool EventQueue::push(std::uint32_t number, const fi_eq_entry& entry) {
    Event event{.number = number, .about = entry.fid};
    const auto* bytes = reinterpret_cast<const std::byte*>(&entry);
    event.body.assign(bytes, bytes + sizeof entry);
    return push(std::move(event));
}

bool EventQueue::push_error(std::uint32_t number, const fi_eq_err_entry& entry) {
    return push(Event{.number = number, .failed = true, .error = entry, .about = entry.fid});
}

void EventQueue::forget(const Handle& object) {
    const std::lock_guard lock(mutex_);
    const auto gone = std::erase_if(events_, [&](const Event& event) { return event.about == &object; });
    if (gone > 0 && events_.empty() && wait_object_.is_open()) wait_object_.reset();
}

bool EventQueue::pending() {
    const std::lock_guard lock(mutex_);
    return !events_.empty();
}

ssize_t EventQueue::read(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length,
                         std::uint64_t flags) noexcept {
    return guard([&]() -> ssize_t {
        EventQueue& eq = of(*fid);
        if (event == nullptr || (flags & ~std::uint64_t{FI_PEEK}) != 0) return -FI_EINVAL;
        const std::lock_guard lock(eq.mutex_);
        if (eq.events_.empty()) return -FI_EAGAIN;
        const Event& first = eq.events_.front();
        if (first.failed) return -FI_EAVAIL;
        const std::size_t size = first.body.size();
        if (length < size || (size > 0 && buffer == nullptr)) return -FI_ETOOSMALL;
        *event = first.number;
        std::copy(first.body.begin(), first.body.end(), static_cast<std::byte*>(buffer));
        if ((flags & FI_PEEK) == 0) eq.pop();
        return static_cast<ssize_t>(size);
    });
}

ssize_t EventQueue::readerr(fid_eq* fid, fi_eq_err_entry* entry, std::uint64_t flags) noexcept {
    return guard([&]() -> ssize_t {
        EventQueue& eq = of(*fid);
        if (entry == nullptr || (flags & ~std::uint64_t{FI_PEEK}) != 0) return -FI_EINVAL;
        const std::lock_guard lock(eq.mutex_);
        if (eq.events_.empty() || !eq.events_.front().failed) return -FI_EAGAIN;
        const fi_eq_err_entry& error = eq.events_.front().error;
        entry->fid = error.fid;
        entry->context = error.context;
        entry->data = error.data;
        entry->err = error.err;
        entry->prov_errno = error.prov_errno;
        // The caller's err_data stays: we have none, which a size of 0 says. Before 1.5 there was no size.
        if (FI_VERSION_GE(eq.parent_.api_version, FI_VERSION(1, 5))) entry->err_data_size = 0;
        if ((flags & FI_PEEK) == 0) eq.pop();
        return sizeof *entry;
    });
}

ssize_t EventQueue::write(fid_eq* fid, std::uint32_t number, const void* buffer, std::size_t length,
                          std::uint64_t flags) noexcept {
    return guard([&]() -> ssize_t {
        EventQueue& eq = of(*fid);
        if (!eq.writable_ || flags != 0 || length > kMostBytes || (length > 0 && buffer == nullptr))
            return -FI_EINVAL;
        Event event{.number = number};
        const auto* bytes = static_cast<const std::byte*>(buffer);
        event.body.assign(bytes, bytes + length);
        return eq.push(std::move(event)) ? static_cast<ssize_t>(length) : -FI_EAGAIN;
    });
}

ssize_t EventQueue::sread(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags) noexcept {
    return guard([&]() -> ssize_t {
        EventQueue& eq = of(*fid);
        if (!eq.wait_object_.is_open()) return -FI_ENOSYS;
        const Deadline deadline(timeout);
        for (;;) {
            const ssize_t got = read(fid, event, buffer, length, flags);
            if (got != -FI_EAGAIN || deadline.over()) return got;
            if (const int rc = eq.wait_object_.sleep(deadline.left_ms()); rc != 0) return rc;
        }
    });
}

}  // namespace mcastcoll::ofi::datagram
