// The event queue of datagram endpoints, for results of joins, lost members, and events written by the
// application.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

#include "base/types.h"
#include "datagram/fabric.h"
#include "datagram/object.h"
#include "provider/wait_object.h"

namespace mcastcoll::datagram {

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
    // Drops the events of an object that is about to be closed.
    void forget(const Handle& object);
    bool pending();
    provider::WaitObject& wait_object() { return wait_object_; }

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
    provider::WaitObject wait_object_;
    std::mutex mutex_;
    std::deque<Event> events_;
};

}  // namespace mcastcoll::datagram
