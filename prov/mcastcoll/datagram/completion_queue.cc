#include "datagram/completion_queue.h"

namespace mcastcoll::datagram {
namespace {

constexpr std::size_t kUsualCompletions = 1024;
constexpr std::size_t kMaxCompletions = std::size_t{1} << 20;

}  // namespace

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

void CompletionQueue::push(const provider::Completion& completion) {
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

}  // namespace mcastcoll::datagram
