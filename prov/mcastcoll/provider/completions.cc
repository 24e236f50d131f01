#include "provider/completions.h"

#include <rdma/fi_errno.h>

#include <cassert>
#include <cstring>

namespace mcastcoll::provider {
namespace {

template <typename Entry>
std::byte* put(std::byte* at, const Entry& entry) {
    std::memcpy(at, &entry, sizeof entry);
    return at + sizeof entry;
}

}  // namespace

void Completions::push(const Completion& completion) {
    [[maybe_unused]] const bool fits = ring_.push(completion);
    assert(fits);
    any_.store(true, std::memory_order_release);
}

std::byte* Completions::write(std::byte* at, const Completion& one) const {
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

ssize_t Completions::take(void* buffer, std::size_t count, fi_addr_t* source) {
    if (ring_.empty()) return -FI_EAGAIN;
    if (ring_.front().error != 0) return -FI_EAVAIL;
    if (buffer == nullptr) return 0;
    auto* at = static_cast<std::byte*>(buffer);
    std::size_t taken = 0;
    while (taken < count && !ring_.empty() && ring_.front().error == 0) {
        at = write(at, ring_.front());
        if (source != nullptr) source[taken] = ring_.front().source;
        ring_.pop();
        ++taken;
    }
    any_.store(!ring_.empty(), std::memory_order_release);
    return static_cast<ssize_t>(taken);
}

ssize_t Completions::take_error(fi_cq_err_entry& entry, std::uint32_t api_version) {
    if (ring_.empty() || ring_.front().error == 0) return -FI_EAGAIN;
    const Completion& failed = ring_.front();
    entry.op_context = failed.op_context;
    entry.flags = failed.flags;
    entry.len = failed.length;
    entry.olen = failed.left_out;
    entry.buf = failed.buffer;
    entry.data = entry.tag = 0;
    entry.err = entry.prov_errno = failed.error;
    // The caller's err_data stays unchanged: a size of 0 says that there is none. API versions before 1.5
    // have no size.
    if (FI_VERSION_GE(api_version, FI_VERSION(1, 5))) entry.err_data_size = 0;
    ring_.pop();
    any_.store(!ring_.empty(), std::memory_order_release);
    return 1;
}

}  // namespace mcastcoll::provider
