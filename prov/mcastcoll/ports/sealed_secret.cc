#include "ports/sealed_secret.h"

#include "group/secret_exchange.h"

namespace mcastcoll::ports {
namespace {

// Age at which a credential is renewed: a fifth of its lifetime of five minutes. A member that forwards a
// credential may have received it at this age, and so may the member before.
constexpr Nanoseconds kGoodFor = Nanoseconds::from_ms(60'000);

}  // namespace

const wire::ByteString* SealedSecret::credential(Nanoseconds now, Nanoseconds timeout) {
    const bool fresh = !credential_.empty() && now - made_at_ < kGoodFor;
    if (fresh) return &credential_;
    if (!call_) {
        if (!why_not_.empty()) return nullptr;
        call_ = MungeCall::encode(socket_, group::payload_of(secret_));
        give_up_at_ = now + timeout;
    }
    const MungeCall::State state = call_->state();
    if (state == MungeCall::State::under_way && now < give_up_at_) return nullptr;
    if (state == MungeCall::State::done) {
        credential_ = call_->result();
        made_at_ = now;
    } else {
        why_not_ = state == MungeCall::State::under_way ? MungeCall::kSilent : call_->reason();
    }
    call_.reset();
    return state == MungeCall::State::done ? &credential_ : nullptr;
}

}  // namespace mcastcoll::ports
