// Words to members that wait until there is room to send them: a welcome or an abort to everybody, and what
// is said to one member outside the protocols that know how to wait.
//
// A word is kept once, however many it is for, and goes to one after the other as room comes. All of them go
// in the order in which they were posted.
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

// The longest message between processes, its header included, and so the longest word.
inline constexpr std::size_t kMessageBytes = 65536 + 128;

class Outbox {
  public:
    using Peer = std::uint64_t;   // of the messenger
    using Owner = std::uint64_t;  // whoever may withdraw it
    static constexpr Owner kNobody = 0;

    class Port {
      public:
        virtual bool has_room(std::size_t bytes) const = 0;
        // Called only when there is room. May lead to further posts and withdrawals.
        virtual void send_word(Peer to, Bytes word) = 0;

      protected:
        ~Port() = default;
    };

    void post(std::vector<Peer> to, wire::ByteString word, Owner owner = kNobody) {
        if (to.empty()) return;
        auto kept = std::make_shared<const wire::ByteString>(std::move(word));
        entries_.push_back({std::move(kept), std::move(to), 0, owner});
    }
    // What of this owner has not been sent yet will not be.
    void withdraw(Owner owner) {
        if (owner == kNobody) return;
        std::erase_if(entries_, [&](const Entry& entry) { return entry.owner == owner; });
    }
    // Sends as much as there is room for; true if anything was sent.
    bool flush(Port& port) {
        bool moved = false;
        while (!entries_.empty() && port.has_room(next_bytes())) {
            // Sending may post and withdraw: nothing of an entry is used after the call.
            Entry& entry = entries_.front();
            const std::shared_ptr<const wire::ByteString> word = entry.word;
            const Peer to = entry.to[entry.sent++];
            if (entry.sent == entry.to.size()) entries_.pop_front();
            port.send_word(to, *word);
            moved = true;
        }
        return moved;
    }
    bool empty() const { return entries_.empty(); }
    // Bytes of the word that is next. Call only when not empty.
    std::size_t next_bytes() const { return entries_.front().word->size(); }

  private:
    struct Entry {
        std::shared_ptr<const wire::ByteString> word;
        std::vector<Peer> to;
        std::size_t sent = 0;
        Owner owner = kNobody;
    };
    std::deque<Entry> entries_;  // none without somebody whom it is still to be sent to
};

}  // namespace mcastcoll::group
