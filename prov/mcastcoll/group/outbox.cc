#include "group/outbox.h"

#include <utility>

namespace mcastcoll::group {

void Outbox::post(std::vector<Peer> to, wire::ByteString word, Owner owner) {
    if (to.empty()) return;
    entries_.push_back({std::make_shared<const wire::ByteString>(std::move(word)), std::move(to), 0, owner});
}

void Outbox::withdraw(Owner owner) {
    if (owner == kNobody) return;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.owner == owner; });
}

// Sending may post and withdraw: nothing of an entry is used after the call.
bool Outbox::flush(Port& port) {
    bool moved = false;
    while (!entries_.empty() && port.has_room(next_bytes())) {
        Entry& entry = entries_.front();
        const std::shared_ptr<const wire::ByteString> word = entry.word;
        const Peer to = entry.to[entry.sent++];
        if (entry.sent == entry.to.size()) entries_.pop_front();
        port.send_word(to, *word);
        moved = true;
    }
    return moved;
}

}  // namespace mcastcoll::group
