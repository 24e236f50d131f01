// The event queue of a datagram fabric: ends of joins, and what the application writes itself.
#pragma once

#include <rdma/fi_eq.h>

#include <deque>
#include <mutex>
#include <vector>

#include "datagram/object.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi::datagram {

class Fabric;

class EventQueue : public Object<EventQueue, fid_eq, FI_CLASS_EQ, Fabric> {
  public:
    static int open(Fabric& fabric, fi_eq_attr* attr, fid_eq** eq, void* context);

    // False: the queue is full.
    bool push(std::uint32_t event, const fi_eq_entry& entry);
    bool push_error(std::uint32_t event, const fi_eq_err_entry& entry);
    // Drops what speaks of an object that is about to go.
    void forget(const Handle& object);
    bool pending();
    WaitObject& wait_object() { return wait_object_; }

  private:
    struct Event {
        std::uint32_t number = 0;
        bool failed = false;
        fi_eq_err_entry error{};
        std::vector<std::byte> body{};
        const Handle* about = nullptr;
    };

    using Object::Object;
    static ssize_t read(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length,
                        std::uint64_t flags) noexcept;
    static ssize_t readerr(fid_eq* eq, fi_eq_err_entry* entry, std::uint64_t flags) noexcept;
    static ssize_t write(fid_eq* eq, std::uint32_t event, const void* buffer, std::size_t length,
                         std::uint64_t flags) noexcept;
    static ssize_t sread(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                         std::uint64_t flags) noexcept;
    bool push(Event event);
    void pop();

    bool writable_ = false;
    WaitObject wait_object_;  // its descriptor is readable whenever the queue is not empty
    std::mutex mutex_;
    std::deque<Event> events_;
};

}  // namespace mcastcoll::ofi::datagram
