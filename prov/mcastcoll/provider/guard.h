// Exceptions must not reach the C code that calls the provider: every entry point runs its body in guard() or
// contain().
#pragma once

#include <pthread.h>
#include <rdma/fi_errno.h>

#include <exception>
#include <new>

#include "provider/log.h"
#include "provider/uncancelled.h"

namespace mcastcoll::provider {

// Runs a body, and converts an exception to -FI_E*. Does not delay the cancellation of the thread: for bodies
// without cancellation points, or inside guard().
template <typename Body>
auto contain(Body&& body) noexcept -> decltype(body()) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return -FI_ENOMEM;
    } catch (const std::exception& failure) {
        log_line(Level::warn, "unexpected exception, the interrupted work fails with FI_EOTHER: {}",
                 failure.what());
        return -FI_EOTHER;
    } catch (...) {
        return -FI_EOTHER;
    }
}

// Does the same as contain(), and delays the cancellation of the thread.
template <typename Body>
auto guard(Body&& body) noexcept -> decltype(body()) {
    const Uncancelled until_it_is_over;
    return contain(body);
}

// Runs work that may fail without harm. Returns false if the body threw.
template <typename Body>
bool succeeds(Body&& body) noexcept {
    return contain([&] { return body(), 0; }) == 0;
}

}  // namespace mcastcoll::provider
