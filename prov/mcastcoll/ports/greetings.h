// The datagrams of joins, by the service address at which peers find each other, and the reliable words of
// them that are no group's.
#pragma once

#include "group/joins.h"
#include "ports/messenger.h"
#include "transport/rendezvous.h"

namespace mcastcoll::ofi {

class Greetings final : public group::Joins::Port {
  public:
    Result<void> open(const wire::ByteString& own_address);
    // What words go through, from now on.
    void use(Messenger& messenger) { messenger_ = &messenger; }
    int descriptor() const { return rendezvous_->descriptor(); }

    // A datagram to where a member very likely has its service address: each attempt tries another place.
    void greet(const wire::ByteString& member, std::uint32_t attempt, Bytes message);
    template <typename Take>
    void receive(Take take) {
        rendezvous_->receive([&](Bytes bytes, const RendezvousSource& source) {
            const Bytes from = source.bytes();
            take(bytes, group::Source{from.begin(), from.end()});
        });
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
