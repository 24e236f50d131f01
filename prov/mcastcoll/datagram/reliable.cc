#include "datagram/reliable.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/system.h"
#include "datagram/endpoint.h"
#include "datagram/sockets.h"
#include "transport/udp_socket.h"

namespace mcastcoll::ofi::datagram {
namespace {

constexpr std::size_t kWindow = 2048;
// Larger ones would make the windows' memory large where the network carries them (a loopback).
constexpr std::size_t kLargestPayload = 4096;
constexpr std::size_t kLargestMessage = 65536;
constexpr std::size_t kBatch = 32;
constexpr unsigned kBatches = 4;  // of one socket before the others' turn
// Rows of packets come as one where the kernel can. Not a power of two apart, lest all their beginnings share
// a cache set.
constexpr std::size_t kMostRow = 65536, kRowStride = kMostRow + 192;
// A sender that is busy looks at what comes as often as this: far more often than a join takes.
constexpr Nanoseconds kLookAgain = Nanoseconds::from_ms(1);
constexpr unsigned kMostBehind = 64;
constexpr std::size_t kMostAddresses = 4 * feed::Members::kMostMembers;

std::uint64_t key_of(const SocketAddress& group) {
    return stable_hash(group.address_bytes(), group.port());
}

std::size_t payload_of(std::size_t largest_datagram) {
    return std::min(largest_datagram - feed::kHeaderBytes, kLargestPayload);
}

}  // namespace

std::size_t reliable_message(std::size_t largest_datagram) {
    return std::min(kLargestMessage, kWindow / 4 * payload_of(largest_datagram));
}

class Reliable::Group final : public feed::Feed::Host {
  public:
    Group(Reliable& owner, const SocketAddress& group, int its_socket, const feed::Config& config)
        : address(group),
          key(config.group),
          socket(its_socket),
          protocol(config, *this, monotonic_now()),
          reliable_(owner) {}

    // Remembers where a member is.
    void note(feed::MemberId member, const SocketAddress& source) {
        if (addresses_.size() >= kMostAddresses) addresses_.clear();
        addresses_[member] = source;
    }
    void give_back_all() {
        for (auto& [member, partial] : partials_) reliable_.endpoint_.give_back(partial.posted);
        partials_.clear();
    }

    void tell_counters() const {
        const feed::FeedCounters& done = protocol.counters();
        log_line(Level::info,
                 "{}: left; packets sent {}, repaired {}, received {}, twice {}, of strangers {}; reports "
                 "{}, beats {}, expelled {}",
                 address, done.sent, done.repaired, done.received, done.duplicates, done.strays, done.reports,
                 done.beats, done.expelled);
    }

    const SocketAddress address;
    const std::uint64_t key;
    const int socket;
    feed::Feed protocol;

  private:
    // A message that has begun to arrive.
    struct Partial {
        PostedReceive posted;
        std::size_t length = 0;
    };

    bool multicast(Bytes packets, std::size_t unit) override {
        return reliable_.multicast(packets, unit, address);
    }
    void send(feed::MemberId to, Bytes packet) override {
        const auto found = addresses_.find(to);
        // What the kernel does not take is lost, like what the network loses.
        if (found != addresses_.end()) transmit(reliable_.own_socket_, packet, packet.size(), found->second);
    }
    bool deliver(feed::MemberId from, std::uint8_t flags, Bytes piece) override {
        auto partial = partials_.find(from);
        if ((flags & feed::kFirst) != 0 && partial == partials_.end()) {
            Partial fresh;
            if (!reliable_.endpoint_.begin_receive(fresh.posted)) return false;
            partial = partials_.emplace(from, fresh).first;
        }
        // Its beginning was before this member's.
        if (partial == partials_.end()) return true;
        Partial& open = partial->second;
        scatter(open.posted.buffer(), open.length, piece);
        if ((flags & feed::kLast) == 0) {
            open.length += piece.size();
            return true;
        }
        const Datagram message{where(from), open.length + piece.size(), true};
        if (!reliable_.endpoint_.end_receive(open.posted, message)) return false;
        partials_.erase(partial);
        return true;
    }
    void lost(feed::MemberId member, feed::Loss how) override {
        if (const auto partial = partials_.find(member); partial != partials_.end()) {
            reliable_.endpoint_.give_back(partial->second.posted);
            partials_.erase(partial);
        }
        reliable_.endpoint_.tell_lost(address, where(member), how);
    }
    SocketAddress where(feed::MemberId member) const {
        const auto found = addresses_.find(member);
        return found != addresses_.end() ? found->second : SocketAddress();
    }

    Reliable& reliable_;
    std::unordered_map<feed::MemberId, SocketAddress> addresses_;
    std::unordered_map<feed::MemberId, Partial> partials_;
};

Reliable::Reliable(Endpoint& endpoint, int own_socket, std::size_t payload)
    : endpoint_(endpoint),
      settings_(endpoint.parent().settings),
      own_socket_(own_socket),
      payload_(payload),
      packets_(std::make_unique_for_overwrite<std::byte[]>(kBatch * kRowStride)),
      spoiler_(settings_.fault.seed) {}

Reliable::~Reliable() = default;

Result<std::unique_ptr<Reliable>> Reliable::open(Endpoint& endpoint, int own_socket) {
    const std::size_t largest = largest_message(endpoint.parent().interface, endpoint.family(), FI_EP_DGRAM);
    if (largest <= feed::kHeaderBytes) return Error{FI_EMSGSIZE, "datagrams are too small"};
    auto made = std::unique_ptr<Reliable>(new Reliable(endpoint, own_socket, payload_of(largest)));
    made->timer_ = FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!made->timer_.valid()) return system_error(errno, "cannot make a timer");
    if (auto listening = endpoint.receiver().listen(made->timer_.get(), false); !listening)
        return listening.error();
    return made;
}

Reliable::Group* Reliable::find(const SocketAddress& group) const {
    for (const auto& one : groups_)
        if (one->address == group) return one.get();
    return nullptr;
}

Result<void> Reliable::join(const SocketAddress& group, int socket, bool sends, bool receives) {
    std::uint64_t self = 0;
    if (auto drawn = kernel_random(std::as_writable_bytes(std::span(&self, 1))); !drawn) return drawn;
    feed::Config config;
    config.self = static_cast<feed::MemberId>(self | 1);
    config.group = key_of(group);
    config.sends = sends;
    config.receives = receives;
    config.window = kWindow;
    config.payload = payload_;
    config.room = room_for(socket, feed::kHeaderBytes + payload_, kWindow);
    leave_out(socket, config.self, receives);
    config.peer_timeout = Nanoseconds::from_ms(settings_.peer_timeout_ms);
    groups_.push_back(std::make_unique<Group>(*this, group, socket, config));
    groups_.back()->protocol.tick(monotonic_now());
    return {};
}

bool Reliable::is_ready(const SocketAddress& group) const {
    const Group* found = find(group);
    return found != nullptr && found->protocol.joined(monotonic_now());
}

bool Reliable::is_settled(const SocketAddress& group) const {
    const Group* found = find(group);
    return found == nullptr || found->protocol.settled();
}

void Reliable::leave(const SocketAddress& group) {
    Group* found = find(group);
    if (found == nullptr) return;
    found->protocol.leave(monotonic_now());
    guard([&] { return found->tell_counters(), 0; });
    found->give_back_all();
    std::erase_if(groups_, [&](const auto& one) { return one.get() == found; });
}

// False: there is no room in the socket's buffer or the network's queue now. Whatever else the kernel says of
// packets, they count as sent, and as lost by the network.
bool Reliable::multicast(Bytes packets, std::size_t unit, const SocketAddress& group) {
    if (packets.size() > unit && sends_rows_) {
        const int error = transmit(own_socket_, packets, unit, group);
        if (error != EINVAL && error != EIO && error != EOPNOTSUPP && error != EMSGSIZE)
            return !is_full(error);
        sends_rows_ = false;
    }
    bool any = false;
    for (; !packets.empty(); packets = packets.subspan(std::min(unit, packets.size()))) {
        const Bytes one = packets.first(std::min(unit, packets.size()));
        // The rest of a row that has begun is lost.
        if (is_full(transmit(own_socket_, one, one.size(), group))) return any;
        any = true;
    }
    return true;
}

int Reliable::send(const SocketAddress& group, Pieces pieces, std::size_t size) {
    Group* found = find(group);
    if (found == nullptr) return -FI_EINVAL;
    // Who has joined before this call is to get it.
    Nanoseconds now = monotonic_now();
    if (now - looked_at_ > kLookAgain || !found->protocol.can_send(size)) {
        progress();
        now = monotonic_now();
    }
    if (!found->protocol.can_send(size)) return -FI_EAGAIN;
    found->protocol.send(gather(pieces, message_), now);
    return 0;
}

void Reliable::progress() {
    Nanoseconds now = monotonic_now();
    if (now >= armed_for_) {
        std::uint64_t expired;
        // Nothing to read: it has not expired, which is as well.
        (void)!::read(timer_.get(), &expired, sizeof expired);
        armed_for_ = kNever;
    }
    bool all = drain(own_socket_, false);
    for (std::size_t i = 0; i < groups_.size(); ++i) all = drain(groups_[i]->socket, true) && all;
    now = monotonic_now();
    if (all) looked_at_ = now;
    for (const auto& group : groups_) group->protocol.deliver();
    // What waits in a socket must not be asked for. A sender stops at the end of its window, so there is an
    // end; and whoever floods us does not keep us from our duties.
    behind_ = all ? 0 : behind_ + 1;
    if (behind_ % kMostBehind != 0) return;
    for (const auto& group : groups_) group->protocol.tick(now);
}

void Reliable::arm() {
    Nanoseconds soonest = kNever;
    for (const auto& group : groups_) {
        group->protocol.flush(monotonic_now());
        soonest = std::min(soonest, group->protocol.next_deadline());
    }
    // Waking too early does no harm.
    if (soonest == kNever || armed_for_ <= soonest) return;
    itimerspec when{};
    soonest = std::max(soonest, Nanoseconds{1});
    when.it_value.tv_sec = soonest.value / 1'000'000'000;
    when.it_value.tv_nsec = soonest.value % 1'000'000'000;
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    armed_for_ = soonest;
}

// For tests: a part of the multicasts is lost, as the variable says.
bool Reliable::is_spoilt() {
    const double percent = settings_.fault.loss_percent;
    return percent > 0 && std::uniform_real_distribution<double>(0, 100)(spoiler_) < percent;
}

void Reliable::on_packet(Bytes packet, const SocketAddress& source, bool multicast) {
    const auto header = feed::decode(packet);
    if (!header || (multicast && is_spoilt())) return;
    for (const auto& group : groups_) {
        if (group->key != header.value().group) continue;
        group->note(header.value().from, source);
        return group->protocol.on_packet(header.value(), packet.subspan(feed::kHeaderBytes), monotonic_now());
    }
}

// False: there may be more.
bool Reliable::drain(int socket, bool multicast) {
    constexpr std::size_t kControl = CMSG_SPACE(sizeof(int));
    alignas(cmsghdr) std::array<std::array<std::byte, kControl>, kBatch> controls;
    std::array<mmsghdr, kBatch> messages{};
    std::array<iovec, kBatch> pieces{};
    std::array<SocketAddress, kBatch> sources;
    for (unsigned batch = 0; batch < kBatches; ++batch) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            pieces[i] = {packets_.get() + i * kRowStride, kMostRow};
            msghdr& in = messages[i].msg_hdr;
            in = {};
            in.msg_name = sources[i].data();
            in.msg_namelen = SocketAddress::capacity();
            in.msg_iov = &pieces[i];
            in.msg_iovlen = 1;
            in.msg_control = controls[i].data();
            in.msg_controllen = kControl;
        }
        const int got = ::recvmmsg(socket, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
        for (int i = 0; i < got; ++i) {
            const auto at = static_cast<std::size_t>(i);
            mmsghdr& one = messages[at];
            if ((one.msg_hdr.msg_flags & MSG_TRUNC) != 0) continue;
            const std::size_t unit = run_unit(one.msg_hdr, std::max(one.msg_len, 1u));
            Bytes packets(packets_.get() + at * kRowStride, one.msg_len);
            for (; !packets.empty(); packets = packets.subspan(std::min(unit, packets.size())))
                on_packet(packets.first(std::min(unit, packets.size())), sources[at], multicast);
        }
        // A read that failed, for want of memory say, leaves what there is for the next one.
        if (got < 0) return errno == EAGAIN;
        if (got < static_cast<int>(kBatch)) return true;
    }
    return false;
}

}  // namespace mcastcoll::ofi::datagram
