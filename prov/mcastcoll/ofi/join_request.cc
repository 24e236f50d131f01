#include "ofi/join_request.h"

namespace mcastcoll::ofi {

// Sets the identity and the key that the group's members use.
void JoinRequest::settle(const wire::Key& secret) {
    core.means.key = wire::derive(secret, "join", set_key);
    core.id.list_hash = wire::hash_members(*members, *core.means.key);
    make_message_key();
}

void JoinRequest::make_message_key() {
    if (core.means.key) message_key = wire::derive(*core.means.key, "words of a join");
}

}  // namespace mcastcoll::ofi
