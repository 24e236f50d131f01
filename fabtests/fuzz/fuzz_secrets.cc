// The messages that carry a secret to a group's members, from foreign hosts with recorded genuine messages
// and with credentials of their own. No reply is believed from a sender without the secret.
#include <utility>

#include "fuzz.h"
#include "group/secret_exchange.h"
#include "group/secret_exchanges.h"
#include "levels/schedule.h"

using namespace mcastcoll;
using namespace mcastcoll::group;

namespace {

constexpr std::uint32_t kMembers = 70;
const wire::Key kSecret = wire::derive({}, "secret"), kForged = wire::derive({}, "forged");

class Requester final : public SecretExchange::Port {
  public:
    Requester(const wire::KeyRequest& own, const std::optional<wire::Key>& secret)
        : exchange(own, secret, *this) {
        exchanges.add(exchange);
    }
    std::vector<wire::ByteString> given;

  private:
    void send_request(Rank, std::uint32_t, Bytes request) override {
        fuzz::check(wire::decode_key_request(request).has_value(), "a request can be decoded");
    }
    bool comes_from(Rank rank, const Source& source) override {
        return source.size() == 1 && source[0] == static_cast<std::byte>(index_of(rank));
    }
    void answer(const Source&, Bytes reply) override {
        fuzz::check(reply.size() <= wire::kKeyRequestBytes, "an answer is no longer than its request");
    }
    const wire::ByteString* credential(Nanoseconds) override { return &credential_; }
    void unseal(const wire::ByteString& credential) override {
        fuzz::check(given.size() == opened, "one is opened at a time");
        given.push_back(credential);
    }
    const wire::ByteString credential_ = payload_of(kSecret);

  public:
    std::size_t opened = 0;
    SecretExchange exchange;
    SecretExchanges exchanges;
};

struct Message {
    wire::ByteString bytes;
    bool may_be_believed = false;
};

Message reply_to(fuzz::Input& in, const wire::KeyRequest& request) {
    const bool is_true = in.between(0U, 7U) == 0;
    const wire::Key& known = is_true ? kSecret : kForged;
    wire::ByteString credential = payload_of(in.flag() ? kSecret : kForged);
    if (in.between(0U, 7U) == 0) credential = fuzz::take_bytes(in, 600);
    const wire::KeyReply reply{request.id, request.rank, request.nonce + in.between(0U, 1U), credential};
    wire::ByteString bytes =
        wire::prove(wire::encode(reply), wire::JoinKey(wire::derive(known, "key reply")));
    // A forged reply is authenticated by the forger's secret; a foreign credential is never decoded
    // (test_munge).
    const bool is_forged = !is_true && credential == payload_of(kForged);
    if (in.flag() && !bytes.empty()) bytes[in.between<std::size_t>(0, bytes.size() - 1)] ^= std::byte{1};
    return {std::move(bytes), is_true && !is_forged};
}

Message message_to(fuzz::Input& in, const wire::KeyRequest& own) {
    switch (in.between(0U, 3U)) {
        case 0:
            return reply_to(in, own);
        case 1: {
            const auto rank = in.between<std::uint32_t>(0, kMembers);
            return {wire::encode(wire::KeyRequest{{own.id.list_hash, in.any<std::uint32_t>()},
                                                  rank_of(rank),
                                                  kMembers + in.between(0U, 1U),
                                                  in.any<std::uint64_t>()})};
        }
        default:
            return {fuzz::take_bytes(in, 700)};
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input in(data, size);
    const auto rank = in.between<std::uint32_t>(0, kMembers - 1);
    const wire::KeyRequest own{{5, in.between(0U, 1U)}, rank_of(rank), kMembers, 99};
    Requester self(own, rank == 0 ? std::optional(kSecret) : std::nullopt);
    Nanoseconds now{};
    bool genuine = rank == 0;
    while (in.remaining_bytes() > 0) {
        now = now + Nanoseconds::from_ms(in.between(0, 50));
        self.exchange.on_timeout(now);
        const Message message = message_to(in, own);
        genuine = genuine || message.may_be_believed;
        (void)self.exchanges.on_datagram(message.bytes,
                                         Source(1, static_cast<std::byte>(in.between(0U, kMembers))), now);
        if (self.given.size() == self.opened || in.flag()) continue;
        // Like munged, does not disclose the contents of a foreign credential.
        const auto secret = secret_in(self.given[self.opened++]);
        (void)self.exchange.on_opened(secret == kSecret ? secret : std::nullopt);
    }
    fuzz::check(!self.exchange.secret() || (genuine && *self.exchange.secret() == kSecret),
                "members accept the secret only from members that know it");
    return 0;
}
