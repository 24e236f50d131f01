// What the application has bound to the directions of an endpoint, and what comes to it that way: messages
// in buffers that it has posted, and completions.
#pragma once

#include "datagram/address_vector.h"
#include "datagram/queues.h"
#include "datagram/receiver.h"

namespace mcastcoll::ofi::datagram {

// The queue and the counter that one direction completes to.
struct Channel {
    std::shared_ptr<CompletionQueue> queue;
    std::shared_ptr<Counter> counter;
    bool selective = false;           // completions of success only when asked for
    std::uint64_t default_flags = 0;  // of calls that take none

    bool full() const { return queue && queue->room() == 0; }
    // Whether success is told by the queue.
    bool tells(std::uint64_t flags) const { return queue && (!selective || (flags & FI_COMPLETION) != 0); }
    void complete(std::uint64_t flags, const Completion& completion);
};

// The direction that receives. All with the domain's lock held.
struct Inbox : Channel {
    Receiver receiver;
    const AddressVector* senders = nullptr;  // null: nobody asks who sent a message

    void deliver(const PostedReceive& posted, const Datagram& datagram);
    // 0, or -FI_E*. The receive with this context that was posted first.
    int cancel(const void* context);

    // For messages of several packets. Takes a posted buffer; false: none, or no room for its completion.
    bool begin(PostedReceive& posted) { return !full() && receiver.take(posted); }
    // False: no room for the completion now.
    bool end(const PostedReceive& posted, const Datagram& message);
    // It will not be filled after all.
    void give_back(const PostedReceive& posted);

  private:
    void tell_cancelled(const PostedReceive& posted);
};

}  // namespace mcastcoll::ofi::datagram
