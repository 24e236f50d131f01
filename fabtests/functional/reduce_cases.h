// The cases of fi_mcc_reduce, which are in two files.
#pragma once

#include "exercise.h"

namespace mcastcoll::fabtest {

// Draws a random collective from the seed; all members draw the same.
Job draw_job(const Member& me, std::uint64_t seed, std::size_t largest_bytes);

// reduce_blocking.cc
void blocking(Member& me);
void blocking_mixed(Member& me);
void blocking_in_threads(Member& me);
void blocking_alone(Member& me);
void blocking_refusals(Member& me);
void blocking_too_early(Member& me);
void blocking_too_many(Member& me);
void blocking_lengths_disagree(Member& me);
void blocking_member_dies(Member& me);
void blocking_stalled(Member& me);

}  // namespace mcastcoll::fabtest
