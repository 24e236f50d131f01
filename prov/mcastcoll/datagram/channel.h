// The objects bound to the two directions of an endpoint, and the delivery of messages into posted buffers
// and of completions.
#pragma once

#include "datagram/address_vector.h"
#include "datagram/queues.h"
#include "datagram/receiver.h"

namespace mcastcoll::ofi::datagram {

// The queue and the counter for the completions of one direction.
struct Channel {
    std::shared_ptr<CompletionQueue> queue;
    std::shared_ptr<Counter> counter;
    bool selective = false;           // successful completions only on request
    std::uint64_t default_flags = 0;  // for calls without a flags argument

    bool full() const { return queue && queue->room() == 0; }
    // Whether success is reported to the queue.
    bool wants_completion(std::uint64_t flags) const {
        return queue && (!selective || (flags & FI_COMPLETION) != 0);
    }
    void complete(std::uint64_t flags, const Completion& completion);
};

// The receiving direction. All calls need the domain's lock.
struct Inbox : Channel {
    Receiver receiver;
    const AddressVector* senders = nullptr;  // null: the source was not requested

    void deliver(const PostedReceive& posted, const Datagram& datagram);
    // Cancels the first posted receive with this context. Returns 0 or -FI_E*.
    int cancel(const void* context);

    // For messages of several packets: takes a posted buffer. False: there is none, or no room for its
    // completion.
    bool begin(PostedReceive& posted) { return !full() && receiver.take(posted); }
    // False: no room for the completion at present.
    bool end(const PostedReceive& posted, const Datagram& message);
    // Returns an unused buffer.
    void give_back(const PostedReceive& posted);

  private:
    void report_cancelled(const PostedReceive& posted);
};

}  // namespace mcastcoll::ofi::datagram
