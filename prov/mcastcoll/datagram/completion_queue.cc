#include "datagram/completion_queue.h"

#include <rdma/fi_errno.h>

#include <cassert>
#include <cstring>
#include <memory>

#include "datagram/domain.h"
#include "datagram/refusal.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {
namespace {

constexpr std::size_t kUsualSize = 1024;
constexpr std::size_t kMostSize = std::size_t{1} << 20;

template <typename Entry>
std::byte* put(std::byte* at, const Entry& entry) {
    std::memcpy(at, &entry, sizeof entry);
    return at + sizeof entry;
}

}  // namespace

CompletionQueue::CompletionQueue(Domain& domain, std::size_t size, fi_cq_format format)
    : fid_cq{}, domain_(domain), format_(format), waiter_(domain.mutex()), ring_(size) {}

int CompletionQueue::open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context) {
    static fi_ops object_ops{sizeof(fi_ops), &close, kRefuse, &control, kRefuse, kRefuse, kRefuse};
    static fi_ops_cq ops{sizeof(fi_ops_cq), &read,   &readfrom, &readerr, &sread,
                         &sreadfrom,        &signal, &describe};
    if (attr == nullptr || cq == nullptr || attr->size > kMostSize) return -FI_EINVAL;
    if (attr->format > FI_CQ_FORMAT_TAGGED) return -FI_EINVAL;
    const bool sleeps = attr->wait_obj == FI_WAIT_UNSPEC || attr->wait_obj == FI_WAIT_FD;
    if (!sleeps && attr->wait_obj != FI_WAIT_NONE) return -FI_ENOSYS;
    if (attr->size == 0) attr->size = kUsualSize;
    if (attr->format == FI_CQ_FORMAT_UNSPEC) attr->format = FI_CQ_FORMAT_CONTEXT;
    auto made = std::unique_ptr<CompletionQueue>(new CompletionQueue(domain, attr->size, attr->format));
    if (sleeps && !made->waiter_.open()) return -FI_EMFILE;
    if (sleeps) attr->wait_obj = FI_WAIT_FD;
    made->fid_cq::fid = {FI_CLASS_CQ, context, &object_ops};
    made->fid_cq::ops = &ops;
    domain.users.enter();
    *cq = made.release();  // close() deletes it
    return 0;
}

CompletionQueue* CompletionQueue::find(Handle& object) {
    if (object.fclass != FI_CLASS_CQ || object.ops->close != &CompletionQueue::close) return nullptr;
    return &object_of<CompletionQueue, fid_cq>(&object);
}

int CompletionQueue::close(Handle* object) noexcept {
    return guard([&] {
        CompletionQueue& cq = object_of<CompletionQueue, fid_cq>(object);
        if (cq.users.any()) return -FI_EBUSY;
        cq.domain_.users.leave();
        delete &cq;
        return 0;
    });
}

int CompletionQueue::control(Handle* object, int command, void* argument) noexcept {
    CompletionQueue& cq = object_of<CompletionQueue, fid_cq>(object);
    if (command != FI_GETWAIT || !cq.waiter_.nest().is_open()) return -FI_ENOSYS;
    if (argument == nullptr) return -FI_EINVAL;
    *static_cast<int*>(argument) = cq.waiter_.nest().descriptor();
    return 0;
}

void CompletionQueue::push(const Completion& completion) {
    assert(room() > 0);
    ring_[(head_ + count_) % ring_.size()] = completion;
    ++count_;
    waiter_.nest().wake();
}

bool CompletionQueue::prepare_wait() {
    const std::lock_guard lock(domain_.mutex());
    waiter_.prepare();
    return count_ > 0;
}

std::byte* CompletionQueue::write(std::byte* at, const Completion& one) const {
    switch (format_) {
        case FI_CQ_FORMAT_UNSPEC:
        case FI_CQ_FORMAT_CONTEXT:
            return put(at, fi_cq_entry{one.op_context});
        case FI_CQ_FORMAT_MSG:
            return put(at, fi_cq_msg_entry{one.op_context, one.flags, one.length});
        case FI_CQ_FORMAT_DATA:
            return put(at, fi_cq_data_entry{one.op_context, one.flags, one.length, one.buffer, 0});
        case FI_CQ_FORMAT_TAGGED:
            return put(at, fi_cq_tagged_entry{one.op_context, one.flags, one.length, one.buffer, 0, 0});
    }
    return at;
}

ssize_t CompletionQueue::take(void* buffer, std::size_t count, fi_addr_t* source) {
    if (count_ == 0) return -FI_EAGAIN;
    if (ring_[head_].error != 0) return -FI_EAVAIL;
    if (count == 0) return 0;
    if (buffer == nullptr) return -FI_EINVAL;
    auto* at = static_cast<std::byte*>(buffer);
    std::size_t taken = 0;
    while (taken < count && count_ > 0 && ring_[head_].error == 0) {
        at = write(at, ring_[head_]);
        if (source != nullptr) source[taken] = ring_[head_].source;
        head_ = (head_ + 1) % ring_.size();
        --count_;
        ++taken;
    }
    return static_cast<ssize_t>(taken);
}

ssize_t CompletionQueue::read(fid_cq* fid, void* buffer, std::size_t count) noexcept {
    return readfrom(fid, buffer, count, nullptr);
}

ssize_t CompletionQueue::readfrom(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* source) noexcept {
    return guard([&]() -> ssize_t {
        CompletionQueue& cq = of(*fid);
        const std::lock_guard lock(cq.domain_.mutex());
        if (cq.count_ < count || cq.count_ == 0) cq.waiter_.progress();
        return cq.take(buffer, count, source);
    });
}

ssize_t CompletionQueue::readerr(fid_cq* fid, fi_cq_err_entry* entry, std::uint64_t) noexcept {
    return guard([&]() -> ssize_t {
        CompletionQueue& cq = of(*fid);
        if (entry == nullptr) return -FI_EINVAL;
        const std::lock_guard lock(cq.domain_.mutex());
        if (cq.count_ == 0 || cq.ring_[cq.head_].error == 0) return -FI_EAGAIN;
        const Completion failed = cq.ring_[cq.head_];
        cq.head_ = (cq.head_ + 1) % cq.ring_.size();
        --cq.count_;
        entry->op_context = failed.op_context;
        entry->flags = failed.flags;
        entry->len = failed.length;
        entry->olen = failed.left_out;
        entry->buf = failed.buffer;
        entry->data = entry->tag = 0;
        entry->err = entry->prov_errno = failed.error;
        // The caller's err_data stays: we have none, which a size of 0 says. Before 1.5 there was no size.
        if (FI_VERSION_GE(cq.domain_.api_version(), FI_VERSION(1, 5))) entry->err_data_size = 0;
        return 1;
    });
}

ssize_t CompletionQueue::sread(fid_cq* fid, void* buffer, std::size_t count, const void*,
                               int timeout) noexcept {
    return sreadfrom(fid, buffer, count, nullptr, nullptr, timeout);
}

ssize_t CompletionQueue::sreadfrom(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* source,
                                   const void*, int timeout) noexcept {
    return guard([&]() -> ssize_t {
        CompletionQueue& cq = of(*fid);
        return cq.waiter_.wait(timeout, [&] { return cq.take(buffer, count, source); });
    });
}

int CompletionQueue::signal(fid_cq* fid) noexcept {
    return of(*fid).waiter_.nest().signal();
}

const char* CompletionQueue::describe(fid_cq*, int provider_error, const void*, char* buffer,
                                      std::size_t length) noexcept {
    const char* text = fi_strerror(provider_error);
    if (buffer != nullptr && length > 0) {
        std::strncpy(buffer, text, length - 1);
        buffer[length - 1] = '\0';
    }
    return text;
}

}  // namespace mcastcoll::ofi::datagram
