// The receiving direction of an endpoint: delivers messages into posted buffers. All calls need the domain's
// lock.
#pragma once

#include "datagram/address_vector.h"
#include "datagram/channel.h"
#include "datagram/posted_receive.h"
#include "datagram/receiver.h"

namespace mcastcoll::datagram {

struct Inbox : Channel {
    Receiver receiver;
    const AddressVector* senders = nullptr;  // null: the source was not requested

    void deliver(const PostedReceive& posted, const Datagram& datagram);
    // Cancels the first posted receive with this context. Returns 0 or -FI_E*.
    int cancel(const void* context);

    // For messages of several packets: takes a posted buffer for a new message. False: no buffer is posted,
    // or the queue has no room for a completion.
    bool begin(PostedReceive& posted) { return !full() && receiver.take(posted); }
    // Completes the message in the buffer of begin(). False: the queue has no room for the completion at
    // present.
    bool end(const PostedReceive& posted, const Datagram& message);
    // Posts the buffer of begin() again, because the message will not be completed.
    void give_back(const PostedReceive& posted);

  private:
    void report_cancelled(const PostedReceive& posted);
};

}  // namespace mcastcoll::datagram
