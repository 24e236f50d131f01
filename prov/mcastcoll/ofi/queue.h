// The common part of completion queues (cq.h) and event queues (eq.h): their reads make progress on
// collectives, and a blocking read also wakes for collectives.
#pragma once

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <cstddef>

#include "base/deadline.h"
#include "ofi/fabric.h"

namespace mcastcoll::ofi {

// The common part: operation tables, and the wait object for blocking reads. Self is the derived queue; Fid
// and Ops are its libfabric structures.
template <typename Self, typename Fid, typename Ops, std::size_t kClass>
class Queue : public Grafted<Self, Fid, Ops> {
    using Base = Grafted<Self, Fid, Ops>;

  public:
    // Null if the object is not a queue of this provider.
    static Self* find(fid& object) {
        const bool ours = object.fclass == kClass && object.ops->close == &Queue::close;
        return ours ? &Base::of_object(object) : nullptr;
    }
    // Called before a thread sleeps on the descriptor, if the queue has a descriptor.
    void arm() {
        if (!wait_object_.is_open()) return;
        wait_object_.reset();
        wait_object_.arm();
    }
    // Returns 0 if the thread may sleep as far as this queue is concerned, -FI_EAGAIN if not, or another
    // -FI_E*.
    int trywait() {
        if (static_cast<Self*>(this)->has_own()) return -FI_EAGAIN;
        if (const int rc = fabric_.inner_trywait(inner_.fid); rc != 0) return rc;
        // The provider "net" always returns 0 and leaves its descriptor readable after the event was read, so
        // a caller would spin. Only its blocking read clears the descriptor.
        if (!wait_object_.is_open() || !wait_object_.inner_readable()) return 0;
        return static_cast<Self*>(this)->inner_pending() ? -FI_EAGAIN : 0;
    }

  protected:
    Queue(Fabric& fabric, Fid& inner) : Base(inner), fabric_(fabric) {}
    ~Queue() {
        if (wait_object_.is_open()) fabric_.remove_wait_object(wait_object_);
    }
    using Base::inner_, Base::graft_, Base::object_graft_;

    // Opens the inner queue. If the provider may choose the wait object (FI_WAIT_UNSPEC), chooses a
    // descriptor where the inner provider supports one, because only a descriptor lets a blocking read wait
    // for collectives as well. `attr` returns the choice.
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
    // Allocates the memory for install(), which then cannot fail, and adds the inner queue's descriptor, if
    // any, to the wait object. Returns 0 or -FI_E*.
    int prepare(fi_wait_obj has) {
        Base::prepare();
        int descriptor = -1;
        if (has != FI_WAIT_FD || fi_control(&inner_.fid, FI_GETWAIT, &descriptor) != 0) return 0;
        return wait_object_.open(descriptor) ? fabric_.add_wait_object(wait_object_) : -FI_EMFILE;
    }
    void install() {
        Base::install();
        inner_.fid.ops->control = &Queue::control;
    }
    // Sleeps until there may be something to read. Returns 0 or -FI_E*.
    int sleep(const Deadline& deadline) {
        const provider::WaitObject::Sleeper sleeper(wait_object_);
        wait_object_.reset();
        // The reset may have consumed a wake-up meant for other sleepers of this queue: its cause is handled
        // below or by the next read.
        if (wait_object_.has_signal()) return 0;
        if (fabric_.active() && !fabric_.prepare_wait()) return 0;
        if (const int rc = trywait(); rc != 0) return rc == -FI_EAGAIN ? 0 : rc;
        return wait_object_.sleep(deadline.left_ms());
    }

    Fabric& fabric_;
    provider::WaitObject wait_object_;

  private:
    static int control(fid* object, int command, void* argument) noexcept {
        Self& self = Base::of_object(*object);
        if (command != FI_GETWAIT) return self.object_graft_.inner()->control(object, command, argument);
        return self.wait_object_.get_wait(argument);
    }
};

}  // namespace mcastcoll::ofi
