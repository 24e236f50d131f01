// Sends and receives the datagrams of joins through the service socket, where peers find each other, and
// sends reliable join messages without a group.
#pragma once

#include "group/joins.h"
#include "ports/messenger.h"
#include "transport/rendezvous.h"
#include "transport/rendezvous_source.h"

namespace mcastcoll::ports {

class ServiceSocket final : public group::Joins::Port {
  public:
    // `scope`: see Rendezvous::open.
    Result<void> open(const wire::ByteString& own_address, std::uint32_t scope);
    // Sets the messenger for reliable join messages.
    void use(Messenger& messenger) { messenger_ = &messenger; }
    int descriptor() const { return rendezvous_->descriptor(); }

    // Sends a datagram to one of the candidate addresses of the member's service socket (rendezvous.h), which
    // `attempt` selects. Every other attempt selects the first candidate, the most likely one.
    void send_hello(const wire::ByteString& member, std::uint32_t attempt, Bytes message);
    // Reads at most `max` datagrams and returns their number.
    template <typename Take>
    std::size_t receive(unsigned max, Take take) {
        const auto deliver = [&](Bytes bytes, const transport::RendezvousSource& source) {
            const Bytes from = source.bytes();
            take(bytes, group::Source{from.begin(), from.end()});
        };
        return rendezvous_->receive(deliver, max);
    }

    void reply(const group::Source& source, Bytes datagram) override;
    bool may_be(const wire::ByteString& member, const group::Source& source) const override;
    bool same_host(const wire::ByteString& one, const wire::ByteString& other) const override;
    Result<fi_addr_t> peer(const wire::ByteString& address) override { return messenger_->peer(address); }
    void queue_message(std::vector<fi_addr_t> to, wire::ByteString message) override {
        messenger_->queue_message(std::move(to), std::move(message));
    }
    void foreign_version(const group::Source& source, std::uint8_t version) override;

  private:
    std::optional<transport::Rendezvous> rendezvous_;
    Messenger* messenger_ = nullptr;
};

}  // namespace mcastcoll::ports
