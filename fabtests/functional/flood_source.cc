#include "functional/flood_source.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "functional/forge_listening.h"
#include "functional/forge_sender.h"
#include "functional/forge_spoofed.h"
#include "functional/multicast_sockets.h"

namespace mcastcoll::fabtest {
namespace {

using wire::ByteString;
constexpr unsigned kBatch = 32;

// Sends the same packets again and again, with any source address.
class Barrage {
  public:
    Barrage() : descriptor_(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW)) {
        CHECK(descriptor_ >= 0);
        const int bytes = 4 << 20;
        setsockopt(descriptor_, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
        for (const in_addr& own : interface_addresses())
            setsockopt(descriptor_, IPPROTO_IP, IP_MULTICAST_IF, &own, sizeof own);
    }
    ~Barrage() { close(descriptor_); }
    Barrage(const Barrage&) = delete;
    Barrage& operator=(const Barrage&) = delete;

    void add(Bytes payload, const sockaddr_in& from, const sockaddr_in& to) {
        packets_.push_back(raw_packet(payload, from, to));
        targets_.push_back(to);
    }
    unsigned send() {
        mmsghdr messages[kBatch] = {};
        iovec parts[kBatch];
        for (unsigned i = 0; i < kBatch; ++i) {
            const std::size_t which = next_++ % packets_.size();
            parts[i] = {packets_[which].data(), packets_[which].size()};
            messages[i].msg_hdr.msg_iov = &parts[i];
            messages[i].msg_hdr.msg_iovlen = 1;
            messages[i].msg_hdr.msg_name = &targets_[which];
            messages[i].msg_hdr.msg_namelen = sizeof targets_[which];
        }
        return static_cast<unsigned>(std::max(sendmmsg(descriptor_, messages, kBatch, 0), 0));
    }

  private:
    int descriptor_;
    std::vector<ByteString> packets_;
    std::vector<sockaddr_in> targets_;
    std::size_t next_ = 0;
};

class Source {
  public:
    Source(Board& board, const Options& options)
        : board_(board), words_(board.words), options_(options), ear_(groups()) {}

    void run() {
        while (words_[kFloodOver].load() == 0 && !board_.abandoned) {
            (void)ear_.latest();
            const std::uint64_t wanted = words_[kFlood].load();
            if (wanted == 0 || !ear_.latest()) {
                words_[kFlooding] = 0;
                std::this_thread::sleep_for(std::chrono::microseconds(200));
                continue;
            }
            const std::function<unsigned()> turn = prepare(Flood::of(wanted));
            words_[kFlooding] = wanted;
            const auto begin = Clock::now();
            std::uint64_t sent = 0;
            while (words_[kFlood].load() == wanted && words_[kFloodOver].load() == 0 && !board_.abandoned) {
                const std::chrono::duration<double> time = Clock::now() - begin;
                if (double(sent) > time.count() * double(words_[kFloodRate].load())) {
                    std::this_thread::sleep_for(std::chrono::microseconds(50));
                    continue;
                }
                const unsigned now = turn();
                sent += now;
                words_[kFloodSent].fetch_add(now);
            }
        }
    }

  private:
    std::vector<sockaddr_in> groups() const {
        std::vector<sockaddr_in> groups(words_[kFloodGroups].load());
        for (std::size_t i = 0; i < groups.size(); ++i) {
            groups[i].sin_family = AF_INET;
            groups[i].sin_addr.s_addr = static_cast<in_addr_t>(words_[kGroups + i].load() >> 16);
            groups[i].sin_port = static_cast<in_port_t>(words_[kGroups + i].load());
        }
        return groups;
    }
    sockaddr_in at(unsigned rank, std::size_t port_word) const {
        sockaddr_in address = service_address(board_, rank);
        address.sin_port = htons(static_cast<std::uint16_t>(words_[port_word].load()));
        return address;
    }
    static std::size_t sink_of(Victim victim) { return victim == Victim::unread ? kUnreadPort : kReadPort; }

    std::function<unsigned()> prepare(const Flood& flood) {
        if (flood.port == Port::messages) return prepare_messages(flood);
        auto barrage = std::make_shared<Barrage>();
        const bool members = flood.victim == Victim::members;
        if (flood.port == Port::multicast) {
            sockaddr_in sink = at(0, sink_of(flood.victim));
            inet_pton(AF_INET, kSinkGroup, &sink.sin_addr);
            barrage->add(packet(), ear_.latest()->from, members ? ear_.latest()->to : sink);
        } else {
            const bool known = flood.port == Port::service;
            for (unsigned i = 0; i < (known ? kFlooded : kUnknownLists); ++i) {
                const unsigned rank = i % kFlooded;
                barrage->add(hello_for(words_[kFloodList].load() + (known ? 0 : i + 1)),
                             service_address(board_, (rank + 1) % kFlooded),
                             members ? service_address(board_, rank) : at(rank, sink_of(flood.victim)));
            }
        }
        return [barrage] { return barrage->send(); };
    }

    std::function<unsigned()> prepare_messages(const Flood& flood) {
        if (flood.victim != Victim::members) return prepare_stream();
        if (!sender_) {
            const in_addr own = own_address();
            char text[INET_ADDRSTRLEN];
            sender_.emplace(options_, inet_ntop(AF_INET, &own, text, sizeof text));
            for (unsigned i = 0; i < 2 * kFlooded; ++i)
                if (words_[kPrivatePorts + i].load() != 0)
                    peers_.push_back(sender_->peer(at(i / 2, kPrivatePorts + i)));
        }
        ByteString message = packet();
        message[wire::kKindOffset] = static_cast<std::byte>(wire::Kind::data);
        return [this, message] {
            unsigned taken = 0;
            for (const fi_addr_t peer : peers_) taken += sender_->send(peer, message);
            return taken;
        };
    }

    // Sends the same number of bytes at the same rate to a process that drops the data.
    std::function<unsigned()> prepare_stream() {
        auto streams = std::make_shared<std::vector<int>>();
        for (unsigned rank = 0; rank < kFlooded; ++rank) {
            const int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            const sockaddr_in to = at(rank, kReadPort);
            CHECK(connect(stream, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
            const int on = 1;
            setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            streams->push_back(stream);
        }
        const std::shared_ptr<void> closes(nullptr, [streams](void*) {
            for (const int stream : *streams) close(stream);
        });
        return [streams, closes, message = packet()] {
            unsigned taken = 0;
            for (const int stream : *streams)
                taken += ::send(stream, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
            return taken;
        };
    }

    // Returns a packet with a member's header, but a different payload and an invalid tag.
    ByteString packet() {
        const Eavesdropper::Captured captured = *ear_.latest();
        ByteString bytes(captured.bytes.begin(), captured.bytes.end());
        bytes.resize(wire::kHeaderBytes + captured.header.payload_bytes, kForgedByte);
        bytes[wire::kTagOffset] ^= std::byte{1};
        return bytes;
    }
    static constexpr unsigned kUnknownLists = 20'000;  // more than a member stores
    static ByteString hello_for(std::uint64_t list) {
        wire::Hello hello;
        hello.id = {list, 0};
        hello.rank = Rank{1};
        hello.members = kFlooded;
        hello.address_family = 4;
        hello.peer.private_address = ByteString(16);
        ByteString message = wire::encode(hello);
        message.resize(message.size() + wire::kTagBytes, kForgedByte);
        return message;
    }
    static in_addr own_address() {
        in_addr own{htonl(INADDR_LOOPBACK)};
        for (const in_addr& address : interface_addresses()) own = address;
        return own;
    }

    Board& board_;
    decltype(Board::words)& words_;
    const Options& options_;
    Eavesdropper ear_;
    std::optional<Sender> sender_;
    std::vector<fi_addr_t> peers_;
};

}  // namespace

void flood(Board& board, const Options& options) {
    while (board.words[kFloodGroups].load() == 0 && !board.abandoned)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!board.abandoned) Source(board, options).run();
}

}  // namespace mcastcoll::fabtest
