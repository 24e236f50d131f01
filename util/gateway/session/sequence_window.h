// Set of the sequence numbers that were received (at the receiver) or acknowledged (at the sender): all below
// a bound, and some of the next 65536. The sender stays within that distance of its oldest unacknowledged
// frame, so a number beyond the window is a protocol violation by the peer.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>

namespace mcastcoll::gateway::session {

class SequenceWindow {
  public:
    static constexpr std::uint64_t kSize = 65536;
    enum class Outcome { fresh, known, beyond };

    Outcome add(std::uint64_t sequence) {
        if (sequence < below_) return Outcome::known;
        if (!fits(sequence)) return Outcome::beyond;
        if (bits_->test(sequence % kSize)) return Outcome::known;
        bits_->set(sequence % kSize);
        while (bits_->test(below_ % kSize)) bits_->reset(below_++ % kSize);
        return Outcome::fresh;
    }
    bool fits(std::uint64_t sequence) const { return sequence - below_ < kSize; }

  private:
    std::uint64_t below_ = 1;
    std::unique_ptr<std::bitset<kSize>> bits_ = std::make_unique<std::bitset<kSize>>();
};

}  // namespace mcastcoll::gateway::session
