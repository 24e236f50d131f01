// What tells a group's members from strangers: a tag in each packet that only who has the group's key can
// make (UMAC-64). Its nonce is the sender's id, which is drawn at each join, and the packet's serial, which
// its sender never uses for other bytes.
#pragma once

#include <optional>

#include "feed/packet.h"
#include "wire/crypto.h"

namespace mcastcoll::feed {

class Proof {
  public:
    // None: tags are 0, and anybody can make them.
    explicit Proof(const std::optional<wire::Key>& key);

    bool on() const { return mac_.has_value(); }
    // Of all packets but data.
    std::uint64_t next_serial() { return ++serial_; }
    std::uint64_t last_serial() const { return serial_; }
    // Data is sent again as it is.
    static constexpr std::uint64_t serial_of_data(std::uint64_t number) {
        return std::uint64_t{1} << 63 | number;
    }

    // Puts the tag into a packet in which everything else is there.
    void stamp(MutableBytes packet);
    bool is_right(Bytes packet);

  private:
    wire::Mac::Tag tag_of(Bytes packet);

    std::optional<wire::Mac> mac_;
    std::uint64_t serial_ = 0;
};

}  // namespace mcastcoll::feed
