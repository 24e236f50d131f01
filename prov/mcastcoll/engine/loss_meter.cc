#include "engine/loss_meter.h"

namespace mcastcoll::engine {
namespace {

// Number of fragments over which a share is averaged, and largest number of fragments as which a message
// counts.
constexpr std::int64_t kMeant = 256, kMaxOfOne = 64;

// Weight of a message of this many fragments in the average, out of kMeant.
std::int64_t weight(std::uint32_t fragments) {
    return std::min<std::int64_t>(fragments, kMaxOfOne);
}

}  // namespace

void LossMeter::note(std::uint32_t lost, std::uint32_t missed, std::uint32_t fragments) {
    const auto follow = [fragments](std::int64_t& share, std::int64_t count) {
        share += (count * kFine / fragments - share) * weight(fragments) / kMeant;
    };
    follow(lost_, lost);
    follow(missed_, missed);
}

void LossMeter::note_late(std::uint32_t first, std::uint32_t any, std::uint32_t fragments) {
    const std::int64_t one = weight(fragments) * kFine / fragments / kMeant;
    lost_ = std::max<std::int64_t>(0, lost_ - first * one);
    missed_ = std::max<std::int64_t>(0, missed_ - any * one);
}

}  // namespace mcastcoll::engine
