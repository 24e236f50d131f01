// A secret, and a credential containing the secret. The credential is renewed before it becomes too old. Rank
// 0 uses one SealedSecret for all groups of its endpoint.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/types.h"
#include "ports/munge_call.h"
#include "wire/crypto.h"
#include "wire/peer.h"

namespace mcastcoll::ports {

class SealedSecret {
  public:
    // socket: munged's socket, or "" for the default. credential: a credential made at `now`, or empty.
    SealedSecret(std::string socket, const wire::Key& secret, wire::ByteString credential = {},
                 Nanoseconds now = {})
        : socket_(std::move(socket)), secret_(secret), credential_(std::move(credential)), made_at_(now) {}

    const wire::Key& secret() const { return secret_; }
    // Returns the credential, and begins to make a new one if it is too old. Null while a credential is being
    // made, or after a failure (why_not()).
    const wire::ByteString* credential(Nanoseconds now, Nanoseconds timeout);
    // The reason why no credential could be made; "" if there was no failure.
    const std::string& why_not() const { return why_not_; }
    bool under_way() const { return call_.has_value(); }
    // Clears a failure, so that the next call of credential() tries again.
    void forgive() { why_not_.clear(); }

  private:
    const std::string socket_;
    const wire::Key secret_;
    wire::ByteString credential_;
    Nanoseconds made_at_, give_up_at_ = kNever;
    std::optional<MungeCall> call_;
    std::string why_not_;
};

}  // namespace mcastcoll::ports
