#include "reliable/protocol.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::reliable {
namespace {

constexpr Nanoseconds kProbePause = Nanoseconds::from_ms(10);
constexpr Nanoseconds kStrayPause = Nanoseconds::from_ms(4);
constexpr std::uint64_t kReportsPerWindow = 8;
// kPause: a longer time between two ticks counts as a pause of the caller. kLongestRest: longest sleep while
// data or acknowledgements are owed.
constexpr Nanoseconds kPause = Nanoseconds::from_ms(50), kLongestRest = Nanoseconds::from_ms(20);

}  // namespace

Protocol::Protocol(const Config& config, Host& host, Nanoseconds now)
    : config_(config),
      host_(host),
      proof_(config.key),
      store_(config.memory, Members::kMaxMembers),
      outgoing_(config.sends ? config.window : 1, config.payload, header(Kind::data, kAllMembers), proof_),
      pacer_(now),
      meets_until_(now + config.peer_timeout),
      strict_until_(now),
      probe_at_(now),
      stray_at_(now),
      looked_at_(now),
      beat_after_(kBeatLongest) {}

Header Protocol::header(Kind kind, MemberId to) const {
    return {.kind = kind, .group = config_.group, .from = config_.self, .to = to};
}

void Protocol::send_packet(Header header, const Place& to, Bytes body) {
    std::array<std::byte, kHeaderBytes + kBitmapBytes> packet;
    header.serial = proof_.next_serial();
    const auto front = encode(header);
    std::copy(front.begin(), front.end(), packet.begin());
    std::copy(body.begin(), body.end(), packet.begin() + kHeaderBytes);
    const MutableBytes all(packet.data(), kHeaderBytes + body.size());
    proof_.stamp(all);
    if (header.to == kAllMembers)
        host_.multicast(all, all.size());
    else
        host_.send(to, all);
}

// The sender's data is still accepted, but a missing part can no longer be repaired.
void Protocol::on_leave(Member& member, const Header& header) {
    member.receives = false;
    trim();
    limit_window();
    if (!member.incoming) {
        // A barred sender is kept in memory, so that it stays barred.
        member.gone = !member.barred;
        member.leaving = true;
        return;
    }
    if (member.leaving) return;
    member.incoming->note_end(header.number);
    if (member.incoming->first_missing() < header.number) return bar(member, Loss::gap);
    member.leaving = true;
}

void Protocol::bar(Member& member, Loss how) {
    member.incoming.reset();
    member.gap.stop();
    member.barred = true;
    host_.lost(member, how);
}

// Whether a packet with a valid tag comes from the member's own address and is no replay.
bool Protocol::is_from(Member& member, const Header& header, const Place& source) {
    if (member.answered && member.place != source) {
        ++counters_.other_source;
        return false;
    }
    // Without a key serials are not checked: a foreign host could use up the serials of a member.
    if (!proof_.on() || header.kind == Kind::data || member.serials.take(header.serial)) return true;
    ++counters_.replayed;
    return false;
}

void Protocol::on_packet(const Header& header, Bytes packet, const Place& source, Nanoseconds now) {
    if (header.group != config_.group || header.from == config_.self) return;
    if (header.to != kAllMembers && header.to != config_.self) return;
    if (!proof_.is_right(packet)) {
        ++counters_.invalid_tag;
        return;
    }
    const Bytes body = packet.subspan(kHeaderBytes);
    const bool introduces = header.kind == Kind::join || header.kind == Kind::welcome;
    Member* const known = introduces ? find_or_add(header.from, source, now) : members_.find(header.from);
    if (known != nullptr && !is_from(*known, header, source)) return;
    switch (header.kind) {
        case Kind::data:
            if (takes_from(known, header, source, now)) on_data(*known, header, body, now);
            return;
        case Kind::join:
        case Kind::welcome:
            if (known != nullptr) on_introduction(*known, header, body, source, now);
            return;
        case Kind::report:
            return on_report(known, header, body, source, now);
        case Kind::beat:
            if (takes_from(known, header, source, now)) on_beat(*known, header, now);
            return;
        case Kind::leave:
            if (known != nullptr) on_leave(*known, header);
            return;
        case Kind::expelled:
            if (known != nullptr && known->incoming) bar(*known, Loss::expelled);
            return;
    }
}

// Whether this member can process the data or beat of this sender. If the number of the sender's first packet
// is not known, a join requests that number.
bool Protocol::takes_from(Member* sender, const Header& header, const Place& source, Nanoseconds now) {
    if (sender != nullptr && sender->incoming) {
        if (sender->incoming->skip_to(header.oldest)) return true;
        bar(*sender, Loss::gap);
        return false;
    }
    ++counters_.foreign;
    if (!config_.receives || now < stray_at_ || (sender != nullptr && sender->barred)) return false;
    stray_at_ = now + kStrayPause;
    if (find_or_add(header.from, source, now) != nullptr) send_join(header.from, source, now);
    return false;
}

void Protocol::on_data(Member& member, const Header& header, Bytes body, Nanoseconds now) {
    Incoming& incoming = *member.incoming;
    // Late and repeated packets have an outdated window size.
    if (header.number >= incoming.taken())
        member.report_every = std::max<std::uint64_t>(1, header.size / kReportsPerWindow);
    // In-order data is stored only if the application has no room.
    const bool in_turn = header.number == incoming.taken() && !incoming.ready();
    if (in_turn && hand_over(member, body)) {
        ++counters_.received;
        incoming.take();
        report_progress(member);
    } else {
        const Put put = incoming.put(header.number, body);
        ++(put == Put::taken     ? counters_.received
           : put == Put::useless ? counters_.duplicates
                                 : counters_.no_room);
        // A replayed packet is no sign of life.
        if (put != Put::taken) return member.gap.watch(incoming.has_gap(), now);
    }
    member.last_received = now;
    member.gap.watch(incoming.has_gap(), now);
}

// Delivers the pieces of the sender's next packet; true if none is left.
bool Protocol::hand_over(Member& member, Bytes body) {
    Piece piece;
    while (read_piece(body, member.incoming->offset(), piece)) {
        if (!host_.deliver(member, piece.flags, piece.bytes)) return false;
        member.incoming->take_piece(piece.flags,
                                    member.incoming->offset() + kPieceHeader + piece.bytes.size());
    }
    return true;
}

void Protocol::report_progress(Member& member) {
    if (member.incoming->taken() - member.reported >= member.report_every) report(member, false);
}

void Protocol::on_beat(Member& member, const Header& header, Nanoseconds now) {
    member.last_received = now;
    member.incoming->note_end(header.number);
    // Reported in the next tick, because packets in the socket are not missing.
    if ((header.flags & kReport) != 0) member.report_wanted = true;
    member.gap.watch(member.incoming->has_gap(), now);
}

void Protocol::report(Member& member, bool holes) {
    std::array<std::byte, kBitmapBytes> bitmap;
    Header report = header(Kind::report, member.id);
    report.number = member.incoming->taken();
    report.oldest = member.incoming->first_missing();
    const std::size_t used = holes ? member.incoming->missing(bitmap) : 0;
    member.reported = report.number;
    ++counters_.reports;
    send_packet(report, member.place, Bytes(bitmap.data(), used));
}

void Protocol::deliver() {
    for (const auto& member : members_) {
        if (!member->incoming || member->gone) continue;
        Incoming& incoming = *member->incoming;
        while (incoming.ready() && hand_over(*member, incoming.body())) incoming.take();
        report_progress(*member);
    }
}

// Bars senders that are silent while they owe data. A silent sender without such a debt may have no data, or
// be busy.
void Protocol::bar_silent(Nanoseconds now) {
    for (const auto& member : members_) {
        if (!member->incoming || member->leaving || now - member->last_received <= config_.peer_timeout)
            continue;
        if (member->incoming->has_gap() || member->incoming->in_message()) bar(*member, Loss::silent);
    }
}

void Protocol::tick(Nanoseconds now) {
    if (const Nanoseconds pause = now - std::exchange(looked_at_, now); pause > kPause)
        members_.forgive(pause, now);
    if (now >= probe_at_ && probes_left_ > 0) {
        --probes_left_;
        probe_at_ = now + kProbePause;
        send_join(kAllMembers, {}, now);
        if (config_.sends && beat_at_ == kNever) beat_at_ = now + beat_after_;
    }
    for (const auto& member : members_) {
        const bool overdue = now >= member->gap.deadline();
        if (!member->gone && member->incoming && (overdue || member->report_wanted)) report(*member, true);
        member->report_wanted = false;
        if (!member->gone && overdue) member->gap.reported(member->incoming->first_missing(), now);
    }
    repeat_requests(now);
    drop_unanswered(now);
    expel_late(now);
    bar_silent(now);
    members_.remove_gone();
    if (now >= flush_at_) flush(now);
    // Packets that the system has not accepted yet cannot be missing.
    if (config_.sends && now >= beat_at_ && outgoing_.waiting() == 0) beat(!outgoing_.empty(), now);
}

Nanoseconds Protocol::next_deadline() const {
    Nanoseconds soonest = flush_at_;
    if (config_.sends && outgoing_.waiting() == 0) soonest = std::min(soonest, beat_at_);
    if (probes_left_ > 0) soonest = std::min(soonest, probe_at_);
    bool owed = !outgoing_.empty();
    for (const auto& member : members_) {
        soonest = std::min({soonest, member->gap.deadline(), member->request_timer.deadline()});
        owed = owed || (member->incoming && !member->leaving &&
                        (member->incoming->has_gap() || member->incoming->in_message()));
    }
    // A longer sleep would count as a pause and excuse peers that are silent or late.
    return owed ? std::min(soonest, looked_at_ + kLongestRest) : soonest;
}

}  // namespace mcastcoll::reliable
