// Objects in which the application finds completions and events: the completion queue and the counter of
// datagram endpoints, and the event queue of their fabric.
#pragma once

#include <rdma/fi_eq.h>

#include <deque>
#include <vector>

#include "datagram/fabric.h"
#include "provider/completions.h"

namespace mcastcoll::ofi::datagram {

// A source of completions: an endpoint. An endpoint depends on its queues and counters, which see the
// endpoint only through this interface. The domain's lock must be held.
class Source {
  public:
    // Takes the data in its sockets.
    virtual void receive() = 0;
    // Called before a thread sleeps: starts or stops watching the sockets.
    virtual void watch() = 0;

  protected:
    ~Source() = default;
};

// An object on which a thread may sleep until endpoints have received data: a completion queue or a counter.
// A Waiter makes its sources receive, and sleeps on the sources' sockets. All calls except sleeping need the
// domain's lock.
class Waiter {
  public:
    explicit Waiter(std::mutex& mutex) : mutex_(mutex) {}

    WaitObject& wait_object() { return wait_object_; }
    bool add(Source& source);  // false: already added
    void remove(Source& source) { std::erase(sources_, &source); }
    // Called before a thread sleeps on the descriptor, without the lock.
    void prepare_wait();

  protected:
    // Makes all sources take newly arrived data.
    void progress();
    // Sleeps until ready() no longer returns -FI_EAGAIN; ready() is called with the lock held. Calls ready()
    // again after `rest_ms` at the latest, unless that is negative.
    template <typename Ready>
    ssize_t sleep_until(int timeout, int rest_ms, Ready ready);

  private:
    // An endpoint without posted receives takes nothing, so its sockets must not wake any thread.
    void prepare();

    std::mutex& mutex_;
    WaitObject wait_object_;
    std::vector<Source*> sources_;
};

// A completion queue with the requested number of entries, which never overruns. While the queue is full,
// sends return -FI_EAGAIN, and received messages stay in the kernel's buffers.
class CompletionQueue : public Object<CompletionQueue, fid_cq, FI_CLASS_CQ, Domain>, public Waiter {
  public:
    static int open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context);
    CompletionQueue(Domain& domain, std::size_t size, fi_cq_format format, void* context)
        : Object(domain.shared_from_this(), context), Waiter(domain.mutex), completions_(format, size) {}

    bool pending() const { return completions_.any(); }
    // The domain's lock must be held.
    std::size_t room() const { return completions_.capacity() - completions_.size(); }
    void push(const Completion& completion);

  private:
    ssize_t read(void* buffer, std::size_t count) { return readfrom(buffer, count, nullptr); }
    ssize_t readfrom(void* buffer, std::size_t count, fi_addr_t* source);
    ssize_t readerr(fi_cq_err_entry* entry, std::uint64_t flags);
    ssize_t sread(void* buffer, std::size_t count, const void* condition, int timeout);
    ssize_t sreadfrom(void* buffer, std::size_t count, fi_addr_t* source, const void* condition, int timeout);
    int signal() { return wait_object().signal(); }
    ssize_t take(void* buffer, std::size_t count, fi_addr_t* source);

    Completions completions_;
};

class Counter : public Object<Counter, fid_cntr, FI_CLASS_CNTR, Domain>, public Waiter {
  public:
    static int open(Domain& domain, fi_cntr_attr* attr, fid_cntr** counter, void* context);
    Counter(Domain& domain, void* context)
        : Object(domain.shared_from_this(), context), Waiter(domain.mutex) {}

    // The domain's lock must be held.
    void count(bool failed);

  private:
    std::uint64_t read();
    std::uint64_t readerr();
    template <std::uint64_t Counter::*Value, bool Add>
    int change(std::uint64_t value);
    int wait(std::uint64_t threshold, int timeout);

    std::uint64_t done_ = 0, failed_ = 0;
};

// Results of joins, and events written by the application.
class EventQueue : public Object<EventQueue, fid_eq, FI_CLASS_EQ, Fabric> {
  public:
    static int open(Fabric& fabric, fi_eq_attr* attr, fid_eq** eq, void* context);
    using Object::Object;

    // False: the queue is full.
    template <typename Entry>
    bool push(std::uint32_t event, const Entry& entry) {
        return push(event, std::as_bytes(std::span(&entry, 1)), entry.fid,
                    std::is_same_v<Entry, fi_eq_err_entry>);
    }
    // Drops the events of an object before its close.
    void forget(const Handle& object);
    bool pending();
    WaitObject& wait_object() { return wait_object_; }

  private:
    struct Event {
        std::uint32_t number;
        std::vector<std::byte> body;
        const Handle* about;
        bool failed;  // the body is an fi_eq_err_entry
    };

    ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
    ssize_t readerr(fi_eq_err_entry* entry, std::uint64_t flags);
    ssize_t write(std::uint32_t event, const void* buffer, std::size_t length, std::uint64_t flags);
    ssize_t sread(std::uint32_t* event, void* buffer, std::size_t length, int timeout, std::uint64_t flags);
    bool push(std::uint32_t event, Bytes body, const Handle* about, bool failed);
    void drop_first();
    void reset_if_empty();

    bool writable_ = false;
    // Its descriptor is readable while the queue is not empty.
    WaitObject wait_object_;
    std::mutex mutex_;
    std::deque<Event> events_;
};

}  // namespace mcastcoll::ofi::datagram
