// Unsupported operations in libfabric's tables.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <utility>

namespace mcastcoll::datagram {

// Implements unsupported operations. libfabric's inline functions do not check most tables for null, so every
// slot needs a function.
template <int kAnswer>
class Refusal {
    template <typename Return, typename... Arguments>
    using Operation = Return (*)(Arguments...);

  public:
    template <typename Return, typename... Arguments>
    constexpr operator Operation<Return, Arguments...>() const {
        return [](Arguments...) -> Return { return kAnswer; };
    }
};
inline constexpr Refusal<-FI_ENOSYS> kRefuse;

// A table of libfabric, which consists of its size and operations, with all operations unsupported.
template <typename Table>
constexpr Table refuse_all() {
    constexpr std::size_t kOperations = (sizeof(Table) - sizeof(std::size_t)) / sizeof(void (*)());
    return []<std::size_t... I>(std::index_sequence<I...>) {
        return Table{sizeof(Table), (static_cast<void>(I), kRefuse)...};
    }
    (std::make_index_sequence<kOperations>());
}

}  // namespace mcastcoll::datagram
