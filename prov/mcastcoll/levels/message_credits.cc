// Flow control of messages among members: piece sizes, their cost, and grants.
#include <algorithm>

#include "levels/message_level.h"

namespace mcastcoll::levels {
namespace {

// Pieces hold whole elements of every datatype.
constexpr std::uint32_t kElementMultiple = 32;
constexpr std::uint32_t kPieceCost = 64;

}  // namespace

// The longest piece of which a window holds two.
std::uint32_t MessageLevel::unit_of(const MessageConfig& config) {
    return (config.window_bytes / 2 - kPieceCost) / kElementMultiple * kElementMultiple;
}

std::uint32_t MessageLevel::longest_of(const MessageConfig& config) {
    const auto bytes = config.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes);
    return bytes / kElementMultiple * kElementMultiple;
}

// The longest piece: as many units as fit into a message, and of which the longest window holds two pieces.
std::uint32_t MessageLevel::piece_of(const MessageConfig& config) {
    const std::uint32_t unit = unit_of(config), longest = longest_of(config);
    if (longest <= unit) return longest;
    return std::max(1U, std::min(longest / unit, config.long_window_bytes / 2 / (unit + kPieceCost))) * unit;
}

std::uint64_t MessageLevel::cost_of(std::uint64_t bytes) const {
    const std::uint64_t units = (bytes + unit_bytes_ - 1) / unit_bytes_;
    return bytes + std::max<std::uint64_t>(1, units) * kPieceCost;
}

void MessageLevel::use(Peer& one, std::size_t bytes) {
    borrowed_ -= borrowed_by(one);
    one.kept -= cost_of(bytes);
    one.used += cost_of(bytes);
    borrowed_ += borrowed_by(one);
}

std::uint64_t MessageLevel::borrowed_by(const Peer& one) const {
    const std::uint64_t first = one.used + config_.window_bytes;
    return one.allowed > first ? one.allowed - first : 0;
}

// The cost of the data that the peer still has to send, or some value above `max`.
std::uint64_t MessageLevel::outstanding(const Peer& one, std::uint64_t max) const {
    std::uint64_t cost = 0;
    for (const Turn& turn : one.receives) {
        const Inbound& in = turn.transfer->schedule.receives[turn.index];
        const std::uint64_t rest = in.bytes - in.done;
        const std::uint64_t pieces = (rest + min_piece_bytes_ - 1) / min_piece_bytes_;
        cost += rest + std::max<std::uint64_t>(1, pieces) * kPieceCost;
        if (cost > max) break;
    }
    return cost;
}

// The cumulative cost that the peer may be granted now. Borrowed credit does not exceed the outstanding data,
// whose arrival returns the credit; a window remains for unexpected pieces.
std::uint64_t MessageLevel::allowance(const Peer& one) const {
    const std::uint64_t first = one.used + config_.window_bytes;
    if (format_.grants_early) return first;
    const std::uint64_t left = one.allowed - one.used;
    const std::uint64_t cost = outstanding(one, std::max<std::uint64_t>(left, max_borrowed_));
    if (cost <= left) return one.allowed;
    return first + std::min({cost, std::uint64_t{max_borrowed_},
                             config_.borrowed_credit_bytes - borrowed_ + borrowed_by(one)});
}

// A grant is due if it raises the credit then available by at least a quarter.
bool MessageLevel::grant_due(const Peer& one) const {
    if (one.hello_due) return true;
    const std::uint32_t window = config_.window_bytes;
    if (one.allowed > one.used + max_borrowed_ + window - window / 4) return false;
    const std::uint64_t next = allowance(one);
    return next > one.allowed && next - one.allowed >= (next - one.used) / 4;
}

void MessageLevel::grant(Peer& one) {
    const std::uint64_t next = allowance(one);
    borrowed_ -= borrowed_by(one);
    one.hello_due = false;
    one.allowed = std::max(one.allowed, next);
    borrowed_ += borrowed_by(one);
}

}  // namespace mcastcoll::levels
