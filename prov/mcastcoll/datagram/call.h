// Operations of objects as entries of libfabric's tables.
#pragma once

#include <functional>

#include "provider/guard.h"

namespace mcastcoll::datagram {

// kCall<&Object::operation> fits into a slot of a libfabric table: the call finds the object from the
// libfabric structure in its first argument and runs the operation, a member function or a function with the
// object as first argument. Exceptions do not leave the call.
template <auto kFunction>
class Call {
    template <typename Return, typename Structure, typename... Arguments>
    using Operation = Return (*)(Structure*, Arguments...);
    template <typename Self, typename Return, typename... Arguments>
    static Self self_of(Return (Self::*)(Arguments...));
    template <typename Self, typename Return, typename... Arguments>
    static Self self_of(Return (*)(Self&, Arguments...));

  public:
    template <typename Return, typename Structure, typename... Arguments>
    constexpr operator Operation<Return, Structure, Arguments...>() const {
        return [](Structure* structure, Arguments... arguments) -> Return {
            using Self = decltype(self_of(kFunction));
            return provider::guard(
                [&]() -> Return { return std::invoke(kFunction, Self::of(*structure), arguments...); });
        };
    }
};
template <auto kFunction>
inline constexpr Call<kFunction> kCall;

}  // namespace mcastcoll::datagram
