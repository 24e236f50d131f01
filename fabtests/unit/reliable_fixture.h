// Groups of reliable multicast messages on a simulated network that loses, delays and reorders packets,
// driven by a seed.
#pragma once

#include <criterion/criterion.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "reliable/protocol.h"

namespace mcastcoll::reliable_test {

using namespace mcastcoll::reliable;

inline constexpr std::int64_t kStepNs = 100'000;
inline constexpr Nanoseconds kPeerTimeout = Nanoseconds::from_ms(1000);

constexpr Nanoseconds ms(std::int64_t count) {
    return Nanoseconds::from_ms(count);
}

constexpr MemberId id(std::uint64_t number) {
    return static_cast<MemberId>(number);
}

// Returns the source address of the member with this id, unless a test sends from another address.
inline Place place(MemberId id) {
    Place place;
    std::memcpy(place.bytes.data(), &id, sizeof id);
    place.size = sizeof id;
    return place;
}

class Network;

// A member and its application, which checks that each sender's messages arrive in sequence.
class Node final : public Protocol::Host {
  public:
    Node(Network& network, MemberId id, const Config& config, Nanoseconds now)
        : id_(id), network_(network), protocol_(std::make_unique<Protocol>(config, *this, now)) {}

    Protocol& protocol() { return *protocol_; }
    MemberId id() const { return id_; }
    void receive(Bytes packet, const Place& source, Nanoseconds now) {
        awake = true;
        protocol_->on_packet(decode(packet).value(), packet, source, now);
    }
    void publish(Nanoseconds now) {
        // Some messages share a packet with others, some are split over several packets.
        std::vector<std::byte> message(sizeof sent + sent % 90, static_cast<std::byte>(sent));
        std::memcpy(message.data(), &sent, sizeof sent);
        protocol_->send(message, now);
        ++sent;
    }

    bool alive = true;    // false: it neither receives nor sends
    bool mute = false;    // true: its packets reach no member
    bool reading = true;  // false: the application reads no message, and the member makes no progress
    bool sleeps = false;  // true: it makes progress only when a packet has arrived or a timer is due
    bool awake = false;
    std::uint64_t sent = 0;
    std::map<MemberId, std::uint64_t> first, next;
    std::vector<Loss> losses;

  private:
    bool multicast(Bytes packets, std::size_t unit) override;
    void send(const Place& to, Bytes packet) override;
    bool deliver(const Member& member, std::uint8_t flags, Bytes piece) override {
        if (!reading) return false;
        const MemberId from = member.id;
        std::vector<std::byte>& message = partial_[from];
        cr_assert_eq((flags & kFirst) != 0, message.empty());
        message.insert(message.end(), piece.begin(), piece.end());
        if ((flags & kLast) == 0) return true;
        std::uint64_t number = 0;
        cr_assert(message.size() >= sizeof number);
        std::memcpy(&number, message.data(), sizeof number);
        cr_assert_eq(message.size(), sizeof number + number % 90);
        for (std::size_t i = sizeof number; i < message.size(); ++i)
            cr_assert_eq(message[i], static_cast<std::byte>(number));
        message.clear();
        first.try_emplace(from, number);
        std::uint64_t& expected = next.try_emplace(from, number).first->second;
        cr_assert_eq(number, expected, "message %lu came instead of %lu", number, expected);
        ++expected;
        return true;
    }
    void lost(const Member&, Loss how) override { losses.push_back(how); }

    const MemberId id_;
    Network& network_;
    std::unique_ptr<Protocol> protocol_;
    std::map<MemberId, std::vector<std::byte>> partial_;
};

class Network {
  public:
    Network(std::uint64_t seed, double loss) : random_(seed), loss_(loss) {}

    Node& add(bool sends, bool receives) {
        const auto id = static_cast<MemberId>(random_() | 1);
        Config config;
        config.self = id;
        config.group = 7;
        config.sends = sends;
        config.receives = receives;
        config.window = 128;
        config.payload = 64;
        config.peer_timeout = kPeerTimeout;
        config.key = key;
        nodes_.push_back(std::make_unique<Node>(*this, id, config, now()));
        return *nodes_.back();
    }
    std::optional<wire::Key> key{};   // key of the members that a test adds
    std::optional<int> lets_through;  // if set, the network delivers only this many more packets
    bool recording = false;
    std::vector<std::vector<std::byte>> recorded;  // every packet sent, lost or not

    Nanoseconds now() const { return {now_}; }
    void step() {
        const std::int64_t end = now_ + kStepNs;
        while (!packets_.empty() && packets_.begin()->first <= end) {
            const auto first = packets_.begin();
            now_ = std::max(now_, first->first);
            const auto [to, bytes] = std::move(first->second);
            packets_.erase(first);
            const auto header = decode(bytes);
            cr_assert(header.ok());
            if (to->alive) to->receive(bytes, place(header.value().from), now());
        }
        now_ = end;
        for (const auto& node : nodes_) {
            if (!node->alive || !node->reading) continue;
            const bool awake = std::exchange(node->awake, false) || node->protocol().next_deadline() <= now();
            if (node->sleeps && !awake) continue;
            node->protocol().deliver();
            node->protocol().tick(now());
        }
    }
    void run_ms(int ms) {
        for (std::int64_t end = now_ + ms * std::int64_t{1'000'000}; now_ < end;) step();
    }
    void put(const Node* from, MemberId to, Bytes packet) {
        if (from->mute || (lets_through && (*lets_through)-- <= 0)) return;
        if (recording) recorded.emplace_back(packet.begin(), packet.end());
        for (const auto& node : nodes_) {
            if (node.get() == from || !from->alive || (to != kAllMembers && node->id() != to)) continue;
            if (std::uniform_real_distribution<double>(0, 100)(random_) < loss_) continue;
            const std::int64_t at = now_ + 20'000 + static_cast<std::int64_t>(random_() % 60'000);
            packets_.emplace(at, std::pair(node.get(), std::vector(packet.begin(), packet.end())));
        }
    }

  private:
    std::mt19937_64 random_;
    const double loss_;
    std::int64_t now_ = 1'000'000'000;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::multimap<std::int64_t, std::pair<Node*, std::vector<std::byte>>> packets_;
};

inline bool Node::multicast(Bytes packets, std::size_t unit) {
    for (; !packets.empty(); packets = packets.subspan(std::min(unit, packets.size())))
        network_.put(this, kAllMembers, packets.first(std::min(unit, packets.size())));
    return true;
}
inline void Node::send(const Place& to, Bytes packet) {
    std::uint64_t number = 0;
    std::memcpy(&number, to.bytes.data(), sizeof number);
    network_.put(this, MemberId{number}, packet);
}

}  // namespace mcastcoll::reliable_test
