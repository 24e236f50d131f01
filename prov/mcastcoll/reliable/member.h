// A known member of a group.
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
    // The member has answered a recent packet of this member. So the member exists now, and its packets are
    // no replay by a foreign host.
    bool answered = false;
    std::uint64_t answers_from = 0;  // lowest serial of this member's packets to which it can answer
    std::uint64_t introduced = 0;    // serial of the member's last join or welcome
    RequestTimer request_timer;
    wire::TakenNumbers serials;
    // A receiver of this member's data.
    bool receives = false;
    // A former receiver that was too slow.
    bool expelled = false;
    std::size_t room = 0;
    std::uint64_t start = 0, acked = 0;
    Nanoseconds moved{};
    // Data from this sender. Null: no sender, or the first packet is not known yet.
    std::unique_ptr<Incoming> incoming;
    std::uint64_t reported = 0, report_every = 1;
    bool report_wanted = false;
    GapTimer gap;
    // Messages of this sender are lost, which the host knows: no more of its messages are accepted.
    bool barred = false;
    bool leaving = false;  // all of its data has arrived or is not needed; the member does not come back
    bool gone = false;     // removed by the next remove_gone()
};

}  // namespace mcastcoll::reliable
