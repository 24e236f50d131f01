#include "wire/mac.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/umac.h>

#include "wire/bytes.h"

namespace mcastcoll::wire {

Mac::Mac(const Key& key) : context_(std::make_unique<umac64_ctx>()) {
    static_assert(UMAC_KEY_SIZE <= kKeyBytes && kBytes == UMAC64_DIGEST_SIZE);
    ::umac64_set_key(context_.get(), raw(key));
}

Mac::Mac(Mac&&) noexcept = default;
Mac::~Mac() {
    if (context_) ::explicit_bzero(context_.get(), sizeof *context_);
}

Mac::Tag Mac::tag(Bytes nonce, Bytes first, Bytes second) {
    ::umac64_set_nonce(context_.get(), nonce.size(), raw(nonce));
    ::umac64_update(context_.get(), first.size(), raw(first));
    ::umac64_update(context_.get(), second.size(), raw(second));
    Tag tag;
    ::umac64_digest(context_.get(), tag.size(), raw(tag.data()));
    return tag;
}

}  // namespace mcastcoll::wire
