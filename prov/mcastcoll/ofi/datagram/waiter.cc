#include "ofi/datagram/waiter.h"

#include "ofi/datagram/endpoint.h"

namespace mcastcoll::ofi::datagram {

void Waiter::remove(Endpoint& endpoint) {
    std::erase(endpoints_, &endpoint);
}

void Waiter::progress() {
    for (Endpoint* endpoint : endpoints_) endpoint->receive();
}

void Waiter::prepare() {
    nest_.calm();
    nest_.arm();
    progress();
    for (Endpoint* endpoint : endpoints_) endpoint->watch_if_posted();
}

}  // namespace mcastcoll::ofi::datagram
