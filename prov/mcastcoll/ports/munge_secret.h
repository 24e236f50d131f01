// The secret of a group when MUNGE carries it: connects the exchange protocol (group/secret_exchange.h) with
// the sockets and munged.
#pragma once

#include <optional>

#include "group/secret_exchange.h"
#include "group/secret_exchanges.h"
#include "ports/munge_call.h"
#include "ports/sealed_secret.h"
#include "ports/service_socket.h"

namespace mcastcoll::ports {

class MungeSecret final : private group::SecretExchange::Port {
  public:
    struct Parameters {
        std::string socket;   // munged's socket, or ""
        Nanoseconds timeout;  // for one call of munged
        wire::KeyRequest request;
        std::shared_ptr<SealedSecret> own;  // rank 0's secret; null on the other members
    };
    MungeSecret(Parameters parameters, group::MemberList members, group::SecretExchanges& exchanges,
                ServiceSocket& service_socket);
    MungeSecret(const MungeSecret&) = delete;
    MungeSecret& operator=(const MungeSecret&) = delete;
    ~MungeSecret() { exchanges_.remove(exchange_); }

    // Sends requests, and checks the state of calls.
    void progress(Nanoseconds now);
    Nanoseconds next_deadline() const;
    const std::optional<wire::Key>& secret() const { return exchange_.secret(); }
    // The reason why this member will not get the secret; "" while it may still get the secret.
    std::string why_not() const;
    // The rank to which this member sends its requests for the secret.
    Rank requested_from() const { return group::hello_parent(parameters_.request.rank); }
    // The reason why the latest refused reply was refused, as text for the user; "" if none was.
    const std::string& refused() const { return refused_; }

  private:
    void send_request(Rank whom, std::uint32_t attempt, Bytes request) override {
        service_socket_.send_hello((*members_)[index_of(whom)], attempt, request);
    }
    bool comes_from(Rank rank, const group::Source& source) override {
        return index_of(rank) < members_->size() &&
               service_socket_.may_be((*members_)[index_of(rank)], source);
    }
    void answer(const group::Source& source, Bytes reply) override { service_socket_.reply(source, reply); }
    const wire::ByteString* credential(Nanoseconds now) override {
        return sealed_ ? sealed_->credential(now, parameters_.timeout) : nullptr;
    }
    void unseal(const wire::ByteString& credential) override;
    void look_at_opened(Nanoseconds now);

    const Parameters parameters_;
    const group::MemberList members_;
    group::SecretExchanges& exchanges_;
    ServiceSocket& service_socket_;
    group::SecretExchange exchange_;
    std::shared_ptr<SealedSecret> sealed_;  // for replies to other members
    wire::ByteString opening_;
    std::optional<MungeCall> call_;
    Nanoseconds give_up_at_ = kNever, looked_at_{};
    std::string why_not_, refused_;
};

}  // namespace mcastcoll::ports
