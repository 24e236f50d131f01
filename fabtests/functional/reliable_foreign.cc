#include "functional/reliable_foreign.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "reliable/packet.h"
#include "support/failure.h"

namespace mcastcoll::fabtest {
namespace {

using Packet = std::vector<std::byte>;

constexpr unsigned kSenders = 64;
constexpr std::uint64_t kAhead = 2000;
constexpr std::size_t kPayload = 1000;

class ForeignSender {
  public:
    ForeignSender(Board& board, const sockaddr_in& group, AssaultWords words)
        : board_(board),
          group_(group),
          words_(words),
          socket_(open(0)),
          listener_(open(group.sin_addr.s_addr)) {
        const in_addr loopback{htonl(INADDR_LOOPBACK)};
        const ip_mreq membership{group.sin_addr, loopback};
        CHECK(setsockopt(socket_, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) == 0);
        CHECK(setsockopt(listener_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership) == 0);
    }
    ~ForeignSender() {
        close(socket_);
        close(listener_);
    }
    ForeignSender(const ForeignSender&) = delete;
    ForeignSender& operator=(const ForeignSender&) = delete;

    void run() {
        for (;;) {
            const Phase phase{board_.words[words_.phase].load()};
            if (phase == Phase::over || board_.abandoned) return;
            listen();
            if (!captured_.empty()) act(phase);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

  private:
    int open(in_addr_t address) const {
        const int made = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK(made >= 0);
        const int one = 1;
        CHECK(setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_addr.s_addr = address != 0 ? address : htonl(INADDR_LOOPBACK);
        own.sin_port = address != 0 ? group_.sin_port : 0;
        CHECK(bind(made, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
        return made;
    }

    // Reads the group id and the members' ids from members' packets.
    void listen() {
        std::byte bytes[65536];
        for (int i = 0; i < 20; ++i) {
            const ssize_t got = recv(listener_, bytes, sizeof bytes, 0);
            if (got <= 0) return;
            const Bytes packet(bytes, static_cast<std::size_t>(got));
            const auto header = reliable::decode(packet);
            if (!header.ok() ||
                static_cast<std::uint64_t>(header.value().from) < kFirstUnknownId + kUnknownIds)
                continue;
            if (captured_.size() < 256)
                captured_.emplace_back(packet.begin(), packet.end());
            else
                captured_[random_() % captured_.size()].assign(packet.begin(), packet.end());
        }
    }

    void act(Phase phase) {
        const auto now = std::chrono::steady_clock::now();
        switch (phase) {
            case Phase::rare_joins:
                if (now - joined_ < std::chrono::seconds(1)) return;
                joined_ = now;
                return join(reliable::kReceives, kFirstUnknownId + joins_++ % kUnknownIds);
            case Phase::many_joins:
                return join(reliable::kReceives | reliable::kSends, kFirstUnknownId + joins_++ % kUnknownIds);
            case Phase::senders:
                for (unsigned i = 0; i < kSenders; ++i) {
                    if (ahead_ % 64 == 0) join(reliable::kSends, kFirstUnknownId + i);
                    data(kFirstUnknownId + i, 1 + ahead_ % kAhead);
                }
                ++ahead_;
                return;
            case Phase::forged:
                for (int i = 0; i < 10; ++i) {
                    Packet packet = captured_[random_() % captured_.size()];
                    if (i % 2 == 0) packet[random_() % packet.size()] ^= std::byte{1};
                    send(packet);
                }
                return;
            case Phase::over:
                return;
        }
    }

    reliable::Header header(reliable::Kind kind, std::uint64_t from) const {
        const auto known = reliable::decode(captured_.front());
        return {.kind = kind, .group = known.value().group, .from = reliable::MemberId{from}};
    }
    void join(std::uint8_t does, std::uint64_t from) {
        reliable::Header one = header(reliable::Kind::join, from);
        one.flags = does;
        one.size = kPayload;
        one.oldest = 1;
        const auto bytes = reliable::encode(one);
        send({bytes.begin(), bytes.end()});
    }
    void data(std::uint64_t from, std::uint64_t number) {
        reliable::Header one = header(reliable::Kind::data, from);
        one.number = number;
        const auto bytes = reliable::encode(one);
        Packet packet(bytes.begin(), bytes.end());
        packet.resize(reliable::kHeaderBytes + kPayload);
        send(packet);
    }
    void send(const Packet& packet) {
        sendto(socket_, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&group_),
               sizeof group_);
        board_.words[words_.thrown].fetch_add(1);
    }

    static constexpr std::uint64_t kFirstUnknownId = 2, kUnknownIds = 1'000'000;
    Board& board_;
    const sockaddr_in group_;
    const AssaultWords words_;
    const int socket_, listener_;
    std::mt19937_64 random_{1};
    std::vector<Packet> captured_;
    std::chrono::steady_clock::time_point joined_{};
    std::uint64_t joins_ = 0, ahead_ = 0;
};

}  // namespace

void assail(Board& board, const sockaddr_in& group, AssaultWords words) {
    ForeignSender(board, group, words).run();
}

}  // namespace mcastcoll::fabtest
