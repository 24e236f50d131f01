// Authentication tags (UMAC-64) in each packet of a group with a key. The nonce is the sender's id, drawn at
// each join, and the packet's serial, which a sender never uses for other bytes.
#pragma once

#include <optional>

#include "reliable/packet.h"
#include "wire/crypto.h"
#include "wire/mac.h"

namespace mcastcoll::reliable {

class Proof {
  public:
    // Without a key, tags are 0 and do not authenticate.
    explicit Proof(const std::optional<wire::Key>& key);

    bool on() const { return mac_.has_value(); }
    // The serial for the next packet that is not data.
    std::uint64_t next_serial() { return ++serial_; }
    std::uint64_t last_serial() const { return serial_; }
    // The serial of a data packet follows from its number, so that data is retransmitted with the same bytes.
    static constexpr std::uint64_t serial_of_data(std::uint64_t number) {
        return std::uint64_t{1} << 63 | number;
    }

    // Writes the tag into a packet that is otherwise complete.
    void stamp(MutableBytes packet);
    bool is_right(Bytes packet);

  private:
    wire::Mac::Tag tag_of(Bytes packet);

    std::optional<wire::Mac> mac_;
    std::uint64_t serial_ = 0;
};

}  // namespace mcastcoll::reliable
