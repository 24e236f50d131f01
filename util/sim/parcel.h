// What travels: the bytes of one datagram or message, shared by all its receivers. A multicast to 65,536
// ranks is one parcel. Events and inboxes hold plain pointers so that they stay small; whoever stores one
// keeps it, and drops it when done.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

#include "base/types.h"

namespace mcastcoll::sim {

class Parcel {
  public:
    std::uint32_t from = 0, to = 0;            // endpoints; a multicast has an address in `to`
    bool multicast = false, datagram = false;  // neither: a message
    std::uint8_t range = 0;                    // of the group that the address belongs to
    bool local = false;                        // between two processes of one machine
    std::uint32_t payload_bytes = 0;

    static Parcel* make(Bytes header, Bytes payload) {
        const std::size_t size = header.size() + payload.size();
        auto* parcel = new (::operator new(sizeof(Parcel) + size)) Parcel(static_cast<std::uint32_t>(size));
        parcel->payload_bytes = static_cast<std::uint32_t>(payload.size());
        std::memcpy(parcel->data(), header.data(), header.size());
        if (!payload.empty()) std::memcpy(parcel->data() + header.size(), payload.data(), payload.size());
        return parcel;
    }
    Parcel* copy() const {
        Parcel* twin = make(bytes(), {});
        twin->from = from;
        twin->to = to;
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

}  // namespace mcastcoll::sim
