// Collects the loss of the multicast that members report to each other, and decides how many copies and
// parity rows a root multicasts after a message because of that loss (setting "redundancy").
//
// A repaired loss costs a deadline, a NAK and an answer: about five times as long as the broadcast. While
// enough is lost, roots multicast more than a message, and stop when losses stop. Repair by NAKs works in any
// case and no member relies on a copy, so members may decide differently.
//
// Measurement: copies carry a flag, so a receiver distinguishes a first multicast from a later one. A
// member's share of lost first multicasts is a mean over about 256 fragments; a fragment that arrives after
// its NAK was only late, and is subtracted. Shares travel with the watermark messages: up the tree the sum
// and the largest share of the subtree, down the totals of rank 0. So a root learns the group's loss about
// two checkpoints later, without an extra message or datagram.
//
// Copies: with c copies a member with share p lacks a fragment with probability p^(c+1); all members together
// at most the sum of the shares times the largest share to the power of c. A root sends the fewest copies, at
// most two, that bring this below 0.5 %, and one copy less when a third of 0.5 % is reached without that
// copy. Only short messages, of up to 7 fragments, have copies.
//
// Parity: behind each block of 64 fragments of a longer message, and at its end, follow rows of a
// Reed-Solomon code (parity_code.h), each of which replaces any one fragment. Their number is the expected
// loss of the worst member plus three deviations, but at most one row for eight fragments (for four in blocks
// below 32). Parity starts when a block would be incomplete somewhere too often. Receivers keep at most
// parity_buffers (16) rows, and restore a block when at most as many fragments are missing as there are rows
// (restorer.h). While parity is sent, a root leaves an eighth of the window free for parity rows. Under
// address scheme `tree` no parity is sent.
//
// Time: a copy follows the whole message at once, which costs a receiver that needs it about a microsecond.
// Receivers report whether copies are lost together with their fragment. If a third of the copies is lost in
// this way, losses come in bursts: for the next 64 reports a root sends two copies, a third and two thirds of
// the shortest deadline later, still before any NAK. The eight reports after copies begin are not judged,
// since they include operations without copies.
//
// Holes: while copies or a block's parity may come, no NAK is sent for a hole as long as the root goes on
// sending.
//
// Counters: copies_sent, parity_sent, fragments_restored, redundancy_changes. Measurements:
// docs/REDUNDANCY.md.
#pragma once

#include <array>

#include "engine/group_config.h"
#include "engine/loss_meter.h"
#include "engine/loss_report.h"
#include "engine/rank_list.h"

namespace mcastcoll::engine {

// Packets that a root sends beyond a message's fragments.
struct Spares {
    std::uint32_t copies = 0;  // of each fragment of a short message
    bool spread = false;       // at intervals, since losses come in bursts
    bool parity = false;       // after the blocks of longer messages
    bool operator==(const Spares&) const = default;
};

// Current choice, with its measurements.
struct RedundancyState {
    Spares spares;
    LossReport group;  // last report of rank 0
    LossReport own;
};

// Collects the reports of the subtree for the parent. Every root decides by itself from the loss of the whole
// group.
class RedundancyPolicy {
  public:
    explicit RedundancyPolicy(const GroupConfig& config);

    LossMeter& meter() { return meter_; }
    // Stores a report from a child in the gather tree.
    void on_report(std::uint32_t child, const LossReport& report) { children_[child] = report; }
    // The report of this member's subtree, for its parent.
    LossReport subtree() const;
    // Takes over the loss of the whole group.
    void adopt(const LossReport& group);
    const LossReport& group() const { return group_; }
    // Neither this member nor, according to the reports, another member has lost fragments lately.
    bool lossless() const { return group_.worst == 0 && meter_.own().worst == 0; }

    // Number of copies of a message of this many fragments.
    std::uint32_t copies(std::uint32_t fragments) const {
        return fragments <= kMaxCopied ? chosen_.copies : 0;
    }
    // Number of parity rows for a block of this many fragments in a longer message.
    std::uint32_t parity(std::uint32_t fragments) const;
    // The window without the part that a root leaves free for parity.
    std::uint32_t window(std::uint32_t fragments) const {
        return chosen_.parity ? fragments - fragments / kParityShare : fragments;
    }
    bool spreads() const { return chosen_.spread; }
    RedundancyState state() const;
    std::uint64_t changes() const { return changes_; }

    // Longest message, in fragments, that counts as short.
    static constexpr std::uint32_t kMaxCopied = 7;
    // Largest number of copies of a fragment.
    static constexpr std::uint32_t kMaxCopies = 2;
    // Largest ratio of parity to fragments: 1 to kParityShare, in blocks below kShortBlock 1 to kShortShare.
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
    std::uint32_t bursty_ = 0;  // number of reports for which losses still count as bursts
    std::uint32_t fresh_ = 0;   // number of coming reports that may include operations without copies
    std::uint64_t changes_ = 0;
};

}  // namespace mcastcoll::engine
