#include "host/memories.h"

#include <errno.h>

namespace mcastcoll::host {

bool Memories::meet(std::uint32_t self, std::uint32_t size, bool may_copy) {
    for (std::uint32_t member = 0; member < size; ++member) {
        const Card& card = rings_.card(member);
        peers_.push_back({card.pid, card.nonce_address, card.nonce});
        if (member != self && may_copy) may_copy = can_copy_from(peers_.back());
    }
    return may_copy;
}

bool Memories::read(std::uint32_t member, std::uint64_t address, std::byte* to, std::size_t bytes) {
    const int code = copy_from(peers_[member], address, to, bytes);
    if (code != 0) fail(member, code);
    if (rings_.failure() != 0) return false;
    copied_bytes_ += bytes;
    return true;
}

bool Memories::write(std::uint32_t member, std::uint64_t address, const std::byte* from, std::size_t bytes) {
    const int code = copy_to(peers_[member], address, from, bytes);
    if (code != 0) return fail(member, code), false;
    copied_bytes_ += bytes;
    return true;
}

void Memories::fail(std::uint32_t member, int code) {
    const bool gone = code == ESRCH || !rings_.is_alive(member);
    rings_.alarm().fail(gone ? ECONNRESET : code, member);
}

}  // namespace mcastcoll::host
