// Which of a trunk's frames have come (at the receiver) or are acknowledged (at the sender): all below a
// number, and some of the next 65536.  The sender keeps within that of its oldest unacknowledged frame, so a
// number beyond is nobody's mistake but the peer's.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace mcastcoll::trunk {

class SequenceWindow {
  public:
    static constexpr std::uint64_t kSize = 65536;
    enum class Verdict { fresh, known, beyond };

    Verdict add(std::uint64_t sequence) {
        if (sequence < below_) return Verdict::known;
        if (!fits(sequence)) return Verdict::beyond;
        if (bits_->test(sequence % kSize)) return Verdict::known;
        bits_->set(sequence % kSize);
        while (bits_->test(below_ % kSize)) bits_->reset(below_++ % kSize);
        return Verdict::fresh;
    }
    bool fits(std::uint64_t sequence) const { return sequence - below_ < kSize; }
    std::uint64_t below() const { return below_; }

  private:
    std::uint64_t below_ = 1;
    std::unique_ptr<std::bitset<kSize>> bits_ = std::make_unique<std::bitset<kSize>>();
};

}  // namespace mcastcoll::trunk
