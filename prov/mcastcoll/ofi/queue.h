// What our shares of completion and event queues have in common: their tables, and what a blocking read
// sleeps on.
#pragma once

#include <rdma/fi_errno.h>

#include "base/deadline.h"
#include "ofi/fabric.h"
#include "ofi/graft.h"
#include "provider/guard.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

// Self is the queue; Fid and Ops are libfabric's structures for it.
template <typename Self, typename Fid, typename Ops, std::size_t kClass>
class Queue {
  public:
    static Self& of(Fid& queue) { return Graft<Ops>::template owner_of<Self>(queue.ops); }
    // Null when the object is no queue of ours.
    static Self* find(fid& object) {
        const bool ours = object.fclass == kClass && object.ops->close == &Queue::close;
        return ours ? &of_object(object) : nullptr;
    }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    WaitObject& wait_object() { return wait_object_; }

  protected:
    Queue(Fabric& fabric, Fid& inner) : fabric_(fabric), inner_(inner) {}
    ~Queue() = default;

    // A queue whose wait object is the provider's choice is given a descriptor, when it has one: others can
    // wait for that, too. `attr` says what it became.
    template <typename Attr, typename Open>
    static int open_inner(Attr& attr, Open open) {
        if (attr.wait_obj == FI_WAIT_UNSPEC) {
            Attr with_descriptor = attr;
            with_descriptor.wait_obj = FI_WAIT_FD;
            if (open(&with_descriptor) == 0) {
                attr = with_descriptor;
                return 0;
            }
        }
        return open(&attr);
    }
    // Takes the memory that install() needs, which then cannot fail, and has us wake for the inner queue if
    // it has a descriptor. 0 or -FI_E*.
    int prepare(fi_wait_obj has) {
        object_graft_.prepare(inner_.fid.ops);
        graft_.prepare(inner_.ops);
        int descriptor = -1;
        if (has != FI_WAIT_FD || fi_control(&inner_.fid, FI_GETWAIT, &descriptor) != 0) return 0;
        return wait_object_.open(descriptor) ? fabric_.add_wait_object(wait_object_) : -FI_EMFILE;
    }
    Ops& install(Self& self) {
        fi_ops& object_ops = object_graft_.install(inner_.fid.ops, &self);
        object_ops.close = &Queue::close;
        object_ops.control = &Queue::control;
        return graft_.install(inner_.ops, &self);
    }
    // Until there may be something to read: 0, or -FI_E*. `has_own`: of ours.
    template <typename HasOwn>
    int sleep(const Deadline& deadline, HasOwn has_own) {
        const WaitObject::Sleeper sleeper(wait_object_);
        wait_object_.reset();
        // What was taken from others that sleep here is looked at below, or by the next read.
        if (wait_object_.has_signal()) return 0;
        if (fabric_.active() && (!fabric_.prepare_wait() || has_own())) return 0;
        if (const int rc = fabric_.inner_trywait(inner_.fid); rc != 0) return rc == -FI_EAGAIN ? 0 : rc;
        return wait_object_.sleep(deadline.left_ms());
    }

    Fabric& fabric_;
    Fid& inner_;
    WaitObject wait_object_;
    Graft<Ops> graft_;

  private:
    static Self& of_object(fid& object) { return Graft<fi_ops>::owner_of<Self>(object.ops); }
    static int close(fid* object) noexcept {
        return guard([&] {
            Self& self = of_object(*object);
            if (const int rc = close_inner(object, self.object_graft_, self.graft_); rc != 0) return rc;
            if (self.wait_object_.is_open()) self.fabric_.remove_wait_object(self.wait_object_);
            delete &self;
            return 0;
        });
    }
    static int control(fid* object, int command, void* argument) noexcept {
        Self& self = of_object(*object);
        if (command != FI_GETWAIT) return self.object_graft_.inner()->control(object, command, argument);
        return self.wait_object_.get_wait(argument);
    }

    Graft<fi_ops> object_graft_;
};

}  // namespace mcastcoll::ofi
