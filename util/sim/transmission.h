// The bytes of one datagram or message, shared by all its receivers: a multicast to 65,536 ranks is one
// transmission. Events and inboxes hold plain pointers, to stay small. A holder of a pointer calls keep(),
// and drop() when done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/types.h"

namespace mcastcoll::sim {

class Transmission {
  public:
    enum class Way : std::uint8_t { message, datagram, multicast };
    std::uint32_t from = 0, to = 0;  // endpoints; for a multicast, `to` is an address
    Way way = Way::message;
    std::uint8_t range = 0;  // of the group that owns the address
    bool local = false;      // between two processes of one machine
    std::uint32_t payload_bytes = 0;

    static Transmission* make(Way way, std::uint32_t from, std::uint32_t to, Bytes header,
                              Bytes payload = {}) {
        const std::size_t size = header.size() + payload.size();
        auto* transmission =
            new (::operator new(sizeof(Transmission) + size)) Transmission(static_cast<std::uint32_t>(size));
        transmission->way = way;
        transmission->from = from;
        transmission->to = to;
        transmission->payload_bytes = static_cast<std::uint32_t>(payload.size());
        std::memcpy(transmission->data(), header.data(), header.size());
        if (!payload.empty())
            std::memcpy(transmission->data() + header.size(), payload.data(), payload.size());
        return transmission;
    }
    Transmission* copy() const { return make(way, from, to, bytes()); }

    Bytes bytes() const { return {reinterpret_cast<const std::byte*>(this + 1), size_}; }
    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    std::uint32_t size() const { return size_; }

    void keep() { ++references_; }
    // Returns true if this was the last reference: the transmission is freed.
    bool drop() {
        if (--references_ > 0) return false;
        ::operator delete(this);
        return true;
    }

  private:
    explicit Transmission(std::uint32_t size) : size_(size) {}

    std::uint32_t references_ = 1, size_;
};

}  // namespace mcastcoll::sim
