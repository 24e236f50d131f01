#include "datagram/channel.h"

namespace mcastcoll::ofi::datagram {

void Channel::complete(std::uint64_t flags, const Completion& completion) {
    if (counter) counter->count(completion.error != 0);
    if (completion.error != 0 ? queue != nullptr : wants_completion(flags)) queue->push(completion);
}

}  // namespace mcastcoll::ofi::datagram
