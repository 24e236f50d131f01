#include "datagram/queues.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/deadline.h"

namespace mcastcoll::ofi::datagram {
namespace {

constexpr std::size_t kUsualCompletions = 1024;
constexpr std::size_t kMaxCompletions = std::size_t{1} << 20;
constexpr std::size_t kMaxEvents = 65536;
constexpr std::size_t kMaxBytes = 4096;  // per event

// Opens the wait object that an attribute requests and stores its kind in the attribute. Only descriptors are
// supported.
int open_wait(WaitObject& object, fi_wait_obj& wanted) {
    if (wanted == FI_WAIT_NONE) return 0;
    if (wanted != FI_WAIT_UNSPEC && wanted != FI_WAIT_FD) return -FI_ENOSYS;
    if (!object.open(-1)) return -FI_EMFILE;
    wanted = FI_WAIT_FD;
    return 0;
}

// For fi_cq_strerror() and fi_eq_strerror(): the provider's codes are libfabric's.
template <typename Queue>
const char* describe_error(Queue*, int error, const void*, char* buffer, std::size_t length) noexcept {
    const char* text = fi_strerror(error);
    if (buffer != nullptr) std::snprintf(buffer, length, "%s", text);
    return text;
}

}  // namespace

bool Waiter::add(Source& source) {
    if (std::find(sources_.begin(), sources_.end(), &source) != sources_.end()) return false;
    sources_.push_back(&source);
    return true;
}

void Waiter::progress() {
    for (Source* source : sources_) source->receive();
}

void Waiter::prepare() {
    wait_object_.reset();
    wait_object_.arm();
    progress();
    for (Source* source : sources_) source->watch();
}

void Waiter::prepare_wait() {
    const std::lock_guard lock(mutex_);
    prepare();
}

template <typename Ready>
ssize_t Waiter::sleep_until(int timeout, int rest_ms, Ready ready) {
    if (!wait_object_.is_open()) return -FI_ENOSYS;
    const Deadline deadline(timeout);
    {
        // Entries that are there already need no system call on the sockets.
        const std::lock_guard lock(mutex_);
        if (const ssize_t got = ready(); got != -FI_EAGAIN) return got;
    }
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            prepare();
            const ssize_t got = ready();
            if (got != -FI_EAGAIN || deadline.over() || wait_object_.take_signal()) return got;
        }
        // A negative value means no limit.
        const int left = deadline.left_ms();
        const bool rests = rest_ms >= 0 && (left < 0 || left > rest_ms);
        if (const int rc = wait_object_.sleep(rests ? rest_ms : left); rc != 0) return rc;
    }
}

int CompletionQueue::open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context) {
    static fi_ops_cq ops{sizeof(fi_ops_cq),
                         kCall<&CompletionQueue::read>,
                         kCall<&CompletionQueue::readfrom>,
                         kCall<&CompletionQueue::readerr>,
                         kCall<&CompletionQueue::sread>,
                         kCall<&CompletionQueue::sreadfrom>,
                         kCall<&CompletionQueue::signal>,
                         &describe_error<fid_cq>};
    if (attr == nullptr || cq == nullptr || attr->size > kMaxCompletions) return -FI_EINVAL;
    if (attr->format > FI_CQ_FORMAT_TAGGED) return -FI_EINVAL;
    const std::size_t size = attr->size != 0 ? attr->size : kUsualCompletions;
    const fi_cq_format format = attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format : FI_CQ_FORMAT_CONTEXT;
    auto made = std::make_shared<CompletionQueue>(domain, size, format, context);
    if (const int rc = open_wait(made->wait_object(), attr->wait_obj); rc != 0) return rc;
    attr->size = size;
    attr->format = format;
    made->fid_cq::ops = &ops;
    return made->give_to(*cq);
}

void CompletionQueue::push(const Completion& completion) {
    completions_.push(completion);
    wait_object().wake();
}

ssize_t CompletionQueue::take(void* buffer, std::size_t count, fi_addr_t* source) {
    const ssize_t taken = completions_.take(buffer, count, source);
    if (taken > 0 && completions_.any())
        // Another thread may still sleep, if this thread was woken in its place.
        wait_object().wake();
    return taken == 0 && count > 0 ? -FI_EINVAL : taken;  // there was no buffer
}

ssize_t CompletionQueue::readfrom(void* buffer, std::size_t count, fi_addr_t* source) {
    const std::lock_guard lock(parent().mutex);
    if (completions_.size() < count || !completions_.any()) progress();
    return take(buffer, count, source);
}

ssize_t CompletionQueue::readerr(fi_cq_err_entry* entry, std::uint64_t) {
    if (entry == nullptr) return -FI_EINVAL;
    const std::lock_guard lock(parent().mutex);
    const ssize_t taken = completions_.take_error(*entry, parent().parent().api_version);
    if (taken > 0 && completions_.any()) wait_object().wake();  // as in take()
    return taken;
}

ssize_t CompletionQueue::sread(void* buffer, std::size_t count, const void* condition, int timeout) {
    return sreadfrom(buffer, count, nullptr, condition, timeout);
}

ssize_t CompletionQueue::sreadfrom(void* buffer, std::size_t count, fi_addr_t* source, const void*,
                                   int timeout) {
    return sleep_until(timeout, -1, [&] { return take(buffer, count, source); });
}

int Counter::open(Domain& domain, fi_cntr_attr* attr, fid_cntr** counter, void* context) {
    static fi_ops_cntr ops{sizeof(fi_ops_cntr),
                           kCall<&Counter::read>,
                           kCall<&Counter::readerr>,
                           kCall<&Counter::change<&Counter::done_, true>>,
                           kCall<&Counter::change<&Counter::done_, false>>,
                           kCall<&Counter::wait>,
                           kCall<&Counter::change<&Counter::failed_, true>>,
                           kCall<&Counter::change<&Counter::failed_, false>>};
    if (attr == nullptr || counter == nullptr || attr->events != FI_CNTR_EVENTS_COMP) return -FI_EINVAL;
    auto made = std::make_shared<Counter>(domain, context);
    if (const int rc = open_wait(made->wait_object(), attr->wait_obj); rc != 0) return rc;
    made->fid_cntr::ops = &ops;
    return made->give_to(*counter);
}

void Counter::count(bool failed) {
    ++(failed ? failed_ : done_);
    wait_object().wake();
}

std::uint64_t Counter::read() {
    const std::lock_guard lock(parent().mutex);
    guard([&] { return progress(), 0; });
    return done_;
}

std::uint64_t Counter::readerr() {
    const std::lock_guard lock(parent().mutex);
    return failed_;
}

template <std::uint64_t Counter::*Value, bool Add>
int Counter::change(std::uint64_t value) {
    const std::lock_guard lock(parent().mutex);
    this->*Value = Add ? this->*Value + value : value;
    wait_object().wake();
    return 0;
}

int Counter::wait(std::uint64_t threshold, int timeout) {
    const std::uint64_t failed = readerr();
    // Only one of several sleeping threads is woken, possibly one with a higher threshold than others.
    constexpr int kRest_ms = 20;
    const ssize_t got = sleep_until(timeout, kRest_ms, [&]() -> ssize_t {
        if (done_ >= threshold) return 0;
        return failed_ != failed ? -FI_EAVAIL : -FI_EAGAIN;
    });
    return got == -FI_EAGAIN ? -FI_ETIMEDOUT : static_cast<int>(got);
}

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

}  // namespace mcastcoll::ofi::datagram
