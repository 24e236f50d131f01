#include "feed/feed.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::feed {
namespace {

constexpr Nanoseconds kProbePause = Nanoseconds::from_ms(10);
constexpr Nanoseconds kStrayPause = Nanoseconds::from_ms(4);
constexpr std::uint64_t kReportsPerWindow = 8;
// Who looks less often than this has paused.
constexpr Nanoseconds kPause = Nanoseconds::from_ms(50);
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

Feed::Feed(const Config& config, Host& host, Nanoseconds now)
    : config_(config),
      host_(host),
      outgoing_(config.sends ? config.window : 1, config.payload, header(Kind::data, kEverybody)),
      pacer_(now),
      probe_at_(now),
      stray_at_(now),
      looked_at_(now),
      beat_after_(kBeatLongest) {}

Member* Feed::find_or_add(MemberId id, Nanoseconds now) {
    if (Member* known = members_.find(id); known != nullptr) return known;
    if (members_.full()) {
        const auto evicted = members_.evict(now, config_.peer_timeout);
        if (evicted == nullptr) return nullptr;
        if (evicted->incoming) host_.lost(evicted->id, Loss::silent);
    }
    return &members_.add(id, now);
}

Header Feed::header(Kind kind, MemberId to) const {
    return {kind, 0, 0, config_.group, config_.self, to, 0, 0};
}

void Feed::tell(const Header& header, Bytes body) {
    std::array<std::byte, kHeaderBytes + kBitmapBytes> packet;
    const auto front = encode(header);
    std::copy(front.begin(), front.end(), packet.begin());
    std::copy(body.begin(), body.end(), packet.begin() + kHeaderBytes);
    const Bytes all(packet.data(), kHeaderBytes + body.size());
    if (header.to == kEverybody)
        host_.multicast(all, all.size());
    else
        host_.send(header.to, all);
}

Header Feed::introduction(Kind kind, MemberId to) const {
    Header one = header(kind, to);
    one.flags = static_cast<std::uint8_t>((config_.sends ? kSends : 0) | (config_.receives ? kReceives : 0));
    one.size = static_cast<std::uint16_t>(config_.payload);
    one.number = outgoing_.next();
    one.oldest = config_.room;
    return one;
}

void Feed::send_join(MemberId to, Nanoseconds now) {
    flush(now);
    tell(introduction(Kind::join, to));
}

// A join or a welcome: the other says what it does, and where its packets begin for this member.
void Feed::on_introduction(const Header& header, Nanoseconds now) {
    Member* const found = find_or_add(header.from, now);
    if (found == nullptr) return;
    Member& member = *found;
    member.heard = now;
    if (config_.sends && (header.flags & kReceives) != 0 && !member.receives) {
        // It begins with a whole message.
        flush(now);
        member.receives = true;
        member.room = static_cast<std::size_t>(std::min<std::uint64_t>(header.oldest, config_.window));
        // Who joins begins with the next message. Who was told an earlier number, by a join of this member,
        // gets what is still kept.
        member.start = member.acked = header.kind == Kind::join ? outgoing_.next() : outgoing_.oldest();
        member.moved = now;
        limit_window();
    }
    if (config_.receives && (header.flags & kSends) != 0 && !member.incoming && !member.barred &&
        header.size > kPieceHeader && header.size <= kMostPayload) {
        member.incoming = std::make_unique<Incoming>(config_.window, header.size, header.number);
        member.reported = header.number;
    }
    if (header.kind != Kind::join) return;
    Header welcome = introduction(Kind::welcome, member.id);
    if (member.receives) welcome.number = member.start;
    tell(welcome);
}

// What it has sent is still taken; if a part of that is missing, nobody has it any more.
void Feed::on_leave(Member& member, const Header& header) {
    member.receives = false;
    trim();
    limit_window();
    if (!member.incoming) {
        member.gone = true;
        return;
    }
    if (member.leaving) return;
    member.incoming->note_end(header.number);
    if (member.incoming->first_missing() < header.number) return bar(member, Loss::gap);
    member.leaving = true;
}

void Feed::bar(Member& member, Loss how) {
    member.incoming.reset();
    member.gap.stop();
    member.barred = true;
    host_.lost(member.id, how);
}

void Feed::on_packet(const Header& header, Bytes body, Nanoseconds now) {
    if (header.group != config_.group || header.from == config_.self) return;
    if (header.to != kEverybody && header.to != config_.self) return;
    Member* const known = members_.find(header.from);
    switch (header.kind) {
        case Kind::data:
            if (takes_from(known, header, now)) on_data(*known, header, body, now);
            return;
        case Kind::join:
        case Kind::welcome:
            return on_introduction(header, now);
        case Kind::report:
            return on_report(known, header, body, now);
        case Kind::beat:
            if (takes_from(known, header, now)) on_beat(*known, header, now);
            return;
        case Kind::leave:
            if (known != nullptr) on_leave(*known, header);
            return;
        case Kind::expelled:
            if (known != nullptr && known->incoming) bar(*known, Loss::expelled);
            return;
    }
}

// Whether this member can do something with data, or a beat for it. If the sender's beginning is not known it
// is asked for.
bool Feed::takes_from(Member* sender, const Header& header, Nanoseconds now) {
    if (sender != nullptr) sender->heard = now;
    if (sender != nullptr && sender->incoming) {
        if (sender->incoming->skip_to(header.oldest)) return true;
        bar(*sender, Loss::gap);
        return false;
    }
    ++counters_.strays;
    if (!config_.receives || now < stray_at_ || (sender != nullptr && sender->barred)) return false;
    stray_at_ = now + kStrayPause;
    send_join(header.from, now);
    return false;
}

void Feed::on_data(Member& member, const Header& header, Bytes body, Nanoseconds now) {
    Incoming& incoming = *member.incoming;
    member.report_every = std::max<std::uint64_t>(1, header.size / kReportsPerWindow);
    // What comes in its turn is not kept, unless the application has no room.
    const bool in_turn = header.number == incoming.taken() && !incoming.ready();
    if (in_turn && hand_over(member, body)) {
        ++counters_.received;
        incoming.take();
        report_progress(member);
    } else if (incoming.put(header.number, body)) {
        ++counters_.received;
    } else {
        ++counters_.duplicates;
    }
    member.gap.watch(incoming.has_gap(), now);
}

// Gives the application what it takes of its sender's next packet; true: nothing is left.
bool Feed::hand_over(Member& member, Bytes body) {
    Piece piece;
    while (read_piece(body, member.incoming->offset(), piece)) {
        if (!host_.deliver(member.id, piece.flags, piece.bytes)) return false;
        member.incoming->take_piece(piece.flags,
                                    member.incoming->offset() + kPieceHeader + piece.bytes.size());
    }
    return true;
}

void Feed::report_progress(Member& member) {
    if (member.incoming->taken() - member.reported >= member.report_every) report(member, false);
}

void Feed::on_beat(Member& member, const Header& header, Nanoseconds now) {
    member.incoming->note_end(header.number);
    // With the next tick: what is still in the socket is not missing.
    if ((header.flags & kReport) != 0) member.report_wanted = true;
    member.gap.watch(member.incoming->has_gap(), now);
}

void Feed::report(Member& member, bool holes) {
    std::array<std::byte, kBitmapBytes> bitmap;
    Header report = header(Kind::report, member.id);
    report.number = member.incoming->taken();
    report.oldest = member.incoming->first_missing();
    const std::size_t used = holes ? member.incoming->missing(bitmap) : 0;
    member.reported = report.number;
    ++counters_.reports;
    tell(report, Bytes(bitmap.data(), used));
}

void Feed::deliver() {
    for (const auto& member : members_) {
        if (!member->incoming || member->gone) continue;
        Incoming& incoming = *member->incoming;
        while (incoming.ready() && hand_over(*member, incoming.body())) incoming.take();
        report_progress(*member);
    }
}

// A sender may have nothing to say, or nobody who drives it. But what it owes it must repair.
void Feed::bar_silent(Nanoseconds now) {
    for (const auto& member : members_) {
        if (!member->incoming || member->leaving || now - member->heard <= config_.peer_timeout) continue;
        if (member->incoming->has_gap() || member->incoming->in_message()) bar(*member, Loss::silent);
    }
}

void Feed::tick(Nanoseconds now) {
    if (const Nanoseconds pause = now - std::exchange(looked_at_, now); pause > kPause)
        members_.forgive(pause, now);
    if (now >= probe_at_ && probes_left_ > 0) {
        --probes_left_;
        probe_at_ = now + kProbePause;
        send_join(kEverybody, now);
        if (config_.sends && beat_at_ == kNever) beat_at_ = now + beat_after_;
    }
    for (const auto& member : members_) {
        const bool asks = now >= member->gap.deadline();
        if (!member->gone && member->incoming && (asks || member->report_wanted)) report(*member, true);
        member->report_wanted = false;
        if (!member->gone && asks) member->gap.reported(member->incoming->first_missing(), now);
    }
    expel_late(now);
    bar_silent(now);
    members_.bury();
    if (now >= flush_at_) flush(now);
    // What the system has not taken yet cannot be missed.
    if (config_.sends && now >= beat_at_ && outgoing_.waiting() == 0) beat(!outgoing_.empty(), now);
}

Nanoseconds Feed::next_deadline() const {
    Nanoseconds soonest = flush_at_;
    if (config_.sends && outgoing_.waiting() == 0) soonest = std::min(soonest, beat_at_);
    if (probes_left_ > 0) soonest = std::min(soonest, probe_at_);
    for (const auto& member : members_) soonest = std::min(soonest, member->gap.deadline());
    return soonest;
}

// The sending half: what leaves and when, repairs, and how far it may be ahead of its receivers.
void Feed::leave(Nanoseconds now) {
    flush(now);
    Header farewell = header(Kind::leave, kEverybody);
    farewell.number = outgoing_.next();
    // Who misses them all finds out by the peer timeout.
    for (unsigned i = 0; i < kFarewells; ++i) tell(farewell);
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

void Feed::on_report(Member* member, const Header& header, Bytes body, Nanoseconds now) {
    if (member == nullptr || !member->receives) return tell(this->header(Kind::expelled, header.from));
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
    tell(one);
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
        tell(header(Kind::expelled, member->id));
    }
    if (!expelled) return;
    trim();
    limit_window();
}

}  // namespace mcastcoll::feed
