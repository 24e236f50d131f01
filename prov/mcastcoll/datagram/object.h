// The common part of all libfabric objects of this folder. Each derives from libfabric's structure, so that
// the application's fid_* is the object. An object is owned jointly by the application and by its users:
// objects bound to it, and objects opened in it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <functional>
#include <memory>
#include <utility>

#include "provider/guard.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi::datagram {

// libfabric's `fid`, under a name not hidden by the structures' member `fid`.
using Handle = ::fid;

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
            return guard(
                [&]() -> Return { return std::invoke(kFunction, Self::of(*structure), arguments...); });
        };
    }
};
template <auto kFunction>
inline constexpr Call<kFunction> kCall;

// Self is the derived class, Structure its libfabric structure, Parent the class of the object in which it
// was opened. fi_close() releases the application's share. The close fails while other objects hold a share.
template <typename Self, typename Structure, std::size_t kClass, typename Parent>
class Object : public Structure, public std::enable_shared_from_this<Self> {
  public:
    Object(std::shared_ptr<Parent> parent, void* context) : Structure{}, parent_(std::move(parent)) {
        static fi_ops operations = [] {
            fi_ops all = refuse_all<fi_ops>();
            all.close = &Object::close;
            if constexpr (requires(Self & self) { self.wait_object(); }) all.control = &Object::get_wait;
            if constexpr (requires { &Self::bind; }) all.bind = kCall<&Self::bind>;
            if constexpr (requires { &Self::control; }) all.control = kCall<&Self::control>;
            return all;
        }();
        this->Structure::fid = {kClass, context, &operations};
    }

    static Self& of(Structure& structure) { return static_cast<Self&>(structure); }
    // libfabric's structures begin with a fid.
    static Self& of(Handle& object) { return of(reinterpret_cast<Structure&>(object)); }
    // Null if the object is of another class or provider.
    static Self* find(Handle& object) {
        return object.fclass == kClass && object.ops->close == &Object::close ? &of(object) : nullptr;
    }
    Parent& parent() const { return *parent_; }
    // Gives the application its share.
    int give_to(Structure*& application) {
        applications_ = this->shared_from_this();
        application = this;
        return 0;
    }

  private:
    static int close(Handle* object) noexcept {
        return guard([&] {
            Self& self = of(*object);
            if (self.applications_.use_count() > 1) return -FI_EBUSY;
            if constexpr (requires { self.finish(); }) self.finish();
            const auto last = std::move(self.applications_);
            return 0;
        });
    }
    static int get_wait(Handle* object, int command, void* argument) noexcept {
        return command == FI_GETWAIT ? of(*object).wait_object().get_wait(argument) : -FI_ENOSYS;
    }

    const std::shared_ptr<Parent> parent_;
    std::shared_ptr<Self> applications_;
};

}  // namespace mcastcoll::ofi::datagram
