// The common part of all libfabric objects of this folder. Each derives from libfabric's structure, so that
// the application's fid_* is the object. An object is owned jointly by the application and by its users:
// objects bound to it, and objects opened in it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "datagram/call.h"
#include "datagram/refusal.h"
#include "provider/guard.h"

namespace mcastcoll::datagram {

// libfabric's `fid`, under a name not hidden by the structures' member `fid`.
using Handle = ::fid;

// For fi_cq_strerror() and fi_eq_strerror(): the provider's codes are libfabric's.
template <typename Queue>
const char* describe_error(Queue*, int error, const void*, char* buffer, std::size_t length) noexcept {
    const char* text = fi_strerror(error);
    if (buffer != nullptr) std::snprintf(buffer, length, "%s", text);
    return text;
}

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
        return provider::guard([&] {
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

}  // namespace mcastcoll::datagram
