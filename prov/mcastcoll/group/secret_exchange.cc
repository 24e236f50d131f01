#include "group/secret_exchange.h"

#include <algorithm>
#include <string_view>

#include "group/gathering.h"

namespace mcastcoll::group {
namespace {

// Prefix of a credential's payload; other programs' credentials lack the prefix.
constexpr std::string_view kPurpose = "mcastcoll: the secret of a group\n";
// Longest interval between two requests, and between requests after refused credentials: munged also serves
// other programs.
constexpr std::int64_t kMaxRequestMs = 20, kMaxRefusedMs = 500;

wire::JoinKey reply_key(const wire::Key& secret) {
    return wire::derive(secret, "key reply");
}

}  // namespace

wire::ByteString payload_of(const wire::Key& secret) {
    wire::ByteString payload(kPurpose.size() + secret.size());
    const auto end = std::ranges::copy(std::as_bytes(std::span(kPurpose)), payload.begin()).out;
    std::ranges::copy(secret, end);
    return payload;
}

std::optional<wire::Key> secret_in(Bytes payload) {
    wire::Key secret;
    if (payload.size() != kPurpose.size() + secret.size()) return {};
    if (!std::ranges::equal(payload.first(kPurpose.size()), std::as_bytes(std::span(kPurpose)))) return {};
    std::ranges::copy(payload.subspan(kPurpose.size()), secret.begin());
    return secret;
}

bool SecretExchange::may_answer(const wire::KeyRequest& request, const Source& source) {
    return request.members == own_.members && request.rank != rank_of(0) &&
           hello_parent(request.rank) == own_.rank && port_.comes_from(request.rank, source);
}

void SecretExchange::answer(const wire::KeyRequest& request, const Source& source, Nanoseconds now) {
    const wire::ByteString* const credential = secret_ ? port_.credential(now) : nullptr;
    if (credential == nullptr) return;  // the requester repeats its request
    const wire::KeyReply reply{request.id, request.rank, request.nonce, *credential};
    const wire::ByteString datagram = wire::prove(wire::encode(reply), reply_key(*secret_));
    if (datagram.size() <= wire::kKeyRequestBytes) port_.answer(source, datagram);
}

bool SecretExchange::on_reply(const wire::KeyReply& reply, Bytes datagram, const Source& source) {
    if (reply.nonce != own_.nonce || reply.to != own_.rank || own_.rank == rank_of(0)) return false;
    if (!port_.comes_from(hello_parent(own_.rank), source)) return false;
    // One reply at a time: a flood of forged replies causes little work, and a genuine reply comes again.
    if (secret_ || !opening_.empty()) return true;
    opening_.assign(datagram.begin(), datagram.end());
    port_.unseal(reply.credential);
    return true;
}

bool SecretExchange::on_opened(const std::optional<wire::Key>& secret) {
    if (secret && !secret_ && wire::proven(opening_, reply_key(*secret))) secret_ = secret;
    opening_.clear();
    if (!secret_) ++refusals_;
    return secret_.has_value();
}

void SecretExchange::on_timeout(Nanoseconds now) {
    if (secret_ || now < request_at_) return;
    const std::int64_t wait_ms = refusals_ == 0
                                     ? std::min(std::int64_t{1} << std::min(attempt_, 5U), kMaxRequestMs)
                                     : std::min(kMaxRequestMs << std::min(refusals_, 5U), kMaxRefusedMs);
    request_at_ = now + Nanoseconds::from_ms(wait_ms);
    port_.send_request(hello_parent(own_.rank), attempt_++, wire::encode(own_));
}

}  // namespace mcastcoll::group
