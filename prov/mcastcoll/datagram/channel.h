// The objects bound to one direction of an endpoint, and the delivery of completions.
#pragma once

#include "datagram/completion_queue.h"
#include "datagram/counter.h"

namespace mcastcoll::datagram {

// The queue and the counter for the completions of one direction.
struct Channel {
    std::shared_ptr<CompletionQueue> queue;
    std::shared_ptr<Counter> counter;
    bool selective = false;  // writes successful completions only on request (FI_SELECTIVE_COMPLETION)
    std::uint64_t default_flags = 0;  // for calls without a flags argument

    bool full() const { return queue && queue->room() == 0; }
    // Whether the successful completion of a call with these flags is written to the queue.
    bool wants_completion(std::uint64_t flags) const {
        return queue && (!selective || (flags & FI_COMPLETION) != 0);
    }
    void complete(std::uint64_t flags, const provider::Completion& completion);
};

}  // namespace mcastcoll::datagram
