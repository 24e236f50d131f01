#include "ports/munge_secret.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::ports {
namespace {

// Interval at which a sleeping thread checks a call in progress: the end of the call does not wake the
// thread.
constexpr Nanoseconds kLookEvery = Nanoseconds::from_ms(1);

}  // namespace

MungeSecret::MungeSecret(Parameters parameters, group::MemberList members, group::SecretExchanges& exchanges,
                         ServiceSocket& service_socket)
    : parameters_(std::move(parameters)),
      members_(std::move(members)),
      exchanges_(exchanges),
      service_socket_(service_socket),
      exchange_(parameters_.request,
                parameters_.own ? std::optional(parameters_.own->secret()) : std::nullopt, *this),
      sealed_(parameters_.own) {
    exchanges_.add(exchange_);
    if (sealed_) sealed_->forgive();
}

void MungeSecret::unseal(const wire::ByteString& credential) {
    opening_ = credential;
    call_ = MungeCall::decode(parameters_.socket, credential);
    give_up_at_ = kNever;
}

void MungeSecret::progress(Nanoseconds now) {
    looked_at_ = now;
    if (parameters_.own && members_->size() > 1) (void)credential(now);
    if (call_) look_at_opened(now);
    if (why_not_.empty()) exchange_.on_timeout(now);
}

void MungeSecret::look_at_opened(Nanoseconds now) {
    if (give_up_at_ == kNever) give_up_at_ = now + parameters_.timeout;
    const MungeCall::State state = call_->state();
    if (state == MungeCall::State::under_way && now < give_up_at_) return;
    const MungeCall call = *std::exchange(call_, {});
    if (state == MungeCall::State::under_way || state == MungeCall::State::unavailable) {
        why_not_ = state == MungeCall::State::under_way ? MungeCall::kSilent : call.reason();
        return;
    }
    if (state == MungeCall::State::refused) refused_ = call.reason();
    const auto secret =
        state == MungeCall::State::done ? group::secret_in(call.result()) : std::optional<wire::Key>();
    if (!exchange_.on_opened(secret)) return;
    sealed_ =
        std::make_shared<SealedSecret>(parameters_.socket, *exchange_.secret(), std::move(opening_), now);
}

std::string MungeSecret::why_not() const {
    // Rank 0 has the secret. Without a credential, rank 0 could not answer the requests of the other members.
    return parameters_.own && why_not_.empty() ? sealed_->why_not() : why_not_;
}

Nanoseconds MungeSecret::next_deadline() const {
    if (!call_ && !(sealed_ && sealed_->under_way())) return exchange_.next_deadline();
    return std::min(exchange_.next_deadline(), looked_at_ + kLookEvery);
}

}  // namespace mcastcoll::ports
