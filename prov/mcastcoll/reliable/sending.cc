// The sending half of a Protocol: packets and repairs, their timing, and the distance to the receivers.
#include <algorithm>

#include "reliable/protocol.h"

namespace mcastcoll::reliable {
namespace {

// Shortest time between two retransmissions of a packet: one answers the NAKs of all receivers, which arrive
// at different times because receivers first wait for reordered packets.
constexpr Nanoseconds kRepairPause = Nanoseconds::from_us(1500);
constexpr Nanoseconds kBeatFirst = Nanoseconds::from_ms(4);
constexpr unsigned kFarewells = 3;
// Once this many full packets wait, they are sent without waiting for the pacer.
constexpr std::size_t kFullRow = 16;
// Pause when the system has no room for a packet.
constexpr Nanoseconds kSendAgain = Nanoseconds::from_us(100);
// Lower limit of the window, even below the reported buffers of receivers: the largest message fits.
constexpr std::size_t kMinWindow = 64;
// A sender waits for a member without an answer for the peer timeout divided by this number.
constexpr std::int64_t kLateShare = 20;

}  // namespace

void Protocol::leave(Nanoseconds now) {
    flush(now);
    Header farewell = header(Kind::leave, kAllMembers);
    farewell.number = outgoing_.next();
    // Repeated, because datagrams may be lost. A receiver that misses every copy detects the end of this
    // member by the peer timeout.
    for (unsigned i = 0; i < kFarewells; ++i) send_packet(farewell);
}

void Protocol::send(Bytes message, Nanoseconds now) {
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

void Protocol::flush(Nanoseconds now) {
    flush_at_ = kNever;
    if (outgoing_.has_open()) pacer_.force(now);
    outgoing_.close();
    emit(now);
}

void Protocol::emit(Nanoseconds now) {
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

void Protocol::on_report(Member* member, const Header& header, Bytes body, const Place& source,
                         Nanoseconds now) {
    if (member == nullptr || !member->receives)
        return send_packet(this->header(Kind::expelled, header.from), source);
    if (!member->answered) {
        ++counters_.unverified;
        return member->request_timer.resume(now);
    }
    member->last_received = now;
    if (header.number > member->acked && header.number <= outgoing_.next()) {
        member->acked = header.number;
        member->moved = now;
        trim();
    }
    repair(header, body, now);
}

void Protocol::repair(const Header& report, Bytes bitmap, Nanoseconds now) {
    const std::size_t bits = 8 * std::min(bitmap.size(), kBitmapBytes);
    for (std::size_t bit = 0; bit < bits; ++bit) {
        if ((bitmap[bit / 8] & std::byte{1} << (bit % 8)) == std::byte{0}) continue;
        if (!proof_.on() && !repairs_.any(now)) return;  // the receiver requests the rest again
        const Bytes packet = outgoing_.again(report.oldest + bit, now, kRepairPause);
        if (packet.empty()) continue;
        if (!proof_.on()) repairs_.take();
        ++counters_.repaired;
        // A packet for which the system has no room will be requested again.
        host_.multicast(packet, packet.size());
    }
}

bool Protocol::RepairBudget::any(Nanoseconds now) {
    const auto more = static_cast<std::uint64_t>((now - filled_at_).value / kRepairEvery.value);
    if (more > 0) {
        left_ = std::min(left_ + more, kMaxRepairs);
        filled_at_ = left_ == kMaxRepairs
                         ? now
                         : filled_at_ + Nanoseconds{static_cast<std::int64_t>(more) * kRepairEvery.value};
    }
    return left_ > 0;
}

void Protocol::trim() {
    const std::uint64_t oldest = members_.acked_by_all(outgoing_.next());
    if (oldest > outgoing_.oldest()) beat_after_ = kBeatFirst;
    outgoing_.trim(oldest);
}

void Protocol::limit_window() {
    outgoing_.limit(std::max(members_.min_room(config_.window), kMinWindow));
}

void Protocol::beat(bool wanted, Nanoseconds now) {
    Header one = header(Kind::beat, kAllMembers);
    one.number = outgoing_.next();
    one.oldest = outgoing_.oldest();
    one.flags = wanted ? kReport : 0;
    ++counters_.heartbeats;
    send_packet(one);
    const Nanoseconds idle{config_.peer_timeout.value / 10};
    beat_at_ = now + (wanted ? std::min(beat_after_, idle) : idle);
    beat_after_ = std::min(beat_after_ + beat_after_, kBeatLongest);
}

void Protocol::expel_late(Nanoseconds now) {
    bool expelled = false;
    for (const auto& member : members_) {
        if (!member->receives || member->gone || member->acked == outgoing_.next()) continue;
        if (now - member->moved <= config_.peer_timeout) continue;
        // The member may continue to send.
        member->receives = false;
        member->expelled = expelled = true;
        ++counters_.expelled;
        send_packet(header(Kind::expelled, member->id), member->place);
    }
    if (!expelled) return;
    trim();
    limit_window();
}

// A member without an answer may be forged: such a member holds the window for a short time, and all of them
// together for a quarter of the time.
void Protocol::drop_unanswered(Nanoseconds now) {
    if (!outgoing_.is_crowded()) return;
    const Nanoseconds late_after{config_.peer_timeout.value / kLateShare};
    bool dropped = false;
    for (const auto& member : members_) {
        if (!member->receives || member->answered || member->acked == outgoing_.next()) continue;
        if (now >= strict_until_ && now - member->moved <= late_after) continue;
        // A member that exists after all receives `expelled` when it answers.
        member->receives = false;
        member->expelled = dropped = true;
        ++counters_.unresponsive;
    }
    if (!dropped) return;
    if (now >= strict_until_) strict_until_ = now + Nanoseconds{3 * late_after.value};
    trim();
}

}  // namespace mcastcoll::reliable
