// How much of the multicast is lost, as members tell each other, and how much is multicast again because of
// it (README.md: Redundancy). Repair stays underneath: what is bought here is only time.
#pragma once

#include <array>

#include "engine/config.h"
#include "engine/parity.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

// Shares are in millionths.
inline constexpr std::uint32_t kMillion = 1'000'000;

// What a subtree of members, or the whole group, loses of what is multicast for the first time.
struct LossReport {
    std::uint64_t lacking = 0;  // how many members a datagram does not reach, in the mean: of all the sum
    std::uint32_t worst = 0;    // the largest share that one of them loses
    std::uint32_t missed = 0;   // how many members no copy reaches either
    bool operator==(const LossReport&) const = default;
    void add(const LossReport& other) {
        lacking += other.lacking;
        worst = std::max(worst, other.worst);
        missed = std::min(missed + other.missed, kMillion);
    }
};

// In the total of the words about the watermark. What no group of so many members can lose is cut off.
std::uint64_t pack(const LossReport& report);
LossReport unpack_losses(std::uint64_t total, std::uint32_t members);

// This member's own share, which follows the last few hundred fragments.
class LossMeter {
  public:
    // An operation is over of which so many fragments did not come by their first multicast, and so many by
    // none.
    void note(std::uint32_t lost, std::uint32_t missed, std::uint32_t fragments);
    // So many of them came by their first multicast after all, and so many by any: they were late.
    void note_late(std::uint32_t first, std::uint32_t any, std::uint32_t fragments);
    // Copies have only just begun to be sent.
    void forget_missed() { missed_ = 0; }
    LossReport own() const {
        const auto rounded = [](std::int64_t share) {
            return static_cast<std::uint32_t>(share / (kFine / kMillion));
        };
        return {.lacking = rounded(lost_), .worst = rounded(lost_), .missed = rounded(missed_)};
    }

  private:
    // Finer than what is told: a share that is given up a little at a time must come to nothing in the end.
    static constexpr std::int64_t kFine = std::int64_t{1024} * kMillion;
    std::int64_t lost_ = 0, missed_ = 0;
};

// What is sent beyond a message's fragments.
struct Spares {
    std::uint32_t copies = 0;  // of each fragment of a short message
    bool spread = false;       // apart from each other, since losses come in bursts
    bool parity = false;       // of the blocks of longer ones
    bool operator==(const Spares&) const = default;
};

// What a member chose, and the numbers behind it.
struct RedundancyState {
    Spares spares;
    LossReport group;  // as rank 0 told it last
    LossReport own;
};

// Losses travel up with the watermarks and down again with the next; from what the whole group loses every
// root decides by itself.
class RedundancyPolicy {
  public:
    explicit RedundancyPolicy(const GroupConfig& config);

    LossMeter& meter() { return meter_; }
    // From a child in the gather tree; and what this member tells its parent of its subtree.
    void hear(std::uint32_t child, const LossReport& report) { children_[child] = report; }
    LossReport subtree() const;
    // What the whole group loses.
    void adopt(const LossReport& group);
    const LossReport& group() const { return group_; }
    // Nothing was lost lately, neither here nor, as far as was told, elsewhere.
    bool lossless() const { return group_.worst == 0 && meter_.own().worst == 0; }

    // Of a message of so many fragments.
    std::uint32_t copies(std::uint32_t fragments) const {
        return fragments <= kMostCopied ? chosen_.copies : 0;
    }
    // Rows of parity of a block of so many, in a longer message.
    std::uint32_t parity(std::uint32_t fragments) const;
    // Of a whole window a root leaves room for parity.
    std::uint32_t window(std::uint32_t fragments) const {
        return chosen_.parity ? fragments - fragments / kParityShare : fragments;
    }
    bool spreads() const { return chosen_.spread; }
    RedundancyState state() const;
    std::uint64_t changes() const { return changes_; }

    // Messages of more fragments are not short.
    static constexpr std::uint32_t kMostCopied = 7;
    // Copies of a fragment, at most.
    static constexpr std::uint32_t kMostCopies = 2;
    // Parity is at most one in so many of a block's fragments; of short blocks one in so many.
    static constexpr std::uint32_t kParityShare = 8, kShortShare = 4, kShortBlock = 32;

  private:
    std::uint64_t expected(std::uint32_t copies) const;
    std::uint32_t wanted_copies() const;
    bool wants_parity() const;

    const Redundancy configured_;
    const std::uint32_t members_;
    const bool has_parity_;
    LossMeter meter_;
    std::array<LossReport, kMaxArity> children_{};
    LossReport group_;
    Spares chosen_;
    std::uint32_t bursty_ = 0;  // so many reports more losses count as bursts
    std::uint32_t fresh_ = 0;   // so many more may tell of operations that had no copies yet
    std::uint64_t changes_ = 0;
};

}  // namespace mcastcoll::engine
