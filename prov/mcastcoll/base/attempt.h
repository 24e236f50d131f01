// For what may go wrong, for want of memory, without harm to anything else.
#pragma once

namespace mcastcoll {

// False when the body has thrown.
template <typename Body>
bool attempt(Body&& body) noexcept {
    try {
        body();
        return true;
    } catch (...) {
        return false;
    }
}

}  // namespace mcastcoll
