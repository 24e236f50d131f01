// The secret exchanges of one process.
#pragma once

#include <vector>

#include "group/secret_exchange.h"

namespace mcastcoll::group {

class SecretExchanges {
  public:
    void add(SecretExchange& one) { exchanges_.push_back(&one); }
    void remove(SecretExchange& one) noexcept { std::erase(exchanges_, &one); }
    // Returns false if the datagram is no secret exchange, or concerns a list without an active join here.
    bool on_datagram(Bytes datagram, const Source& source, Nanoseconds now);
    // Number of requests from ranks that no member here serves, and of replies that match no request.
    std::uint64_t foreign_datagrams() const { return foreign_datagrams_; }

  private:
    bool on_request(const wire::KeyRequest& request, const Source& source, Nanoseconds now);
    bool on_reply(const wire::KeyReply& reply, Bytes datagram, const Source& source);

    std::vector<SecretExchange*> exchanges_;
    std::uint64_t foreign_datagrams_ = 0;
};

}  // namespace mcastcoll::group
