// Distributes frames over the streams.
#include <algorithm>

#include "gateway/peer.h"

namespace mcastcoll::gateway {
namespace {

// A bulk frame is as long as a stream can send in this time, to bound the delay of the frame's last piece,
// and longer than urgent frames.
constexpr std::uint64_t kFrameTime_ms = 5;
constexpr std::uint64_t kMinFrame = 2 * session::kUrgent;
constexpr std::size_t kLittle = 64 * 1024;
// How long the kernel's report of a window is used while there seems to be room.
constexpr Nanoseconds kBelieved = Nanoseconds::from_ms(20);
// Limit of writes beyond the windows, before other work.
constexpr unsigned kWritesInARow = 64;

// The median of the known rates; 0: no rate is known.
std::uint64_t usual_rate(std::span<Link*> links) {
    std::array<std::uint64_t, session::kMaxStreams> rates;
    std::size_t count = 0;
    for (Link* link : links)
        if (link->room().rate() > 0) rates[count++] = link->room().rate();
    if (count == 0) return 0;
    std::nth_element(rates.begin(), rates.begin() + count / 2, rates.begin() + count);
    return rates[count / 2];
}

}  // namespace

// A small frame is fastest on the stream with the fewest bytes in flight; on a tie the same stream as before,
// since acknowledgements then travel with replies.
bool Peer::write_all(Nanoseconds now) {
    std::array<Link*, session::kMaxStreams> links;
    std::size_t count = 0;
    for (auto& link : links_)
        if (link != nullptr && link->can_write()) links[count++] = link.get();
    const std::span<Link*> writable(links.data(), count);
    if (session_.outbound().bulk_waits()) return write_bulk(writable, now);
    std::stable_sort(writable.begin(), writable.end(), [&](const Link* left, const Link* right) {
        return session_.stream(left->stream()).in_flight() / kLittle <
               session_.stream(right->stream()).in_flight() / kLittle;
    });
    bool more = false;
    for (Link* link : writable) more = link->write(now, SIZE_MAX) || more;
    return more;
}

// Bulk goes where its last byte arrives soonest: into a free congestion window, since data beyond the window
// waits for a round trip, however idle other streams are. All of it goes to the first stream with enough
// room, otherwise to the streams in order of room, largest first. If no window has room, each stream gets a
// little more, so that acknowledgements find data to send.
bool Peer::write_bulk(std::span<Link*> links, Nanoseconds now) {
    for (Link* link : links)
        while (session_.stream(link->stream()).has_control() && link->can_write()) link->write(now, 1);
    const auto waiting = static_cast<std::int64_t>(session_.outbound().bulk_bytes());
    for (Link* link : links) {
        StreamRoom& room = link->room();
        if (now - room.looked() >= kBelieved || room.left() < waiting) room.look(link->descriptor(), now);
        if (waiting > 0 && room.left() >= waiting && link->can_write())
            return link->write(now, static_cast<std::size_t>(room.left()));
    }
    if (const std::uint64_t rate = usual_rate(links); rate > 0)
        frame_size_ = std::clamp<std::uint64_t>(rate * kFrameTime_ms / 1000, kMinFrame, session::kMaxPayload);
    std::sort(links.begin(), links.end(),
              [](Link* left, Link* right) { return left->room().left() > right->room().left(); });
    for (Link* link : links)
        if (const std::int64_t room = link->room().left(); room > 0)
            link->write(now, static_cast<std::size_t>(room));
    for (unsigned i = 0; i < kWritesInARow; ++i) {
        bool more = false;
        for (Link* link : links)
            if (link->can_write()) more = link->write(now, link->room().max_unsent()) || more;
        if (!more || !session_.outbound().bulk_waits()) return more;
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
