// Messages among all members of a group, whatever their host: for gather, scatter, alltoall and
// reduce_scatter, where each member has different bytes for each receiver and multicast does not help, and
// for an allgather without multicast.
//
// A receiver stores unexpected pieces up to a window per sender, and may have to store all windows at once,
// because every sender may use its initial window without a grant. In a group of n members:
//
//      n            window of each    all windows          borrowed credit beyond
//        2 - 32       1 MiB             n MiB                -
//       33 - 256      32 MiB / n        32 MiB               -
//      257 - 65,536   32 MiB / n        32 MiB               16 MiB, to have up to 128 KiB each
//      more           512 bytes         n / 2 KiB            the same
//
// Grants go only to members that still have data to send: a finished member may have closed the group and
// exited.
//
// No handshake is needed. A join ends with a step in which every member depends on every other (the engine's
// election, or a barrier over all levels), so every member knows the group before any member may post.
#pragma once

#include "levels/message_level.h"

namespace mcastcoll::levels {

//   linear    each member sends all its blocks at once, directly to their receivers
//   binomial  along a binomial tree, with the blocks of a subtree in one message: fewer messages at the root,
//             but a block travels several times
//   pairwise  in rounds, each with one partner per member; a few rounds overlap
//   bruck     in ceil(log2 n) rounds, in which several blocks travel together for a part of their way (Bruck,
//             Ho, Kipnis, Upfal, Weathersby: Efficient Algorithms for All-to-All Communications in Multiport
//             Message-Passing Systems, IEEE TPDS 8(11), 1997)
//   ring      each block from neighbour to neighbour
enum class ExchangeAlgorithm : std::uint8_t { linear, binomial, pairwise, bruck, ring };

struct ExchangeConfig : MessageConfig {
    // Limit for the sum of the windows, and the smallest and the largest window.
    std::uint32_t memory_bytes = 32 << 20, min_window_bytes = 512, max_window_bytes = 1 << 20;
};

class ExchangeLevel final : public MessageLevel {
  public:
    explicit ExchangeLevel(const ExchangeConfig& config);

    int post(LevelOperation& operation, Nanoseconds now) override;
    // Uses the given algorithm, which must be the same on all members.
    int post(LevelOperation& operation, ExchangeAlgorithm algorithm, Nanoseconds now);
};

}  // namespace mcastcoll::levels
