#include "functional/forge_foreign.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "functional/forge_sender.h"
#include "transport/rendezvous.h"
#include "wire/bytes.h"
#include "wire/join.h"

namespace mcastcoll::fabtest {
namespace {

using wire::ByteString;

// Numbers of hellos and related messages to send; a member reads 32 datagrams at once.
constexpr std::uint64_t kHellos = 600;
constexpr std::uint64_t kEchoes = 2000;
constexpr std::size_t kLures = 200;
constexpr std::chrono::seconds kTimeout{60};

class Descriptor {
  public:
    explicit Descriptor(int descriptor) : descriptor_(descriptor) { CHECK(descriptor_ >= 0); }
    Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    int get() const { return descriptor_; }

  private:
    int descriptor_;
};

std::uint16_t bound_port(const Descriptor& socket) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    CHECK(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    return ntohs(address.sin_port);
}

bool await(Board& board, std::size_t word) {
    const auto deadline = Clock::now() + kTimeout;
    while (board.words[word].load() == 0 && !board.abandoned && Clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return board.words[word].load() != 0;
}

sockaddr_in address_of(const Board& board, unsigned rank) {
    sockaddr_in address{};
    std::memcpy(&address, board.places[rank].address.data(), sizeof address);
    CHECK(address.sin_family == AF_INET);
    return address;
}

ByteString bytes_of(const sockaddr_in& address) {
    const auto* at = reinterpret_cast<const std::byte*>(&address);
    return {at, at + sizeof address};
}

// Messages of a member in the join of the first group, in which every member takes part.
std::vector<ByteString> messages_of(const Board& board, unsigned members, unsigned rank) {
    std::vector<ByteString> list;
    for (unsigned i = 0; i < members; ++i) list.push_back(bytes_of(address_of(board, i)));
    const wire::JoinId id{wire::hash_addresses(list), 0};
    wire::Hello hello{.id = id, .rank = Rank{rank}, .members = members, .address_family = 4, .peer = {}};
    hello.peer.private_address = bytes_of(local_port(9));
    const wire::SurveyHead head{id, 0, Rank{rank}}, leader{id, 0, Rank{0}};
    return {encode(hello),
            encode(wire::Answer{wire::JoinKind::abort, id, ECONNRESET}),
            encode(wire::Echo{head, 7, false}),
            encode(wire::Echo{head, 7, true}),
            encode(wire::Survey{leader, {{Rank{rank}, 0}}}),
            encode(wire::Surveyed{head, {1000}})};
}

// Returns sockets at an address without a member, and at the member's rendezvous ports that it does not use.
std::vector<Descriptor> places_of(const sockaddr_in& member) {
    std::vector<Descriptor> places;
    for (const std::uint16_t port : transport::rendezvous_ports(ntohs(member.sin_port))) {
        Descriptor place(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        const sockaddr_in address = local_port(places.empty() ? 0 : port);
        if (bind(place.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
            places.push_back(std::move(place));
    }
    return places;
}

std::uint32_t checksum_of(const ByteString& bytes) {
    std::uint32_t crc = UINT32_MAX;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i >= 4 && i < 8) continue;
        crc ^= std::to_integer<std::uint32_t>(bytes[i]);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    }
    return ~crc;
}

// Returns an echo of version 2: magic, version, kind, checksum, address for the answer, a number, 0 for a
// request.
ByteString old_echo(const sockaddr_in& answer_to) {
    ByteString bytes(8);
    wire::put(bytes.data(), wire::kJoinMagic);
    bytes[2] = std::byte{2};
    bytes[3] = static_cast<std::byte>(wire::JoinKind::echo);
    const ByteString address = bytes_of(answer_to);
    bytes.push_back(static_cast<std::byte>(address.size()));
    bytes.insert(bytes.end(), address.begin(), address.end());
    bytes.resize(bytes.size() + 9);
    wire::put(bytes.data() + 4, checksum_of(bytes));
    return bytes;
}

}  // namespace

void send_hellos_as_members(Board& board, unsigned members, ForeignWords words) {
    if (!await(board, words.ready)) return;
    std::uint64_t answers = 0;
    std::vector<std::vector<Descriptor>> places;
    for (unsigned rank = 1; rank < members; ++rank) places.push_back(places_of(address_of(board, rank)));
    while (board.words[words.thrown].load() < kHellos && !board.abandoned) {
        for (unsigned rank = 1; rank < members; ++rank)
            for (const Descriptor& place : places[rank - 1]) {
                for (const ByteString& message : messages_of(board, members, rank))
                    for (unsigned to = 0; to < members; ++to) {
                        const sockaddr_in address = address_of(board, to);
                        sendto(place.get(), message.data(), message.size(), 0,
                               reinterpret_cast<const sockaddr*>(&address), sizeof address);
                    }
                board.words[words.thrown].fetch_add(1);
                std::byte answer[64];
                if (recv(place.get(), answer, sizeof answer, 0) > 0) ++answers;
            }
        // Paces the datagrams, so that members read every datagram.
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    board.words[words.done] = 1;
    if (answers > 0) fail("{} foreign datagrams were answered", answers);
}

void send_echoes(Board& board, const Options& options, unsigned members, ForeignWords words) {
    if (!await(board, words.ready)) return;
    std::vector<pid_t> processes;
    for (unsigned rank = 0; rank < members; ++rank) processes.push_back(board.places[rank].pid);
    std::vector<Descriptor> lures;
    std::vector<ByteString> echoes;
    for (std::size_t i = 0; i < kLures; ++i) {
        lures.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        const sockaddr_in anywhere = local_port(0);
        CHECK(bind(lures.back().get(), reinterpret_cast<const sockaddr*>(&anywhere), sizeof anywhere) == 0);
        CHECK(listen(lures.back().get(), 1) == 0);
        echoes.push_back(old_echo(local_port(bound_port(lures.back()))));
    }
    Sender sender(options);
    std::vector<fi_addr_t> peers;
    for (const sockaddr_in& listener : listeners_of(processes)) peers.push_back(sender.peer(listener));
    CHECK(peers.size() >= members);
    const auto deadline = Clock::now() + kTimeout;
    for (std::size_t turn = 0; board.words[words.thrown].load() < kEchoes && !board.abandoned; ++turn) {
        for (const fi_addr_t peer : peers)
            if (sender.send(peer, echoes[turn % echoes.size()])) board.words[words.thrown].fetch_add(1);
        if (Clock::now() > deadline) fail("only {} echoes were taken", board.words[words.thrown].load());
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    board.words[words.done] = 1;
    std::size_t caught = 0;
    for (const Descriptor& lure : lures) {
        pollfd entry{lure.get(), POLLIN, 0};
        caught += poll(&entry, 1, 0) > 0;
    }
    if (caught > 0) fail("members connected to {} addresses that a foreign host named", caught);
}

}  // namespace mcastcoll::fabtest
