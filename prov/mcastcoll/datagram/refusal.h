// The answer of operations that an object of ours does not have. libfabric's inline functions look for no
// null in most tables, so every slot needs a function.
#pragma once

#include <rdma/fi_errno.h>

namespace mcastcoll::ofi::datagram {

class Refusal {
    template <typename Return, typename... Arguments>
    using Operation = Return (*)(Arguments...);

  public:
    template <typename Return, typename... Arguments>
    constexpr operator Operation<Return, Arguments...>() const {
        return [](Arguments...) -> Return { return -FI_ENOSYS; };
    }
};

inline constexpr Refusal kRefuse;

}  // namespace mcastcoll::ofi::datagram
