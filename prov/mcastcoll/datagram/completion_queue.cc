#include "datagram/completion_queue.h"

#include <rdma/fi_errno.h>

#include <memory>

#include "datagram/domain.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {
namespace {

constexpr std::size_t kUsualSize = 1024;
constexpr std::size_t kMostSize = std::size_t{1} << 20;

}  // namespace

CompletionQueue::CompletionQueue(Domain& domain, std::size_t size, fi_cq_format format)
    : Object(domain), waiter_(domain.mutex()), completions_(format, size) {}

int CompletionQueue::open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context) {
    static fi_ops_cq ops{sizeof(fi_ops_cq),      &read, &readfrom, &readerr, &sread, &sreadfrom, &signal,
                         &describe_error<fid_cq>};
    if (attr == nullptr || cq == nullptr || attr->size > kMostSize) return -FI_EINVAL;
    if (attr->format > FI_CQ_FORMAT_TAGGED) return -FI_EINVAL;
    const std::size_t size = attr->size != 0 ? attr->size : kUsualSize;
    const fi_cq_format format = attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format : FI_CQ_FORMAT_CONTEXT;
    auto made = std::unique_ptr<CompletionQueue>(new CompletionQueue(domain, size, format));
    if (const int rc = open_wait(made->wait_object(), attr->wait_obj); rc != 0) return rc;
    attr->size = size;
    attr->format = format;
    made->fid_cq::ops = &ops;
    *cq = hand_out(std::move(made), context);
    return 0;
}

void CompletionQueue::push(const Completion& completion) {
    completions_.push(completion);
    wait_object().wake();
}

bool CompletionQueue::prepare_wait() {
    const std::lock_guard lock(parent_.mutex());
    waiter_.prepare();
    return completions_.any();
}

ssize_t CompletionQueue::take(void* buffer, std::size_t count, fi_addr_t* source) {
    const ssize_t taken = completions_.take(buffer, count, source);
    return taken == 0 && count > 0 ? -FI_EINVAL : taken;  // there was no buffer
}

ssize_t CompletionQueue::read(fid_cq* fid, void* buffer, std::size_t count) noexcept {
    return readfrom(fid, buffer, count, nullptr);
}

ssize_t CompletionQueue::readfrom(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* source) noexcept {
    return guard([&]() -> ssize_t {
        CompletionQueue& cq = of(*fid);
        const std::lock_guard lock(cq.parent_.mutex());
        if (cq.completions_.size() < count || !cq.completions_.any()) cq.waiter_.progress();
        return cq.take(buffer, count, source);
    });
}

ssize_t CompletionQueue::readerr(fid_cq* fid, fi_cq_err_entry* entry, std::uint64_t) noexcept {
    return guard([&]() -> ssize_t {
        CompletionQueue& cq = of(*fid);
        if (entry == nullptr) return -FI_EINVAL;
        const std::lock_guard lock(cq.parent_.mutex());
        return cq.completions_.take_error(*entry, cq.parent_.api_version());
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
    return of(*fid).wait_object().signal();
}

}  // namespace mcastcoll::ofi::datagram
