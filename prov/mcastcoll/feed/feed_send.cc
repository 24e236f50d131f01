// The sending half of a member: what leaves and when, repairs, and how far it may be ahead of its receivers.
#include <algorithm>

#include "feed/feed.h"

namespace mcastcoll::feed {
namespace {

// Several who ask for the same get one answer. Who asks first has waited for what was reordered.
constexpr Nanoseconds kRepairPause = Nanoseconds::from_us(1500);
constexpr Nanoseconds kBeatFirst = Nanoseconds::from_ms(4);
constexpr Nanoseconds kBeatLongest = Nanoseconds::from_ms(128);
constexpr unsigned kFarewells = 3;
// So many full packets do not wait for others.
constexpr std::size_t kFullRow = 16;
// When the system has no room for a packet.
constexpr Nanoseconds kSendAgain = Nanoseconds::from_us(100);
// However small somebody's receive buffer is, and however wrong what it says of it.
constexpr std::size_t kLeastWindow = 16;

}  // namespace

void Feed::leave(Nanoseconds now) {
    flush(now);
    Header farewell = header(Kind::leave, kEverybody);
    farewell.number = outgoing_.next();
    // Who misses them all finds out by the peer timeout.
    for (unsigned i = 0; i < kFarewells; ++i) tell(kEverybody, farewell);
}

void Feed::send(Bytes message, Nanoseconds now) {
    for (const auto& member : members_)
        if (member->acked == outgoing_.next()) member->moved = now;
    outgoing_.append(message);
    if (pacer_.take(now)) {
        outgoing_.close();
        emit(now);
    } else if (outgoing_.waiting() >= kFullRow) {
        emit(now);
    }
    if (outgoing_.waiting() > 0 || outgoing_.has_open())
        flush_at_ = std::min(flush_at_, std::max(pacer_.next(), now));
}

void Feed::flush(Nanoseconds now) {
    flush_at_ = kNever;
    if (outgoing_.has_open()) pacer_.force(now);
    outgoing_.close();
    emit(now);
}

void Feed::emit(Nanoseconds now) {
    flush_at_ = kNever;
    bool any = false;
    for (auto row = outgoing_.unsent(); row.packets > 0; row = outgoing_.unsent()) {
        if (!host_.multicast(row.bytes, row.unit)) {
            flush_at_ = now + kSendAgain;
            break;
        }
        outgoing_.sent(row);
        counters_.sent += row.packets;
        any = true;
    }
    if (!any) return;
    beat_after_ = kBeatFirst;
    beat_at_ = now + beat_after_;
    if (receivers() == 0) trim();
}

void Feed::on_report(const Header& header, Bytes body, Nanoseconds now) {
    Member* member = members_.find(header.from);
    if (member == nullptr || !member->receives)
        return tell(header.from, this->header(Kind::expelled, header.from));
    member->heard = now;
    if (header.number > member->acked && header.number <= outgoing_.next()) {
        member->acked = header.number;
        member->moved = now;
        trim();
    }
    const std::size_t bits = 8 * std::min(body.size(), kBitmapBytes);
    for (std::size_t bit = 0; bit < bits; ++bit) {
        if ((body[bit / 8] & std::byte{1} << (bit % 8)) == std::byte{0}) continue;
        const Bytes packet = outgoing_.again(header.oldest + bit, now, kRepairPause);
        if (packet.empty()) continue;
        ++counters_.repaired;
        // What the system has no room for is asked for again.
        host_.multicast(packet, packet.size());
    }
}

void Feed::trim() {
    const std::uint64_t oldest = members_.acked_by_all(outgoing_.next());
    if (oldest > outgoing_.oldest()) beat_after_ = kBeatFirst;
    outgoing_.trim(oldest);
}

void Feed::limit_window() {
    outgoing_.limit(std::max(members_.least_room(config_.window), kLeastWindow));
}

void Feed::beat(bool wanted, Nanoseconds now) {
    Header one = header(Kind::beat, kEverybody);
    one.number = outgoing_.next();
    one.oldest = outgoing_.oldest();
    one.flags = wanted ? kReport : 0;
    ++counters_.beats;
    tell(kEverybody, one);
    const Nanoseconds idle{config_.peer_timeout.value / 10};
    beat_at_ = now + (wanted ? std::min(beat_after_, idle) : idle);
    beat_after_ = std::min(beat_after_ + beat_after_, kBeatLongest);
}

void Feed::expel_late(Nanoseconds now) {
    bool expelled = false;
    for (const auto& member : members_) {
        if (!member->receives || member->gone || member->acked == outgoing_.next()) continue;
        if (now - member->moved <= config_.peer_timeout) continue;
        // It may go on sending.
        member->receives = false;
        expelled = true;
        ++counters_.expelled;
        tell(member->id, header(Kind::expelled, member->id));
    }
    if (!expelled) return;
    trim();
    limit_window();
}

}  // namespace mcastcoll::feed
