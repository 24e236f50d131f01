// Nothing thrown may reach the C code that calls us: every entry point runs its body in here.
#pragma once

#include <rdma/fi_errno.h>

#include <exception>
#include <new>

#include "provider/log.h"

namespace mcastcoll::ofi {

template <typename Body>
auto guard(Body&& body) noexcept -> decltype(body()) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return -FI_ENOMEM;
    } catch (const std::exception& failure) {
        log_line(Level::warn, "internal error: {}", failure.what());
        return -FI_EOTHER;
    } catch (...) {
        return -FI_EOTHER;
    }
}

// For what may go wrong without harm to anything else.
template <typename Body>
bool succeeds(Body&& body) noexcept {
    return guard([&] { return body(), 0; }) == 0;
}

}  // namespace mcastcoll::ofi
