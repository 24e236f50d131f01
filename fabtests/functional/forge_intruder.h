// An intruder on the members' network, which receives the members' multicasts and sends packets of its own.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "functional/multicast_sockets.h"
#include "support/program.h"
#include "wire/packet.h"

namespace mcastcoll::fabtest {

// Words of the board.
inline constexpr std::size_t kMembersDone = 0;
inline constexpr std::size_t kRoundsDone = 1;
inline constexpr std::size_t kThrown = 2;
inline constexpr std::size_t kCaptured = 3;
inline constexpr std::size_t kGroupsFound = 4;

class Socket {
  public:
    Socket() : descriptor_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        CHECK(descriptor_ >= 0);
    }
    ~Socket() { close(descriptor_); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    int get() const { return descriptor_; }
    template <typename T>
    bool set(int level, int name, const T& value) {
        return setsockopt(descriptor_, level, name, &value, sizeof value) == 0;
    }

  private:
    int descriptor_;
};

using Packet = std::vector<std::byte>;

class Intruder {
  public:
    Intruder(Board& board, const Options& options) : board_(board), random_(options.seed) {}

    void run() {
        if (!find_groups()) fail("found no multicast socket of the members");
        board_.words[kGroupsFound] = groups_.size();
        while (board_.words[kMembersDone].load() == 0 && !board_.abandoned) {
            capture();
            for (int i = 0; i < 20; ++i) throw_one();
            std::this_thread::sleep_for(std::chrono::microseconds(500));
        }
    }

  private:
    bool find_groups() {
        const auto deadline = Clock::now() + std::chrono::seconds(90);
        std::vector<pid_t> members;
        for (const auto& place : board_.places)
            if (place.pid != 0 && place.pid != getpid()) members.push_back(place.pid);
        // The members set kRoundsDone when their groups exist.
        while (board_.words[kRoundsDone].load() == 0) {
            if (Clock::now() > deadline || board_.abandoned) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        groups_ = multicast_sockets_of(members);
        for (const sockaddr_in& group : groups_) listen_to(group);
        for (const in_addr& address : interface_addresses()) {
            auto& sender = senders_.emplace_back(std::make_unique<Socket>());
            sender->set(IPPROTO_IP, IP_MULTICAST_IF, address);
        }
        return !groups_.empty();
    }

    void listen_to(const sockaddr_in& group) {
        auto listener = std::make_unique<Socket>();
        listener->set(SOL_SOCKET, SO_REUSEADDR, 1);
        if (bind(listener->get(), reinterpret_cast<const sockaddr*>(&group), sizeof group) != 0) return;
        for (const in_addr& address : interface_addresses()) {
            ip_mreq membership{};
            membership.imr_multiaddr = group.sin_addr;
            membership.imr_interface = address;
            listener->set(IPPROTO_IP, IP_ADD_MEMBERSHIP, membership);
        }
        listeners_.push_back(std::move(listener));
    }

    // Stores members' packets for replay. The intruder's own packets are recognized by their source; an
    // unrecognized packet may be replayed as well.
    void capture() {
        std::array<std::byte, 65536> bytes;
        for (const auto& listener : listeners_) {
            for (int i = 0; i < 50; ++i) {
                sockaddr_in source{};
                socklen_t length = sizeof source;
                const ssize_t got = recvfrom(listener->get(), bytes.data(), bytes.size(), 0,
                                             reinterpret_cast<sockaddr*>(&source), &length);
                if (got <= 0) break;
                if (is_own(source)) continue;
                const Bytes packet(bytes.data(), static_cast<std::size_t>(got));
                if (wire::decode(packet).refusal != wire::Refusal::none) continue;
                board_.words[kCaptured].fetch_add(1);
                if (captured_.size() < 256)
                    captured_.emplace_back(packet.begin(), packet.end());
                else
                    captured_[random_() % captured_.size()].assign(packet.begin(), packet.end());
            }
        }
    }

    bool is_own(const sockaddr_in& source) const {
        for (const auto& sender : senders_) {
            sockaddr_in own{};
            socklen_t length = sizeof own;
            if (getsockname(sender->get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
                own.sin_port == source.sin_port)
                return true;
        }
        return false;
    }

    Packet garbage() {
        Packet packet(random_() % 2000);
        for (std::byte& byte : packet) byte = static_cast<std::byte>(random_());
        return packet;
    }

    // Returns a valid packet with some fields of its header changed, and a correct checksum.
    Packet forged(const Packet& original) {
        const wire::Decoded decoded = wire::decode(original);
        wire::Header header = decoded.header;
        Packet payload(decoded.payload.begin(), decoded.payload.end());
        switch (random_() % 10) {
            case 0:
                header.key = static_cast<GroupKey>(random_());
                break;
            case 1:
                header.epoch = static_cast<Epoch>(index(header.epoch) + 1);
                break;
            case 2:
                header.sender = static_cast<Rank>(random_() % 8);
                break;
            case 3:
                header.sender = static_cast<Rank>(random_());
                break;
            case 4:
                header.operation = static_cast<OperationId>(number_of(header.operation) + random_() % 20);
                break;
            case 5:
                header.operation = static_cast<OperationId>(random_());
                break;
            case 6:
                header.fragment =
                    static_cast<FragmentIndex>(random_() % 2 ? random_() : index_of(header.fragment) + 1);
                break;
            case 7:
                header.total = random_() % 2 ? random_() : header.total + 1;
                break;
            case 8:
                header.kind = static_cast<wire::Kind>(1 + random_() % 4);
                break;
            default:
                break;  // only the payload differs
        }
        for (std::byte& byte : payload) byte ^= std::byte{0xff};
        if (random_() % 8 == 0) payload.resize(payload.size() / 2);
        header.payload_bytes = static_cast<std::uint32_t>(payload.size());
        wire::HeaderBytes head;
        wire::encode(header, payload, head);
        Packet packet(head.begin(), head.end());
        packet.insert(packet.end(), payload.begin(), payload.end());
        return packet;
    }

    static std::uint32_t index(Epoch epoch) { return static_cast<std::uint32_t>(epoch); }

    Packet next() {
        if (captured_.empty()) return garbage();
        Packet packet = captured_[random_() % captured_.size()];
        switch (random_() % 6) {
            case 0:
                return garbage();
            case 1:
                packet.resize(random_() % packet.size());
                return packet;  // truncated
            case 2:
                return packet;  // replayed
            case 3:
                packet[random_() % packet.size()] ^= static_cast<std::byte>(1 + random_() % 255);
                return packet;
            default:
                return forged(packet);
        }
    }

    void throw_one() {
        const Packet packet = next();
        const sockaddr_in& group = groups_[random_() % groups_.size()];
        for (const auto& sender : senders_)
            sendto(sender->get(), packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&group),
                   sizeof group);
        board_.words[kThrown].fetch_add(1);
    }

    Board& board_;
    std::mt19937_64 random_;
    std::vector<sockaddr_in> groups_;
    std::vector<std::unique_ptr<Socket>> listeners_, senders_;
    std::vector<Packet> captured_;
};

}  // namespace mcastcoll::fabtest
