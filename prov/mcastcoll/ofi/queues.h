// The provider's parts of completion and event queues: their reads make progress on collectives, and a
// blocking read also wakes for collectives.
#pragma once

#include "base/deadline.h"
#include "ofi/bound_endpoint.h"
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

    // Gives a descriptor to a queue whose wait object the provider may choose (FI_WAIT_UNSPEC), if the inner
    // provider supports that, because other events can be waited for on a descriptor as well. `attr` returns
    // the result.
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
        const WaitObject::Sleeper sleeper(wait_object_);
        wait_object_.reset();
        // The reset may have consumed a wake-up meant for other sleepers of this queue: its cause is handled
        // below or by the next read.
        if (wait_object_.has_signal()) return 0;
        if (fabric_.active() && !fabric_.prepare_wait()) return 0;
        if (const int rc = trywait(); rc != 0) return rc == -FI_EAGAIN ? 0 : rc;
        return wait_object_.sleep(deadline.left_ms());
    }

    Fabric& fabric_;
    WaitObject wait_object_;

  private:
    static int control(fid* object, int command, void* argument) noexcept {
        Self& self = Base::of_object(*object);
        if (command != FI_GETWAIT) return self.object_graft_.inner()->control(object, command, argument);
        return self.wait_object_.get_wait(argument);
    }
};

// The provider's part of a completion queue. Reads return completions of collectives before the inner
// provider's completions.
//
// As with libfabric's own software collectives, a collective completes to the queue bound with FI_TRANSMIT.
class Cq final : public Queue<Cq, fid_cq, fi_ops_cq, FI_CLASS_CQ> {
  public:
    static int open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context);
    Cq(Fabric& fabric, fid_cq& inner, fi_cq_format format)
        : Queue(fabric, inner), own_(format, wait_object_) {}

    // Lets the inner queue clear its descriptor; true if the inner queue has something to read.
    bool inner_pending();
    bool has_own() const { return own_.any(); }
    // The completions of collectives.
    CollectiveCompletions& own() { return own_; }

  private:
    static void fill(fi_ops_cq& ops);
    // source: receives the sources of the completions, or null.
    ssize_t read(void* buffer, std::size_t count);
    ssize_t readfrom(void* buffer, std::size_t count, fi_addr_t* source);
    ssize_t progress_and_read_own(void* buffer, std::size_t count, fi_addr_t* source);
    // Reads completions of collectives: a count, -FI_EAVAIL, or -FI_EAGAIN.
    ssize_t read_own(void* buffer, std::size_t count, fi_addr_t* source);
    ssize_t read_blocking(void* buffer, std::size_t count, fi_addr_t* source, int timeout);

    // Blocking reads yield in a loop instead of sleeping, like the inner provider's.
    bool yields_ = false;
    CollectiveCompletions own_;
};

// The provider's part of an event queue. Its reads make progress on collectives too, because a join completes
// to the event queue and the application may read nothing else meanwhile. A blocking read wakes for
// collectives. The events themselves stay in the inner provider's queue.
class Eq final : public Queue<Eq, fid_eq, fi_ops_eq, FI_CLASS_EQ> {
  public:
    static int open(Fabric& fabric, fi_eq_attr* attr, fid_eq** eq, void* context);
    Eq(Fabric& fabric, fid_eq& inner) : Queue(fabric, inner) {}

    static bool has_own() { return false; }
    // Lets the inner queue clear its descriptor; true if the inner queue has something to read.
    bool inner_pending();

  private:
    ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
    ssize_t read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags);
};

}  // namespace mcastcoll::ofi
