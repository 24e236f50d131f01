#include "datagram/waiter.h"

#include <algorithm>

#include "datagram/endpoint.h"

namespace mcastcoll::ofi::datagram {

void Waiter::add(Endpoint& endpoint) {
    if (std::find(endpoints_.begin(), endpoints_.end(), &endpoint) == endpoints_.end())
        endpoints_.push_back(&endpoint);
}

void Waiter::remove(Endpoint& endpoint) {
    std::erase(endpoints_, &endpoint);
}

void Waiter::progress() {
    for (Endpoint* endpoint : endpoints_) endpoint->receive();
}

void Waiter::prepare() {
    wait_object_.reset();
    wait_object_.arm();
    progress();
    for (Endpoint* endpoint : endpoints_) endpoint->watch();
}

}  // namespace mcastcoll::ofi::datagram
