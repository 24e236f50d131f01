#include "datagram/event_queue.h"

#include <algorithm>
#include <cstring>

#include "base/deadline.h"
#include "datagram/waiter.h"

namespace mcastcoll::datagram {
namespace {

constexpr std::size_t kMaxEvents = 65536;
constexpr std::size_t kMaxBytes = 4096;  // per event

}  // namespace

int EventQueue::open(Fabric& fabric, fi_eq_attr* attr, fid_eq** eq, void* context) {
    static fi_ops_eq ops{sizeof(fi_ops_eq),         kCall<&EventQueue::read>,  kCall<&EventQueue::readerr>,
                         kCall<&EventQueue::write>, kCall<&EventQueue::sread>, &describe_error<fid_eq>};
    if (attr == nullptr || eq == nullptr) return -FI_EINVAL;
    auto made = std::make_shared<EventQueue>(fabric.shared_from_this(), context);
    if (const int rc = open_wait(made->wait_object_, attr->wait_obj); rc != 0) return rc;
    made->writable_ = (attr->flags & FI_WRITE) != 0;
    made->fid_eq::ops = &ops;
    return made->give_to(*eq);
}

bool EventQueue::push(std::uint32_t event, Bytes body, const Handle* about, bool failed) {
    const std::lock_guard lock(mutex_);
    if (events_.size() >= kMaxEvents) return false;
    events_.push_back({event, {body.begin(), body.end()}, about, failed});
    if (wait_object_.is_open()) wait_object_.wake_now();
    return true;
}

void EventQueue::reset_if_empty() {
    if (events_.empty() && wait_object_.is_open()) wait_object_.reset();
}

void EventQueue::forget(const Handle& object) {
    const std::lock_guard lock(mutex_);
    std::erase_if(events_, [&](const Event& event) { return event.about == &object; });
    reset_if_empty();
}

bool EventQueue::pending() {
    const std::lock_guard lock(mutex_);
    return !events_.empty();
}

// The lock must be held.
void EventQueue::drop_first() {
    events_.pop_front();
    reset_if_empty();
}

ssize_t EventQueue::read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
    if (event == nullptr || (flags & ~std::uint64_t{FI_PEEK}) != 0) return -FI_EINVAL;
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return -FI_EAGAIN;
    const Event& first = events_.front();
    if (first.failed) return -FI_EAVAIL;
    const std::size_t size = first.body.size();
    if (length < size || (size > 0 && buffer == nullptr)) return -FI_ETOOSMALL;
    *event = first.number;
    std::copy(first.body.begin(), first.body.end(), static_cast<std::byte*>(buffer));
    if ((flags & FI_PEEK) == 0) drop_first();
    return static_cast<ssize_t>(size);
}

ssize_t EventQueue::readerr(fi_eq_err_entry* entry, std::uint64_t flags) {
    if (entry == nullptr || (flags & ~std::uint64_t{FI_PEEK}) != 0) return -FI_EINVAL;
    const std::lock_guard lock(mutex_);
    if (events_.empty() || !events_.front().failed) return -FI_EAGAIN;
    fi_eq_err_entry error;
    std::memcpy(&error, events_.front().body.data(), sizeof error);
    entry->fid = error.fid;
    entry->context = error.context;
    entry->data = error.data;
    entry->err = error.err;
    entry->prov_errno = error.prov_errno;
    // The caller's err_data stays unchanged: a size of 0 says that there is none. API versions before 1.5
    // have no size.
    if (FI_VERSION_GE(parent().api_version, FI_VERSION(1, 5))) entry->err_data_size = 0;
    if ((flags & FI_PEEK) == 0) drop_first();
    return sizeof *entry;
}

ssize_t EventQueue::write(std::uint32_t number, const void* buffer, std::size_t length, std::uint64_t flags) {
    if (!writable_ || flags != 0 || length > kMaxBytes || (length > 0 && buffer == nullptr))
        return -FI_EINVAL;
    const Bytes body(static_cast<const std::byte*>(buffer), length);
    return push(number, body, nullptr, false) ? static_cast<ssize_t>(length) : -FI_EAGAIN;
}

ssize_t EventQueue::sread(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags) {
    if (!wait_object_.is_open()) return -FI_ENOSYS;
    const Deadline deadline(timeout);
    for (;;) {
        const ssize_t got = read(event, buffer, length, flags);
        if (got != -FI_EAGAIN || deadline.over()) return got;
        if (const int rc = wait_object_.sleep(deadline.left_ms()); rc != 0) return rc;
    }
}

}  // namespace mcastcoll::datagram
