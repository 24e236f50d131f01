// Memory for secrets that outlive a job: core dumps leave it out, and it stays out of the swap file where
// RLIMIT_MEMLOCK permits.
#pragma once

#include <memory>
#include <new>

#include "base/types.h"

namespace mcastcoll {

// At least `bytes` bytes of zeros in pages of their own, cleared before they are unmapped; null without
// memory.
std::shared_ptr<void> map_undumped(std::size_t bytes);

// Copies a secret to such memory; null without memory.
template <typename T>
std::shared_ptr<const T> make_undumped(const T& secret) {
    std::shared_ptr<void> pages = map_undumped(sizeof(T));
    if (!pages) return nullptr;
    return {pages, new (pages.get()) T(secret)};
}

}  // namespace mcastcoll
