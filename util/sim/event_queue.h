// What travels, and what is going to happen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "base/types.h"

namespace mcastcoll::sim {

// What travels: the bytes of one datagram or message, shared by all its receivers. A multicast to 65,536
// ranks is one parcel. Events and inboxes hold plain pointers so that they stay small; whoever stores one
// keeps it, and drops it when done.
class Parcel {
  public:
    std::uint32_t from = 0, to = 0;            // endpoints; a multicast has an address in `to`
    bool multicast = false, datagram = false;  // neither: a message
    std::uint8_t range = 0;                    // of the group that the address belongs to
    bool local = false;                        // between two processes of one machine
    std::uint32_t payload_bytes = 0;

    static Parcel* make(std::uint32_t from, std::uint32_t to, Bytes header, Bytes payload = {}) {
        const std::size_t size = header.size() + payload.size();
        auto* parcel = new (::operator new(sizeof(Parcel) + size)) Parcel(static_cast<std::uint32_t>(size));
        parcel->from = from;
        parcel->to = to;
        parcel->payload_bytes = static_cast<std::uint32_t>(payload.size());
        std::memcpy(parcel->data(), header.data(), header.size());
        if (!payload.empty()) std::memcpy(parcel->data() + header.size(), payload.data(), payload.size());
        return parcel;
    }
    Parcel* copy() const {
        Parcel* twin = make(from, to, bytes());
        twin->multicast = multicast;
        twin->datagram = datagram;
        twin->range = range;
        twin->local = local;
        twin->payload_bytes = payload_bytes;
        return twin;
    }

    Bytes bytes() const { return {reinterpret_cast<const std::byte*>(this + 1), size_}; }
    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    std::uint32_t size() const { return size_; }

    void keep() { ++references_; }
    // True when this was the last one: the parcel is gone.
    bool drop() {
        if (--references_ > 0) return false;
        ::operator delete(this);
        return true;
    }

  private:
    explicit Parcel(std::uint32_t size) : size_(size) {}

    std::uint32_t references_ = 1, size_;
};

// What is going to happen, in order of time and, at the same time, of scheduling. An event is 32 bytes and
// can stand for a whole run of endpoints to which the same thing happens at the same moment.
struct Event {
    enum class What : std::uint8_t {
        enter,   // a parcel reaches the switch of site `first`
        arrive,  // a parcel reaches the hosts of endpoints [first, first + count)
        serve,   // host `first` takes the next parcel out of its inbox
        wake,    // endpoints [first, first + count) wanted to be woken; tag says what for
    };
    Nanoseconds at{};
    std::uint64_t order : 56;
    std::uint64_t what : 4, tag : 4;
    std::uint32_t first = 0, count = 1;
    Parcel* parcel = nullptr;

    bool before(const Event& other) const { return at != other.at ? at < other.at : order < other.order; }
};
static_assert(sizeof(Event) == 32);

// A heap with four children per node: half the levels of a binary one, and siblings share two cache lines.
class EventQueue {
  public:
    bool empty() const { return heap_.empty(); }

    void push(Event event) {
        event.order = scheduled_++ & ((std::uint64_t{1} << 56) - 1);
        std::size_t at = heap_.size();
        heap_.push_back(event);
        while (at > 0) {
            const std::size_t parent = (at - 1) / kChildren;
            if (!event.before(heap_[parent])) break;
            heap_[at] = heap_[parent];
            at = parent;
        }
        heap_[at] = event;
    }

    Event pop() {
        const Event first = heap_.front();
        const Event last = heap_.back();
        heap_.pop_back();
        if (heap_.empty()) return first;
        std::size_t at = 0;
        for (;;) {
            const std::size_t begin = at * kChildren + 1;
            if (begin >= heap_.size()) break;
            std::size_t least = begin;
            const std::size_t end = std::min(begin + kChildren, heap_.size());
            for (std::size_t child = begin + 1; child < end; ++child)
                if (heap_[child].before(heap_[least])) least = child;
            if (!heap_[least].before(last)) break;
            heap_[at] = heap_[least];
            at = least;
        }
        heap_[at] = last;
        return first;
    }

  private:
    static constexpr std::size_t kChildren = 4;
    std::vector<Event> heap_;
    std::uint64_t scheduled_ = 0;
};

}  // namespace mcastcoll::sim
