#include "engine/loss_report.h"

namespace mcastcoll::engine {
namespace {

// Bits per share in watermark messages; the bits above two shares hold a number of members.
constexpr unsigned kShareBits = 20;
static_assert(kMillion < 1U << kShareBits);
constexpr std::uint64_t kShareMask = (1U << kShareBits) - 1;
constexpr std::uint64_t kMaxLacking = (std::uint64_t{1} << (64 - 2 * kShareBits)) - 1;

}  // namespace

std::uint64_t pack(const LossReport& report) {
    return std::min(report.lacking, kMaxLacking) << 2 * kShareBits |
           std::uint64_t{std::min(report.worst, kMillion)} << kShareBits | std::min(report.missed, kMillion);
}

LossReport unpack_losses(std::uint64_t total, std::uint32_t members) {
    const auto share = [](std::uint64_t bits) {
        return std::min(static_cast<std::uint32_t>(bits & kShareMask), kMillion);
    };
    return {.lacking = std::min(total >> 2 * kShareBits, std::uint64_t{members} * kMillion),
            .worst = share(total >> kShareBits),
            .missed = share(total)};
}

}  // namespace mcastcoll::engine
