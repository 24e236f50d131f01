#include "transport/membership.h"

#include "transport/joinable_transport.h"

namespace mcastcoll::transport {

Membership::~Membership() {
    if (hub_ != nullptr) hub_->leave(group_);
}

}  // namespace mcastcoll::transport
