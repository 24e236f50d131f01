// Distributes the secret of a group before the hellos, where MUNGE carries it.
//
//     rank 0     draws the secret and obtains a MUNGE credential with the secret, which only processes of the
//                same user can decode (ports/munge_call.h)
//     others     request the credential from their parent in the hello tree (hello_parent()), repeatedly;
//                decode it, and answer the requests of their own children
//
// A reply carries a tag under a key derived from the secret, over the request's nonce: so its sender has the
// secret now, and a recorded reply of an earlier join is refused. One credential serves all requests, which
// costs munged one call per process. When a second process of a host decodes a credential, munged reports a
// replay, which is expected and accepted here.
//
// Contains no socket and no clock: slow work and calls to munged belong to the port.
#pragma once

#include <optional>

#include "group/pending_hellos.h"
#include "wire/protection.h"

namespace mcastcoll::group {

// Builds a credential's payload.
wire::ByteString payload_of(const wire::Key& secret);
// Returns the secret in a payload, or nothing if the credential was made for another purpose.
std::optional<wire::Key> secret_in(Bytes payload);

// The exchange of one member in one join.
class SecretExchange {
  public:
    class Port {
      public:
        // Sends a request to the likely service address of this member: each attempt tries another port.
        virtual void send_request(Rank whom, std::uint32_t attempt, Bytes request) = 0;
        // Whether a datagram from this source may come from `rank`.
        virtual bool comes_from(Rank rank, const Source& source) = 0;
        virtual void answer(const Source& source, Bytes reply) = 0;
        // On a member with the secret: a credential, valid for a while. Null: not ready yet.
        virtual const wire::ByteString* credential(Nanoseconds now) = 0;
        // Starts decoding a credential. on_opened() follows. No second call comes before that.
        virtual void unseal(const wire::ByteString& credential) = 0;

      protected:
        ~Port() = default;
    };

    // own: this member's request, with an unpredictable nonce. secret: set on rank 0.
    SecretExchange(const wire::KeyRequest& own, const std::optional<wire::Key>& secret, Port& port)
        : own_(own), port_(port), secret_(secret) {}

    const wire::KeyRequest& own() const { return own_; }
    const std::optional<wire::Key>& secret() const { return secret_; }

    // Whether this member serves the requester.
    bool may_answer(const wire::KeyRequest& request, const Source& source);
    // Replies if this member has a credential. Otherwise ignores the request, which the requester repeats.
    void answer(const wire::KeyRequest& request, const Source& source, Nanoseconds now);
    // Takes a reply with its tag. Returns false if the reply matches no request of this member.
    bool on_reply(const wire::KeyReply& reply, Bytes datagram, const Source& source);
    // Takes the secret of the last credential, or nothing if decoding failed. Returns true if the secret is
    // now known.
    bool on_opened(const std::optional<wire::Key>& secret);

    void on_timeout(Nanoseconds now);
    Nanoseconds next_deadline() const { return secret_ ? kNever : request_at_; }

  private:
    const wire::KeyRequest own_;
    Port& port_;
    std::optional<wire::Key> secret_;
    wire::ByteString opening_;  // the reply with the credential that is being decoded
    Nanoseconds request_at_{};
    std::uint32_t attempt_ = 0, refusals_ = 0;
};

}  // namespace mcastcoll::group
