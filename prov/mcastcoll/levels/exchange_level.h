// Messages among all members of a group, whatever host they are on: gather, scatter, alltoall and
// reduce_scatter, where each has other bytes for each, and multicast has nothing to offer; and an allgather
// without multicast.
//
// Of what nobody expects yet, a receiver keeps a window for each sender, and may have to keep all of them at
// once: who was never granted anything has that much from the start. In a group of n:
//
//        n            window of each    of all               lent beyond
//        2 - 32       1 MiB             n MiB                -
//       33 - 256      32 MiB / n        32 MiB               -
//      257 - 65,536   32 MiB / n        32 MiB               16 MiB, to have up to 128 KiB each
//      more           512 bytes         n / 2 KiB            the same
//
// A grant is sent only to who still has to send: whoever has done its share may close the group and be gone.
//
// Nobody needs to greet. A group's join ends with something that everybody hears of from everybody (the
// election of the engine, or a barrier over all levels), so whoever may post is known to all.
#pragma once

#include "levels/message_level.h"

namespace mcastcoll::levels {

//   linear    whoever has something for another sends it, all at once
//   binomial  along a binomial tree, the blocks of a subtree in one message: fewer messages at the root, but
//             each block travels several times
//   pairwise  in rounds, in each of which everybody exchanges with one other; a few rounds overlap
//   bruck     in ceil(log2 n) rounds, in which blocks travel together part of their way (Bruck, Ho, Kipnis,
//             Upfal, Weathersby: Efficient Algorithms for All-to-All Communications in Multiport Message-
//             Passing Systems, IEEE TPDS 8(11), 1997)
//   ring      every block from neighbour to neighbour
enum class ExchangeAlgorithm : std::uint8_t { linear, binomial, pairwise, bruck, ring };

struct ExchangeConfig : MessageConfig {
    // What all windows may have together, and one at least and at most.
    std::uint32_t memory_bytes = 32 << 20, least_window_bytes = 512, most_window_bytes = 1 << 20;
};

class ExchangeLevel final : public MessageLevel {
  public:
    explicit ExchangeLevel(const ExchangeConfig& config);

    int post(Leg& leg, Nanoseconds now) override;
    // By this algorithm, on all members.
    int post(Leg& leg, ExchangeAlgorithm algorithm, Nanoseconds now);
};

}  // namespace mcastcoll::levels
