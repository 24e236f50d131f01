// Memory for secrets that outlive a job: core dumps leave it out, and it stays out of the swap file where
// RLIMIT_MEMLOCK permits.
#pragma once

#include <memory>
#include <new>

#include "base/types.h"

namespace mcastcoll {

// Maps at least `bytes` bytes of zeros, in pages of their own that are cleared before they are unmapped. Null
// if there is no memory.
std::shared_ptr<void> map_undumped(std::size_t bytes);

// Copies a secret to memory of map_undumped(). Null if there is no memory.
template <typename T>
std::shared_ptr<const T> make_undumped(const T& secret) {
    std::shared_ptr<void> pages = map_undumped(sizeof(T));
    if (!pages) return nullptr;
    return {pages, new (pages.get()) T(secret)};
}

}  // namespace mcastcoll
