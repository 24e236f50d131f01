#include "functional/forge_hellos.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "wire/join.h"

namespace mcastcoll::fabtest {
namespace {

using wire::ByteString;

constexpr std::size_t kIpHeader = 20, kUdpHeader = 8;
constexpr std::size_t kMaxKept = 256;

class HelloForger {
  public:
    HelloForger(Board& board, std::uint64_t seed)
        : random_(seed),
          sender_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
          // Receives every IP packet of the host, if the process has the privilege.
          listener_(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP))) {
        CHECK(sender_ >= 0);
        for (const auto& place : board.places) {
            sockaddr_in address{};
            if (place.address_bytes.load() < sizeof address) continue;
            std::memcpy(&address, place.address.data(), sizeof address);
            if (address.sin_family == AF_INET) members_.push_back(address);
        }
    }
    ~HelloForger() {
        close(sender_);
        if (listener_ >= 0) close(listener_);
    }
    HelloForger(const HelloForger&) = delete;
    HelloForger& operator=(const HelloForger&) = delete;

    bool has_members() const { return !members_.empty(); }
    std::size_t captured() const { return kept_.size(); }
    void capture() {
        std::array<std::byte, 2048> packet;
        for (int i = 0; i < 200 && listener_ >= 0; ++i) {
            const ssize_t got = recv(listener_, packet.data(), packet.size(), 0);
            if (got < 0) return;
            const auto bytes = static_cast<std::size_t>(got);
            if (bytes < kIpHeader + kUdpHeader || packet[9] != std::byte{IPPROTO_UDP}) continue;
            const Bytes body(packet.data() + kIpHeader + kUdpHeader, bytes - kIpHeader - kUdpHeader);
            if (!wire::join_kind(body)) continue;
            if (kept_.size() == kMaxKept) kept_.erase(kept_.begin());
            kept_.emplace_back(body.begin(), body.end());
        }
    }
    void throw_one() {
        const ByteString packet = next();
        const sockaddr_in& to = members_[random_() % members_.size()];
        sendto(sender_, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }

  private:
    ByteString garbage(std::size_t max) {
        ByteString bytes(random_() % max);
        for (std::byte& one : bytes) one = static_cast<std::byte>(random_());
        return bytes;
    }
    // A hello of a join that no member called.
    ByteString invented() {
        const wire::JoinId id{random_(), static_cast<std::uint32_t>(random_() % 4)};
        switch (random_() % 4) {
            case 0: {
                wire::Hello hello{.id = id, .rank = Rank{1}, .members = 4, .peer = {}};
                hello.peer.private_address = garbage(40);
                hello.peer.watch_point = garbage(100);
                return encode(hello);
            }
            case 1:
                return encode(wire::Answer{wire::JoinKind::ack, id, 0});
            case 2:
                return encode(wire::Answer{wire::JoinKind::abort, id, 110});
            default:
                return encode(wire::Answer{wire::JoinKind::abort, id, 71},
                              static_cast<std::uint8_t>(random_()));
        }
    }
    ByteString next() {
        ByteString packet = kept_.empty() ? invented() : kept_[random_() % kept_.size()];
        switch (random_() % 5) {
            case 0:
                return garbage(1500);
            case 1:
                packet.resize(random_() % packet.size());
                return packet;
            case 2:
                packet[random_() % packet.size()] ^= static_cast<std::byte>(1 + random_() % 255);
                return packet;
            case 3:
                return packet;  // replayed
            default:
                return invented();
        }
    }

    std::mt19937_64 random_;
    const int sender_, listener_;
    std::vector<sockaddr_in> members_;
    std::vector<ByteString> kept_;
};

}  // namespace

void throw_hellos(Board& board, std::uint64_t seed, std::size_t done, std::size_t thrown,
                  std::size_t captured) {
    while (board.words[done].load() == 0 && !board.abandoned) {
        // Members publish their addresses when they start.
        HelloForger forger(board, seed++);
        while (forger.has_members() && board.words[done].load() == 0 && !board.abandoned) {
            forger.capture();
            for (int i = 0; i < 10; ++i) forger.throw_one();
            board.words[thrown].fetch_add(10);
            board.words[captured] = forger.captured();
            std::this_thread::sleep_for(std::chrono::microseconds(500));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace mcastcoll::fabtest
