#include "engine/speakers.h"

namespace mcastcoll::engine {

Speakers::Speakers(std::uint32_t members, std::uint64_t election, Rank suspected)
    : members_(members),
      regular_(members <= kAllProbeUpTo ? members : kSpeakersOfMany),
      shift_(regular_ == members ? 0 : static_cast<std::uint32_t>(election % members)) {
    if (index_of(suspected) < members && place(suspected) == kNoSpeaker) suspected_ = suspected;
}

std::uint32_t Speakers::place(Rank rank) const {
    if (rank == suspected_) return regular_;
    const std::uint64_t unshifted = (index_of(rank) + members_ - shift_) % members_;
    const auto speaker = static_cast<std::uint32_t>((unshifted * regular_ + members_ - 1) / members_);
    return speaker < regular_ && first_of(speaker) == unshifted ? speaker : kNoSpeaker;
}

}  // namespace mcastcoll::engine
