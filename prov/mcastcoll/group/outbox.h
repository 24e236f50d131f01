// Queues join messages to members until there is room to send them: a welcome or an abort to many members,
// and single messages of protocols without flow control of their own.
//
// A message is stored once, and sent to its receivers one after the other as room comes. Messages leave in
// the order of post().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/types.h"
#include "wire/join.h"

namespace mcastcoll::group {

// Longest message between processes, and so the longest join message: 64 KiB and a header.
inline constexpr std::size_t kMessageBytes = 65536 + 128;

class Outbox {
  public:
    using Peer = std::uint64_t;   // a receiver, as numbered by the messenger
    using Owner = std::uint64_t;  // the join that may withdraw the message
    static constexpr Owner kNoOwner = 0;

    class Port {
      public:
        virtual bool has_room(std::size_t bytes) const = 0;
        // Called only when there is room. May lead to further posts and withdrawals.
        virtual void send_join_message(Peer to, Bytes message) = 0;

      protected:
        ~Port() = default;
    };

    void post(std::vector<Peer> to, wire::ByteString message, Owner owner = kNoOwner) {
        if (to.empty()) return;
        auto kept = std::make_shared<const wire::ByteString>(std::move(message));
        entries_.push_back({std::move(kept), std::move(to), 0, owner});
    }
    // Drops the unsent messages of this owner.
    void withdraw(Owner owner) {
        if (owner == kNoOwner) return;
        std::erase_if(entries_, [&](const Entry& entry) { return entry.owner == owner; });
    }
    // Sends as many messages as there is room for. Returns true if any was sent.
    bool flush(Port& port) {
        bool moved = false;
        while (!entries_.empty() && port.has_room(next_bytes())) {
            // Sending may post and withdraw: no reference into an entry is used after the call.
            Entry& entry = entries_.front();
            const std::shared_ptr<const wire::ByteString> message = entry.message;
            const Peer to = entry.to[entry.sent++];
            if (entry.sent == entry.to.size()) entries_.pop_front();
            port.send_join_message(to, *message);
            moved = true;
        }
        return moved;
    }
    bool empty() const { return entries_.empty(); }
    // Size of the next message. Call only when not empty.
    std::size_t next_bytes() const { return entries_.front().message->size(); }

  private:
    struct Entry {
        std::shared_ptr<const wire::ByteString> message;
        std::vector<Peer> to;
        std::size_t sent = 0;
        Owner owner = kNoOwner;
    };
    std::deque<Entry> entries_;  // each has at least one receiver left
};

}  // namespace mcastcoll::group
