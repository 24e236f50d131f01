#include "datagram/inbox.h"

#include <rdma/fi_errno.h>

#include <algorithm>

namespace mcastcoll::datagram {

void Inbox::deliver(const PostedReceive& posted, const Datagram& datagram) {
    const std::size_t room = size_of(posted.buffer());
    provider::Completion done{.op_context = posted.context,
                              .flags = FI_RECV | FI_MSG | (datagram.multicast ? FI_MULTICAST : 0),
                              .length = std::min(datagram.length, room)};
    if (posted.count > 0) done.buffer = posted.pieces[0].iov_base;
    if (senders != nullptr) done.source = senders->find(datagram.source);
    if (datagram.length > room) {
        done.error = FI_ETRUNC;
        done.left_out = datagram.length - room;
    }
    complete(posted.flags, done);
}

void Inbox::report_cancelled(const PostedReceive& posted) {
    complete(posted.flags, {.op_context = posted.context, .flags = FI_MSG | FI_RECV, .error = FI_ECANCELED});
}

int Inbox::cancel(const void* context) {
    if (full()) return -FI_EAGAIN;
    PostedReceive cancelled;
    if (!receiver.cancel(context, cancelled)) return -FI_ENOENT;
    report_cancelled(cancelled);
    return 0;
}

bool Inbox::end(const PostedReceive& posted, const Datagram& message) {
    if (full()) return false;
    deliver(posted, message);
    return true;
}

void Inbox::give_back(const PostedReceive& posted) {
    // If other receives have taken its place meanwhile, the receive is reported as cancelled.
    if (!receiver.post(posted) && !full()) report_cancelled(posted);
}

}  // namespace mcastcoll::datagram
