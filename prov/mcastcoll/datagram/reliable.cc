#include "datagram/reliable.h"

#include <errno.h>
#include <linux/filter.h>

#include <algorithm>

#include "base/clock.h"
#include "base/system.h"
#include "datagram/sockets.h"

namespace mcastcoll::datagram {
namespace {

constexpr std::size_t kWindow = 2048;
// A larger payload would make the windows need much memory on networks with a large MTU (a loopback).
constexpr std::size_t kLargestPayload = 4096;
constexpr std::size_t kLargestMessage = 65536;
constexpr std::size_t kLargestPacket = 65536;  // of any member
constexpr unsigned kBatches = 4;               // batches read from one socket before the next socket's turn
// A busy sender reads received packets at this interval, which is much shorter than a join.
constexpr Nanoseconds kLookAgain = Nanoseconds::from_ms(1);
constexpr unsigned kMaxBehind = 64;
constexpr Nanoseconds kWarnAgain = Nanoseconds::from_ms(60'000);

reliable::Place place_of(const transport::SocketAddress& address) {
    // A fresh copy, because the kernel may have left different values in unused bytes.
    const transport::SocketAddress plain(address.address_bytes(), address.port(), address.scope());
    reliable::Place place;
    place.size = std::min(plain.bytes().size(), place.bytes.size());
    std::copy_n(plain.bytes().begin(), place.size, place.bytes.begin());
    return place;
}

transport::SocketAddress address_of(const reliable::Place& place) {
    auto address = transport::SocketAddress::from_bytes(Bytes(place.bytes).first(place.size));
    return address ? address.value() : transport::SocketAddress();
}

// The key for authenticating a group's packets: derived from the process's secret, for this group only.
std::optional<wire::Key> key_of(const transport::SocketAddress& group, const provider::Settings& settings) {
    if (!settings.key || settings.security == wire::Security::off) return {};
    const Bytes address = group.address_bytes();
    std::vector<std::byte> context(address.begin(), address.end());
    context.push_back(static_cast<std::byte>(group.port() >> 8));
    context.push_back(static_cast<std::byte>(group.port() & 0xff));
    return wire::derive(*settings.key, "multicast messages", context);
}

// Checks whether the requested security is available.
Result<void> check_security(const provider::Settings& settings) {
    if (settings.security == wire::Security::encrypt)
        return Error{FI_EOPNOTSUPP,
                     "FI_MCASTCOLL_SECURITY=encrypt: reliable multicast messages can be authenticated, but "
                     "not encrypted"};
    if (settings.munge && settings.security != wire::Security::off)
        return Error{FI_EOPNOTSUPP,
                     "FI_MCASTCOLL_KEY_FILE=munge: works for collectives only; reliable multicast messages "
                     "need a key file"};
    if (settings.security == wire::Security::authenticate && !settings.key)
        return Error{FI_ENOKEY, "FI_MCASTCOLL_SECURITY=authenticate needs FI_MCASTCOLL_KEY_FILE"};
    return {};
}

std::size_t payload_of(std::size_t largest_datagram) {
    return std::min(largest_datagram - reliable::kHeaderBytes, kLargestPayload);
}

// Makes the kernel drop copies of this member's own packets, and data packets if this member only sends. In
// the filter, offsets begin at the UDP header.
void leave_out(int socket, reliable::MemberId self, bool receives) {
    constexpr unsigned kUdpHeader = 8, kKind = kUdpHeader + 4, kFrom = kUdpHeader + 16, kAll = UINT32_MAX;
    const auto id = static_cast<std::uint64_t>(self);
    // Kind 0 does not exist.
    const std::uint32_t unwanted = receives ? 0 : static_cast<std::uint32_t>(reliable::Kind::data);
    std::array<sock_filter, 8> steps{{
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kKind),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unwanted, 5, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFrom),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(id >> 32), 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFrom + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(id), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, kAll),
        BPF_STMT(BPF_RET | BPF_K, 0),
    }};
    const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
    // If the filter cannot be attached, the packets are dropped later in user space.
    (void)::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

}  // namespace

std::size_t largest_message(const transport::Interface& interface, int family, fi_ep_type type) {
    const std::size_t datagram =
        transport::payload_for({.interface = interface, .family = family == AF_INET ? 4 : 6});
    return type == FI_EP_RDM ? std::min(kLargestMessage, kWindow / 4 * payload_of(datagram)) : datagram;
}

Reliable::Group::Group(Reliable& owner, const transport::SocketAddress& address, int socket, OnLost on_lost,
                       const reliable::Config& config)
    : reliable_(owner),
      address_(address),
      key_(config.group),
      socket_(socket),
      on_lost_(std::move(on_lost)),
      protocol_(config, *this, monotonic_now()) {
    reliable_.groups_.push_back(this);
}

Reliable::Group::~Group() {
    provider::succeeds([&] { protocol_.leave(monotonic_now()); });
    const reliable::Counters& done = protocol_.counters();
    provider::log_line(
        provider::Level::info,
        "left multicast group {}: packets: {} sent, {} repaired, {} received, {} duplicate, {} from unknown "
        "members; {} reports and {} heartbeats sent; receivers: {} expelled, {} not responding; packets "
        "refused: {} with an invalid tag, {} replayed, {} from another source address, {} reports of members "
        "not yet verified, {} for lack of memory",
        address_, done.sent, done.repaired, done.received, done.duplicates, done.foreign, done.reports,
        done.heartbeats, done.expelled, done.unresponsive, done.invalid_tag, done.replayed, done.other_source,
        done.unverified, done.no_room);
    for (auto& [member, partial] : partials_) reliable_.inbox_.give_back(partial.posted);
    std::erase(reliable_.groups_, this);
}

bool Reliable::Group::is_ready() const {
    return protocol_.joined(monotonic_now());
}

void Reliable::Group::look(std::size_t size) {
    if (monotonic_now() - reliable_.looked_at_ > kLookAgain || !protocol_.can_send(size))
        reliable_.progress();
}

int Reliable::Group::send(Pieces pieces, std::size_t size) {
    if (!reliable_.process_.is_here()) return -FI_EBADF;
    if (!protocol_.can_send(size)) return -FI_EAGAIN;
    protocol_.send(gather(pieces, reliable_.message_), monotonic_now());
    reliable_.keep_alarm();
    return 0;
}

void Reliable::Group::on_packet(const reliable::Header& header, Bytes packet,
                                const transport::SocketAddress& source) {
    const std::uint64_t before = protocol_.counters().invalid_tag;
    const Nanoseconds now = monotonic_now();
    protocol_.on_packet(header, packet, place_of(source), now);
    if (protocol_.counters().invalid_tag == before || now < warns_at_) return;
    warns_at_ = now + kWarnAgain;
    provider::log_line(
        provider::Level::warn,
        "multicast group {}: packets from {} are dropped because they have no valid authentication tag: the "
        "sender is not a member, or its FI_MCASTCOLL_KEY_FILE is missing or differs from the one here",
        address_, source);
}

// Returns false if there is no room in the socket's buffer or the network's queue. After any other error of
// the kernel, packets count as sent and as lost by the network.
bool Reliable::Group::multicast(Bytes packets, std::size_t unit) {
    if (!reliable_.process_.is_here()) return true;
    const int socket = reliable_.own_socket_;
    if (packets.size() > unit && reliable_.sends_rows_) {
        const int error = transmit(socket, packets, unit, address_);
        if (error != EINVAL && error != EIO && error != EOPNOTSUPP && error != EMSGSIZE)
            return !transport::is_full(error);
        reliable_.sends_rows_ = false;
    }
    bool any = false;
    for (; !packets.empty(); packets = packets.subspan(std::min(unit, packets.size()))) {
        const Bytes one = packets.first(std::min(unit, packets.size()));
        // If a part of the row was sent, the rest counts as lost by the network.
        if (transport::is_full(transmit(socket, one, one.size(), address_))) return any;
        any = true;
    }
    return true;
}

void Reliable::Group::send(const reliable::Place& to, Bytes packet) {
    if (!reliable_.process_.is_here()) return;
    // Packets refused by the kernel count as lost by the network.
    transmit(reliable_.own_socket_, packet, packet.size(), address_of(to));
}

bool Reliable::Group::deliver(const reliable::Member& from, std::uint8_t flags, Bytes piece) {
    auto partial = partials_.find(from.id);
    if ((flags & reliable::kFirst) != 0 && partial == partials_.end()) {
        Partial fresh;
        if (!reliable_.inbox_.begin(fresh.posted)) return false;
        partial = partials_.emplace(from.id, fresh).first;
    }
    // The message began before this member joined.
    if (partial == partials_.end()) return true;
    Partial& open = partial->second;
    scatter(open.posted.buffer(), open.length, piece);
    if ((flags & reliable::kLast) == 0) {
        open.length += piece.size();
        return true;
    }
    const std::size_t length = open.length + piece.size();
    if (!reliable_.inbox_.end(open.posted, {address_of(from.place), length, true})) return false;
    partials_.erase(partial);
    return true;
}

void Reliable::Group::lost(const reliable::Member& member, reliable::Loss how) {
    if (const auto partial = partials_.find(member.id); partial != partials_.end()) {
        reliable_.inbox_.give_back(partial->second.posted);
        partials_.erase(partial);
    }
    on_lost_(address_of(member.place), how);
}

Reliable::Reliable(const provider::Settings& settings, Inbox& inbox, int own_socket, std::size_t payload)
    : settings_(settings),
      inbox_(inbox),
      own_socket_(own_socket),
      payload_(payload),
      batch_(kLargestPacket, true),
      spoiler_(settings_.fault.seed) {}

Result<std::unique_ptr<Reliable>> Reliable::open(const Domain& domain, Inbox& inbox, int own_socket,
                                                 int family) {
    if (auto secure = check_security(domain.settings); !secure) return secure.error();
    const std::size_t largest = largest_message(domain.interface, family, FI_EP_DGRAM);
    if (largest <= reliable::kHeaderBytes)
        return Error{FI_EMSGSIZE, "datagrams on this interface are too small for reliable messages"};
    auto made =
        std::unique_ptr<Reliable>(new Reliable(domain.settings, inbox, own_socket, payload_of(largest)));
    if (auto opened = made->alarm_.open(); !opened) return opened.error();
    auto listening = inbox.receiver.listen(made->alarm_.descriptor(), false);
    if (!listening) return listening.error();
    return made;
}

bool Reliable::has_joined(const transport::SocketAddress& group) const {
    return std::any_of(groups_.begin(), groups_.end(),
                       [&](const Group* one) { return one->address_ == group; });
}

Result<std::unique_ptr<Reliable::Group>> Reliable::join(const transport::SocketAddress& group, int socket,
                                                        std::uint64_t directions, OnLost on_lost) {
    const bool receives = (directions & FI_RECV) != 0;
    std::uint64_t self = 0;
    if (auto drawn = kernel_random(std::as_writable_bytes(std::span(&self, 1))); !drawn) return drawn.error();
    reliable::Config config;
    config.self = static_cast<reliable::MemberId>(self | 1);
    config.group = stable_hash(group.address_bytes(), group.port());
    config.sends = (directions & FI_SEND) != 0;
    config.receives = receives;
    config.window = kWindow;
    config.payload = payload_;
    const auto buffer =
        transport::size_buffer(socket, 0, SO_RCVBUFFORCE, SO_RCVBUF);  // reads the present size
    config.room =
        buffer ? buffer.value() / transport::datagram_cost(reliable::kHeaderBytes + payload_) : kWindow;
    leave_out(socket, config.self, receives);
    config.key = key_of(group, settings_);
    config.peer_timeout = Nanoseconds::from_ms(settings_.peer_timeout_ms);
    auto joined = std::make_unique<Group>(*this, group, socket, std::move(on_lost), config);
    joined->protocol_.tick(monotonic_now());
    return joined;
}

void Reliable::progress() {
    if (!process_.is_here()) return;
    Nanoseconds now = monotonic_now();
    if (now >= armed_for_) {
        alarm_.set_alarm(kNever);
        armed_for_ = kNever;
    }
    bool all = drain(own_socket_, false);
    for (std::size_t i = 0; i < groups_.size(); ++i) all = drain(groups_[i]->socket_, true) && all;
    now = monotonic_now();
    if (all) looked_at_ = now;
    for (Group* group : groups_) group->protocol_.deliver();
    // Timers are not run while packets are unread, because a NAK for data that waits in a socket would be
    // wrong. A sender stops at the end of its window, so the wait is bounded; under a flood the timers run
    // every kMaxBehind turns.
    behind_ = all ? 0 : behind_ + 1;
    if (behind_ % kMaxBehind == 0)
        for (Group* group : groups_) group->protocol_.tick(now);
    keep_alarm();
}

void Reliable::arm() {
    if (!process_.is_here()) return;
    slept_on_ = true;
    for (Group* group : groups_) group->protocol_.flush(monotonic_now());
    keep_alarm();
}

// Sets the alarm even if no thread sleeps now: another thread may be asleep, and the end of a sleep is not
// reported.
void Reliable::keep_alarm() {
    if (!slept_on_ || !process_.is_here()) return;
    Nanoseconds soonest = kNever;
    for (Group* group : groups_) soonest = std::min(soonest, group->protocol_.next_deadline());
    // Waking too early does no harm.
    if (soonest == kNever || armed_for_ <= soonest) return;
    alarm_.set_alarm(soonest);
    armed_for_ = soonest;
}

// For tests: drops the fraction of multicasts given in FI_MCASTCOLL_FAULT.
bool Reliable::is_spoilt() {
    const double percent = settings_.fault.loss_percent;
    return percent > 0 && std::uniform_real_distribution<double>(0, 100)(spoiler_) < percent;
}

void Reliable::on_packet(Bytes packet, const transport::SocketAddress& source, bool multicast) {
    const auto header = reliable::decode(packet);
    if (!header || (multicast && is_spoilt())) return;
    for (Group* group : groups_) {
        if (group->key_ != header.value().group) continue;
        return group->on_packet(header.value(), packet, source);
    }
}

// Returns false if more packets may be waiting. After a failed read, for example for lack of memory, the next
// call tries again.
bool Reliable::drain(int socket, bool multicast) {
    const std::uint64_t errors = received_.receive_errors;
    const auto take = [&](Bytes packet, const transport::SocketAddress& source) {
        on_packet(packet, source, multicast);
    };
    for (unsigned batch = 0; batch < kBatches; ++batch)
        if (batch_.take(socket, take, received_) < transport::MulticastTransport::kBatch)
            return received_.receive_errors == errors;
    return false;
}

}  // namespace mcastcoll::datagram
