// How the members of a Protocol meet. Foreign hosts can forge an id or replay packets, so each member has to
// answer a fresh packet before it counts as present.
#include <algorithm>

#include "reliable/protocol.h"
#include "wire/bytes.h"

namespace mcastcoll::reliable {

Member* Protocol::find_or_add(MemberId id, const Place& place, Nanoseconds now) {
    if (Member* known = members_.find(id); known != nullptr) return known;
    if (members_.full()) {
        const auto evicted = members_.evict(now, config_.peer_timeout);
        if (evicted == nullptr) return nullptr;
        // A member that left regularly, with all its messages taken, is no loss.
        if (evicted->incoming && !(evicted->leaving && !evicted->incoming->ready()))
            host_.lost(*evicted, Loss::silent);
        trim();
    }
    Member& added = members_.add(id, place, now);
    // At the beginning the new member may refer to a join that this member has sent to the whole group. Later
    // the member may have been here before and been forgotten: its older packets do not count.
    added.answers_from = now < meets_until_ ? 1 : proof_.last_serial() + 1;
    return &added;
}

Header Protocol::introduction(Kind kind, MemberId to) const {
    Header one = header(kind, to);
    one.flags = static_cast<std::uint8_t>((config_.sends ? kSends : 0) | (config_.receives ? kReceives : 0));
    one.size = static_cast<std::uint16_t>(config_.payload);
    one.number = outgoing_.next();
    one.oldest = config_.room;
    return one;
}

void Protocol::send_join(MemberId to, const Place& place, Nanoseconds now) {
    flush(now);
    send_packet(introduction(Kind::join, to), place);
}

void Protocol::welcome(Member& member) {
    Header one = introduction(Kind::welcome, member.id);
    if (!member.answered) one.flags |= kAnswer;
    if (member.receives) one.number = member.start;
    std::array<std::byte, kEchoBytes> echo;
    wire::put(echo.data(), member.introduced);
    send_packet(one, member.place, echo);
}

bool Protocol::is_answer(const Member& member, const Header& header, Bytes body) const {
    if (header.kind != Kind::welcome || body.size() < kEchoBytes) return false;
    const auto echo = wire::get<std::uint64_t>(body.data());
    return echo >= member.answers_from && echo <= proof_.last_serial();
}

// Processes a join or a welcome, which name the roles of the other member and the number of its first packet
// for this member.
void Protocol::on_introduction(Member& member, const Header& header, Bytes body, const Place& source,
                               Nanoseconds now) {
    if (member.leaving) return;
    member.last_received = now;
    member.introduced = header.serial;
    if (!member.answered) {
        member.place = source;
        member.answered = is_answer(member, header, body);
        if (member.answered) member.request_timer.stop();
    }
    if (config_.sends && (header.flags & kReceives) != 0) add_receiver(member, header, now);
    if (config_.receives && (header.flags & kSends) != 0 && member.answered) add_sender(member, header);
    if (header.kind == Kind::join || (header.flags & kAnswer) != 0) welcome(member);
}

void Protocol::add_receiver(Member& member, const Header& header, Nanoseconds now) {
    const bool joins = header.kind == Kind::join;
    // The member would continue at its old position, but packets from there are gone.
    if (member.expelled && !joins) return send_packet(this->header(Kind::expelled, member.id), member.place);
    if (!member.receives) {
        // Closes the open packet, so that the receiver begins with a whole message.
        flush(now);
        member.receives = true;
        member.expelled = false;
        member.room = static_cast<std::size_t>(std::min<std::uint64_t>(header.oldest, config_.window));
        // A joining member begins with the next message. A member with an earlier number, from a join of this
        // member, gets the stored packets.
        member.start = member.acked = joins ? outgoing_.next() : outgoing_.oldest();
        member.moved = now;
    }
    limit_window();
}

void Protocol::add_sender(Member& member, const Header& header) {
    if (member.incoming || member.barred || header.size <= kPieceHeader || header.size > kMaxPayload) return;
    member.incoming = std::make_unique<Incoming>(config_.window, header.size, header.number, store_);
    member.reported = header.number;
}

void Protocol::repeat_requests(Nanoseconds now) {
    for (const auto& member : members_) {
        if (member->gone || now < member->request_timer.deadline()) continue;
        welcome(*member);
        member->request_timer.requested(now);
    }
}

}  // namespace mcastcoll::reliable
