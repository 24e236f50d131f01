// How the members of a group come to its secret where MUNGE carries it: before they greet.
//
//     rank 0     has drawn it, and has a credential made, which has the secret in it and which only processes
//                of its own user can open (ports/munge.h)
//     others     ask whom they are going to greet (greeting_parent()), again and again; are sent the
//                credential, open it, and answer in turn those who will greet them
//
// A reply has behind it a tag under a key of the secret, over the request's nonce: who sends it knows the
// secret now. So what was heard of an earlier join is refused, and one credential does for all who ask, which
// costs munged one call on each side and no more. That munged calls a credential replayed is no reason to
// refuse it: a host's processes each open the same one.
//
// Pure: what takes time, or asks munged, is the port's.
#pragma once

#include <optional>
#include <vector>

#include "group/joins.h"
#include "wire/protection.h"

namespace mcastcoll::group {

// What a credential holds, and the secret in it; or nothing: it was made for something else.
wire::ByteString payload_of(const wire::Key& secret);
std::optional<wire::Key> secret_in(Bytes payload);

// One member's part, of one join.
class SecretExchange {
  public:
    class Port {
      public:
        // A request to where this member very likely has its service address: each attempt tries another
        // place.
        virtual void ask(Rank whom, std::uint32_t attempt, Bytes request) = 0;
        // Whether a datagram from there may be this member's.
        virtual bool comes_from(Rank rank, const Source& source) = 0;
        virtual void answer(const Source& source, Bytes reply) = 0;
        // Of a member that knows the secret: a credential that will be good for a while. Null: not yet.
        virtual const wire::ByteString* credential(Nanoseconds now) = 0;
        // Begins to open one; on_opened() follows, and nothing is asked of it before.
        virtual void unseal(const wire::ByteString& credential) = 0;

      protected:
        ~Port() = default;
    };

    // own: this member's request, with a nonce that nobody can foresee. Secret: of rank 0.
    SecretExchange(const wire::KeyRequest& own, const std::optional<wire::Key>& secret, Port& port)
        : own_(own), port_(port), secret_(secret) {}

    const wire::KeyRequest& own() const { return own_; }
    const std::optional<wire::Key>& secret() const { return secret_; }

    // Whether this member is to answer; and does, unless it has nothing to say yet.
    bool may_answer(const wire::KeyRequest& request, const Source& source);
    void answer(const wire::KeyRequest& request, const Source& source, Nanoseconds now);
    // A datagram that is a reply with a tag behind it. False: it answers nothing that was asked here.
    bool on_reply(const wire::KeyReply& reply, Bytes datagram, const Source& source);
    // What was in the last credential, or nothing where it is no member's. True: the secret is known now.
    bool on_opened(const std::optional<wire::Key>& secret);

    void on_timeout(Nanoseconds now);
    Nanoseconds next_deadline() const { return secret_ ? kNever : ask_at_; }

  private:
    const wire::KeyRequest own_;
    Port& port_;
    std::optional<wire::Key> secret_;
    wire::ByteString opening_;  // the reply whose credential is being opened
    Nanoseconds ask_at_{};
    std::uint32_t attempt_ = 0, refusals_ = 0;
};

// Those of one process.
class SecretExchanges {
  public:
    void add(SecretExchange& one) { exchanges_.push_back(&one); }
    void remove(SecretExchange& one) noexcept { std::erase(exchanges_, &one); }
    // False: it is not about a secret, or of a list that has no join under way here.
    bool on_datagram(Bytes datagram, const Source& source, Nanoseconds now);
    // Of those, what nobody here is to be sent.
    std::uint64_t foreign_datagrams() const { return foreign_datagrams_; }

  private:
    bool on_request(const wire::KeyRequest& request, const Source& source, Nanoseconds now);
    bool on_reply(const wire::KeyReply& reply, Bytes datagram, const Source& source);

    std::vector<SecretExchange*> exchanges_;
    std::uint64_t foreign_datagrams_ = 0;
};

}  // namespace mcastcoll::group
