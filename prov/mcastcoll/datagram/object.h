// What all libfabric objects of this folder have in common. Each derives from libfabric's own structure, so
// that a fid_* of the application is the object; each counts who uses it, and is not closed under them.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "provider/guard.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi::datagram {

// libfabric's `fid`, by a name that the member of that name does not hide.
using Handle = ::fid;

// From the `fid` that libfabric's structures begin with to the object.
template <typename Object, typename Structure>
Object& object_of(Handle* object) {
    return static_cast<Object&>(*reinterpret_cast<Structure*>(object));
}

class Users {
  public:
    void enter() { count_.fetch_add(1, std::memory_order_relaxed); }
    void leave() { count_.fetch_sub(1, std::memory_order_acq_rel); }
    bool any() const { return count_.load(std::memory_order_acquire) > 0; }

  private:
    std::atomic<unsigned> count_{0};
};

// The answer of operations that an object of ours does not have. libfabric's inline functions look for no
// null in most tables, so every slot needs a function.
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

// A table of libfabric's, its size and then operations, none of which there is.
template <typename Table>
constexpr Table refuse_all() {
    constexpr std::size_t kOperations = (sizeof(Table) - sizeof(std::size_t)) / sizeof(void (*)());
    return []<std::size_t... I>(std::index_sequence<I...>) {
        return Table{sizeof(Table), (static_cast<void>(I), kRefuse)...};
    }
    (std::make_index_sequence<kOperations>());
}

// Self is one of these objects, Structure libfabric's for it, Parent what it was opened in.
template <typename Self, typename Structure, std::size_t kClass, typename Parent>
class Object : public Structure {
  public:
    // Null when the object is none of these.
    static Self* find(Handle& object) {
        if (object.fclass != kClass || object.ops->close != &Object::close) return nullptr;
        return &object_of<Self, Structure>(&object);
    }
    Parent& parent() const { return parent_; }
    Users users;

  protected:
    explicit Object(Parent& parent) : Structure{}, parent_(parent) {}
    static Self& of(Structure& structure) { return static_cast<Self&>(structure); }
    // To the application, whose fi_close() deletes it, unless somebody uses it.
    static Structure* hand_out(std::unique_ptr<Self> made, void* context) {
        static fi_ops operations = [] {
            fi_ops all = refuse_all<fi_ops>();
            all.close = &Object::close;
            if constexpr (requires(Self & self) { self.wait_object(); }) all.control = &Object::control;
            return all;
        }();
        made->Structure::fid = {kClass, context, &operations};
        made->parent_.users.enter();
        return made.release();
    }

    Parent& parent_;

  private:
    static int close(Handle* object) noexcept {
        return guard([&] {
            Self& self = object_of<Self, Structure>(object);
            if (self.users.any()) return -FI_EBUSY;
            self.parent_.users.leave();
            delete &self;
            return 0;
        });
    }
    static int control(Handle* object, int command, void* argument) noexcept {
        if (command != FI_GETWAIT) return -FI_ENOSYS;
        return object_of<Self, Structure>(object).wait_object().get_wait(argument);
    }
};

// Opens what an attribute asks to sleep on, and says in it which that is: descriptors are all there are.
inline int open_wait(WaitObject& object, fi_wait_obj& wanted) {
    if (wanted == FI_WAIT_NONE) return 0;
    if (wanted != FI_WAIT_UNSPEC && wanted != FI_WAIT_FD) return -FI_ENOSYS;
    if (!object.open(-1)) return -FI_EMFILE;
    wanted = FI_WAIT_FD;
    return 0;
}

// What fi_cq_strerror() and fi_eq_strerror() say: our own codes are libfabric's.
template <typename Queue>
const char* describe_error(Queue*, int error, const void*, char* buffer, std::size_t length) noexcept {
    const char* text = fi_strerror(error);
    if (buffer != nullptr && length > 0) {
        std::strncpy(buffer, text, length - 1);
        buffer[length - 1] = '\0';
    }
    return text;
}

}  // namespace mcastcoll::ofi::datagram
