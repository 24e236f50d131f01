// The datagrams of joins, by the service address at which peers find each other, and the reliable words of
// them that are no group's.
#pragma once

#include "group/joins.h"
#include "ports/messenger.h"
#include "transport/rendezvous.h"

namespace mcastcoll::ofi {

// How many greetings are read at once. Unless a group greets there are none for a while after as many as
// that: who floods the socket is to take little of the groups' time. What has no room meanwhile the kernel
// drops, and a genuine greeting comes again.
class GreetingPace {
  public:
    static constexpr unsigned kMaxAtWork = 8;
    static constexpr Nanoseconds kPause = Nanoseconds::from_ms(1);
    unsigned may_read(bool greets, bool works, Nanoseconds now) const {
        if (rests_until(greets, now) > now) return 0;
        return works && !greets ? kMaxAtWork : Rendezvous::kReceiveLimit;
    }
    void has_read(std::size_t count, unsigned of, bool strangers, Nanoseconds now) {
        if (strangers || (of > 0 && count >= of)) paused_until_ = now + kPause;
    }
    // Now: it does not.
    Nanoseconds rests_until(bool greets, Nanoseconds now) const {
        return greets ? now : std::max(paused_until_, now);
    }

  private:
    Nanoseconds paused_until_{};
};

class Greetings final : public group::Joins::Port {
  public:
    // `scope`: as Rendezvous::open.
    Result<void> open(const wire::ByteString& own_address, std::uint32_t scope);
    // What words go through, from now on.
    void use(Messenger& messenger) { messenger_ = &messenger; }
    int descriptor() const { return rendezvous_->descriptor(); }

    // A datagram to where a member very likely has its service address: each attempt tries another place.
    void greet(const wire::ByteString& member, std::uint32_t attempt, Bytes message);
    // Not more than so many; returns how many were read.
    template <typename Take>
    std::size_t receive(unsigned most, Take take) {
        const auto deliver = [&](Bytes bytes, const RendezvousSource& source) {
            const Bytes from = source.bytes();
            take(bytes, group::Source{from.begin(), from.end()});
        };
        return rendezvous_->receive(deliver, most);
    }

    void reply(const group::Source& source, Bytes datagram) override;
    bool may_be(const wire::ByteString& member, const group::Source& source) const override;
    bool same_host(const wire::ByteString& one, const wire::ByteString& other) const override;
    Result<fi_addr_t> peer(const wire::ByteString& address) override { return messenger_->peer(address); }
    void tell(std::vector<fi_addr_t> to, wire::ByteString word) override {
        messenger_->tell(std::move(to), std::move(word));
    }
    void foreign_version(const group::Source& source, std::uint8_t version) override;

  private:
    std::optional<Rendezvous> rendezvous_;
    Messenger* messenger_ = nullptr;
};

}  // namespace mcastcoll::ofi
