#include "datagram/channel.h"

namespace mcastcoll::datagram {

void Channel::complete(std::uint64_t flags, const provider::Completion& completion) {
    if (counter) counter->count(completion.error != 0);
    if (completion.error != 0 ? queue != nullptr : wants_completion(flags)) queue->push(completion);
}

}  // namespace mcastcoll::datagram
