// The state that the local member keeps of another member of its group.
#pragma once

#include <cstdint>
#include <memory>

#include "reliable/gap_timer.h"
#include "reliable/incoming.h"
#include "reliable/request_timer.h"
#include "wire/taken_numbers.h"

namespace mcastcoll::reliable {

struct Member {
    Member(MemberId its_id, const Place& its_place, Nanoseconds now)
        : id(its_id), place(its_place), last_received(now), request_timer(now) {}

    const MemberId id;
    Place place;  // fixed once the member has answered
    Nanoseconds last_received;
    // The member has answered a recent packet of the local member. So the member exists now, and its packets
    // are no replay by a foreign host.
    bool answered = false;
    std::uint64_t answers_from = 0;  // lowest serial of a local packet to which an answer counts
    std::uint64_t introduced = 0;    // serial of the member's last join or welcome
    RequestTimer request_timer;
    wire::TakenNumbers serials;
    // The member receives the local member's data.
    bool receives = false;
    // The member received the data until it was expelled as too slow.
    bool expelled = false;
    std::size_t room = 0;                // packets that fit in its receive buffer
    std::uint64_t start = 0, acked = 0;  // first packet for the member; it has acknowledged all below acked
    Nanoseconds moved{};                 // time of the last progress
    // Data from the member. Null: the member does not send, or the number of its first packet is not known
    // yet.
    std::unique_ptr<Incoming> incoming;
    std::uint64_t reported = 0, report_every = 1;  // last reported number; packets between two reports
    bool report_wanted = false;
    GapTimer gap;
    // The member is barred as a sender: messages from it were lost, and the host was informed. No more of its
    // messages are accepted.
    bool barred = false;
    bool leaving = false;  // all of its data has arrived or is not needed; the member does not come back
    bool gone = false;     // removed by the next remove_gone()
};

}  // namespace mcastcoll::reliable
