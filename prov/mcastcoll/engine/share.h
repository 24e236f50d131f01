// A moving mean in thousandths, and a switch with hysteresis.
#pragma once

#include <cstdint>

namespace mcastcoll::engine {

class Share {
  public:
    // on: threshold in thousandths that turns the switch on; a third of the threshold turns the switch off.
    // samples: number of samples over which the mean extends.
    Share(std::uint32_t on, std::uint32_t samples) : turns_on_(on), samples_(samples) {}
    // Adds a sample, itself a share.
    void sample(std::uint32_t permille) {
        const auto wanted = static_cast<std::int64_t>(permille) * kScale;
        value_ += (wanted - value_) / samples_;
        on_ = on_ ? value_ > turns_on_ * kScale / 3 : value_ >= turns_on_ * kScale;
    }
    std::uint32_t permille() const { return static_cast<std::uint32_t>(value_ / kScale); }
    bool on() const { return on_; }

  private:
    static constexpr std::int64_t kScale = 1024;
    std::int64_t turns_on_, samples_, value_ = 0;
    bool on_ = false;
};

}  // namespace mcastcoll::engine
