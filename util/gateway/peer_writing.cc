// Which stream gets what.
#include <algorithm>

#include "gateway/peer.h"

namespace mcastcoll::gateway {
namespace {

// A frame is as long as a stream needs so much time for, so that none waits long for its last piece, and
// longer than what goes ahead of others.
constexpr std::uint64_t kFrameTime_ms = 5;
constexpr std::uint64_t kLeastFrame = 2 * trunk::kUrgent;
constexpr std::size_t kLittle = 64 * 1024;
// So long what the kernel said of a stream's window is believed while there seems to be room.
constexpr Nanoseconds kBelieved = Nanoseconds::from_ms(20);
// Writes beyond streams' windows, until it is others' turn.
constexpr unsigned kWritesInARow = 64;

// The median of the rates that are known; 0: none is.
std::uint64_t usual_rate(std::span<Link*> links) {
    std::array<std::uint64_t, trunk::kMaxStreams> rates;
    std::size_t count = 0;
    for (Link* link : links)
        if (link->room().rate() > 0) rates[count++] = link->room().rate();
    if (count == 0) return 0;
    std::nth_element(rates.begin(), rates.begin() + count / 2, rates.begin() + count);
    return rates[count / 2];
}

}  // namespace

// Where least is under way a small frame gets through soonest; the same stream again where that makes no
// difference, since acknowledgements then travel with what comes back.
bool Peer::write_all(Nanoseconds now) {
    std::array<Link*, trunk::kMaxStreams> links;
    std::size_t count = 0;
    for (auto& link : links_)
        if (link != nullptr && link->can_write()) links[count++] = link.get();
    const std::span<Link*> writable(links.data(), count);
    if (trunk_.outbound().bulk_waits()) return write_bulk(writable, now);
    std::stable_sort(writable.begin(), writable.end(), [&](const Link* left, const Link* right) {
        return trunk_.stream(left->stream()).in_flight() / kLittle <
               trunk_.stream(right->stream()).in_flight() / kLittle;
    });
    bool more = false;
    for (Link* link : writable) more = link->write(now, SIZE_MAX) || more;
    return more;
}

// Bulk goes where its last byte arrives soonest: into the room of a congestion window, since what does not
// fit waits for a round trip, however idle other streams are.  All into the first that has room for it, the
// largest first if none has; and only when no window has room left a little more to each, for its
// acknowledgements to find something to send.
bool Peer::write_bulk(std::span<Link*> links, Nanoseconds now) {
    for (Link* link : links)
        while (trunk_.stream(link->stream()).has_control() && link->can_write()) link->write(now, 1);
    const auto waiting = static_cast<std::int64_t>(trunk_.outbound().bulk_bytes());
    for (Link* link : links) {
        StreamRoom& room = link->room();
        if (now - room.looked() >= kBelieved || room.left() < waiting) room.look(link->descriptor(), now);
        if (waiting > 0 && room.left() >= waiting && link->can_write())
            return link->write(now, static_cast<std::size_t>(room.left()));
    }
    if (const std::uint64_t rate = usual_rate(links); rate > 0)
        frame_size_ = std::clamp<std::uint64_t>(rate * kFrameTime_ms / 1000, kLeastFrame, trunk::kMaxPayload);
    std::sort(links.begin(), links.end(),
              [](Link* left, Link* right) { return left->room().left() > right->room().left(); });
    for (Link* link : links)
        if (const std::int64_t room = link->room().left(); room > 0)
            link->write(now, static_cast<std::size_t>(room));
    for (unsigned i = 0; i < kWritesInARow; ++i) {
        bool more = false;
        for (Link* link : links)
            if (link->can_write()) more = link->write(now, link->room().most_unsent()) || more;
        if (!more || !trunk_.outbound().bulk_waits()) return more;
    }
    return true;
}

void Peer::look_at_links(Nanoseconds now) {
    for (auto& link : links_) {
        if (link == nullptr || !link->is_up()) continue;
        link->room().look(link->descriptor(), now);
        link->room().fit_buffers(link->descriptor());
    }
}

}  // namespace mcastcoll::gateway
