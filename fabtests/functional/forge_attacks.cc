#include "functional/forge_attacks.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include "functional/forge_listening.h"
#include "functional/forge_sender.h"
#include "functional/forge_spoofed.h"
#include "functional/multicast_sockets.h"
#include "support/stalled.h"
#include "wire/bytes.h"

namespace mcastcoll::fabtest {
namespace {

using wire::ByteString;

constexpr std::chrono::seconds kTimeout{120};
// Pause between turns: the members may have only two processors.
constexpr std::chrono::microseconds kPause{200};
constexpr uid_t kUnprivilegedUser = 65534;

bool goes_on(const Scene& scene) {
    return scene.board.words[kStopAttack].load() == 0 && !scene.board.abandoned;
}

// Repeats `turn` until the members stop the attack.
void attack(const Scene& scene, const std::function<unsigned()>& turn) {
    const auto begin = Clock::now();
    while (goes_on(scene) && Clock::now() - begin < kTimeout) {
        scene.board.words[kAttacks].fetch_add(turn());
        const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
        scene.board.words[kAttackMs] = static_cast<std::uint64_t>(time.count());
        std::this_thread::sleep_for(kPause);
    }
}

std::vector<pid_t> members_of(const Scene& scene) {
    std::vector<pid_t> processes;
    for (unsigned rank = 0; rank < kAttacked; ++rank) processes.push_back(scene.board.places[rank].pid);
    return processes;
}

void await_members(const Scene& scene) {
    const auto deadline = Clock::now() + kTimeout;
    while (scene.board.words[kReady].load() == 0 && goes_on(scene)) {
        if (Clock::now() > deadline) fail("no group of the members' came");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// A host of the network, which receives the join of the members' first group, and so has the ids of joins.
class Neighbour {
  public:
    explicit Neighbour(const Scene& scene) : scene_(scene) {
        scene.board.words[kListening] = 1;
        while (scene.board.words[kReady].load() == 0 && goes_on(scene)) {
            capture();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        capture();
        std::vector<ByteString> addresses;
        for (unsigned rank = 0; rank < kAttacked; ++rank) {
            const sockaddr_in address = service_address(scene.board, rank);
            const auto* at = reinterpret_cast<const std::byte*>(&address);
            addresses.emplace_back(at, at + sizeof address);
        }
        const std::uint64_t computed = wire::hash_addresses(addresses);
        if (!goes_on(scene)) return;
        lists_ = tap_.lists();
        CHECK(!lists_.empty());
        lists_.insert(computed);
        if ((lists_.size() == 1) == scene.keyed)
            fail("foreign hosts {} compute ids", scene.keyed ? "can" : "cannot");
    }

    void capture() { tap_.listen(scene_.board, kAttacked); }
    const std::vector<Wiretap::Captured>& captured() const { return tap_.captured(); }
    const std::set<std::uint64_t>& lists() const { return lists_; }
    // Sends to one member with the address of another. With a key, the message carries a tag, but not a valid
    // one.
    void say(ByteString message, unsigned from, unsigned to) {
        if (scene_.keyed) message.resize(message.size() + wire::kTagBytes, kForgedByte);
        say_exactly(message, service_address(scene_.board, from), service_address(scene_.board, to));
    }
    void say_exactly(Bytes message, const sockaddr_in& from, const sockaddr_in& to) {
        raw_.send(message, from, to);
    }

  private:
    const Scene& scene_;
    Wiretap tap_;
    RawSender raw_;
    std::set<std::uint64_t> lists_;
};

// An address at which the attacker waits for members to connect.
class Lure {
  public:
    Lure() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        const sockaddr_in anywhere = local_port(0);
        CHECK(bind(descriptor_, reinterpret_cast<const sockaddr*>(&anywhere), sizeof anywhere) == 0);
        CHECK(listen(descriptor_, 16) == 0);
    }
    ~Lure() { close(descriptor_); }
    Lure(const Lure&) = delete;
    Lure& operator=(const Lure&) = delete;
    ByteString address() const {
        sockaddr_in address{};
        socklen_t length = sizeof address;
        CHECK(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
        const auto* at = reinterpret_cast<const std::byte*>(&address);
        return {at, at + sizeof address};
    }
    // Returns whether a connection has arrived.
    bool caught() const {
        pollfd entry{descriptor_, POLLIN, 0};
        return poll(&entry, 1, 0) > 0;
    }

  private:
    int descriptor_;
};

wire::Hello hello_of(std::uint64_t list, std::uint32_t sequence, unsigned rank, const Lure& lure) {
    wire::Hello hello;
    hello.id = {list, sequence};
    hello.rank = Rank{rank};
    hello.members = kAttacked;
    hello.datagram_bytes = 1472;
    hello.window = 64;
    hello.address_family = 4;
    hello.room = 1;
    hello.gathered = 1;
    hello.peer.private_address = lure.address();
    return hello;
}

// The numbers of the members' next joins, relative to the number of the last join.
constexpr std::uint32_t kNext = 1, kMaxNext = 8;

// An attacker who is another user of the members' host. A real attacker would try every port in the kernel's
// tables; this attacker takes only the members' ports, because unrelated programs may run here.
class LocalUser {
  public:
    explicit LocalUser(const Scene& scene) {
        scene.board.words[kListening] = 1;
        await_members(scene);
        if (!goes_on(scene)) return;
        const std::vector<pid_t> processes = members_of(scene);
        const std::vector<sockaddr_in> listeners = listeners_of(processes);
        const std::vector<sockaddr_in> groups = multicast_sockets_of(processes);
        CHECK(setgroups(0, nullptr) == 0 && setgid(kUnprivilegedUser) == 0 && setuid(kUnprivilegedUser) == 0);
        ear_.emplace(groups);
        sender_.emplace(scene.options);
        for (const sockaddr_in& listener : listeners) peers_.push_back(sender_->peer(listener));
        CHECK(peers_.size() >= kAttacked);
    }
    const std::optional<Eavesdropper::Captured>& captured() { return ear_->latest(); }
    unsigned send_to_all(Bytes message) {
        unsigned taken = 0;
        for (const fi_addr_t peer : peers_) taken += sender_->send(peer, message);
        return taken;
    }

  private:
    std::optional<Eavesdropper> ear_;
    std::optional<Sender> sender_;
    std::vector<fi_addr_t> peers_;
};

// A message with the key and the epoch of the members' group. Its number and tag are copied from a genuine
// packet.
ByteString message_of(const wire::HeaderBytes& captured, const wire::Header& header, Bytes payload,
                      bool keyed) {
    wire::HeaderBytes bytes;
    wire::encode(header, payload, bytes, keyed ? wire::Checksum::none : wire::Checksum::crc32c);
    if (keyed)
        std::copy(captured.begin() + wire::kNumberOffset, captured.end(),
                  bytes.begin() + wire::kNumberOffset);
    ByteString message(bytes.begin(), bytes.end());
    message.insert(message.end(), payload.begin(), payload.end());
    return message;
}

void send_messages(const Scene& scene, const std::function<void(wire::Header&)>& change, Bytes payload) {
    LocalUser user(scene);
    attack(scene, [&]() -> unsigned {
        const auto& captured = user.captured();
        if (!captured) return 0;
        unsigned sent = 0;
        for (std::uint64_t ahead = 2; ahead <= 16; ahead += 2) {  // every second operation is a barrier
            wire::Header next = captured->header;
            next.payload_bytes = static_cast<std::uint32_t>(payload.size());
            next.operation = operation_of(number_of(next.operation) + ahead);
            change(next);
            sent += user.send_to_all(message_of(captured->bytes, next, payload, scene.keyed));
        }
        return sent;
    });
}

}  // namespace

void forge_multicasts(const Scene& scene) {
    scene.board.words[kListening] = 1;
    await_members(scene);
    const std::vector<sockaddr_in> groups = multicast_sockets_of(members_of(scene));
    Eavesdropper ear(groups);
    const RawSender raw;
    const ByteString other(kForeseenBytes, kForgedByte);
    attack(scene, [&]() -> unsigned {
        const auto& captured = ear.latest();
        if (!captured) return 0;
        unsigned sent = 0;
        for (std::uint64_t ahead = 2; ahead <= 32; ahead += 2) {
            wire::Header next = captured->header;
            next.operation = operation_of(number_of(next.operation) + ahead);
            const ByteString packet = message_of(captured->bytes, next, other, scene.keyed);
            for (const sockaddr_in& group : groups) raw.send(packet, captured->from, group), ++sent;
        }
        return sent;
    });
}

void send_hellos_for_the_living(const Scene& scene) {
    Neighbour neighbour(scene);
    const Lure lure;
    attack(scene, [&] {
        unsigned said = 0;
        for (const std::uint64_t list : neighbour.lists())
            for (unsigned rank = 1; rank < kAttacked; ++rank, ++said)
                neighbour.say(wire::encode(hello_of(list, 0, rank, lure)), rank, 0);
        return said;
    });
    if (lure.caught()) scene.board.words[kHarm].fetch_add(1);
}

void send_hellos_for_later_joins(const Scene& scene) {
    Neighbour neighbour(scene);
    const Lure lure;
    attack(scene, [&] {
        unsigned said = 0;
        for (const std::uint64_t list : neighbour.lists())
            for (std::uint32_t next = kNext; next < kMaxNext; ++next)
                for (unsigned rank = 1; rank < kAttacked; ++rank, ++said)
                    neighbour.say(wire::encode(hello_of(list, next, rank, lure)), rank, 0);
        if (lure.caught()) scene.board.words[kHarm].fetch_add(1);
        return said;
    });
}

void abort_senders_of_hellos(const Scene& scene) {
    Neighbour neighbour(scene);
    attack(scene, [&] {
        unsigned said = 0;
        for (const std::uint64_t list : neighbour.lists())
            for (std::uint32_t next = kNext; next < kMaxNext; ++next)
                for (unsigned rank = 1; rank < kAttacked; ++rank, ++said)
                    neighbour.say(wire::encode(wire::Answer{wire::JoinKind::abort, {list, next}, ECONNRESET}),
                                  0, rank);
        return said;
    });
}

void repeat_hellos(const Scene& scene) {
    Neighbour neighbour(scene);
    const std::vector<Wiretap::Captured> captured = neighbour.captured();
    attack(scene, [&] {
        for (const Wiretap::Captured& one : captured) neighbour.say_exactly(one.message, one.from, one.to);
        return static_cast<unsigned>(captured.size());
    });
}

void send_outcome_messages(const Scene& scene) {
    std::set<std::uint64_t> lists;
    {
        // The local user gets the ids of joins from an attacker on the network, who has received them.
        const Neighbour neighbour(scene);
        lists = neighbour.lists();
    }
    LocalUser user(scene);
    attack(scene, [&] {
        unsigned sent = 0;
        for (const std::uint64_t list : lists)
            for (ByteString message :
                 {wire::encode(wire::Answer{wire::JoinKind::abort, {list, 0}, ECONNRESET}),
                  wire::encode(wire::Ended{{list, 0}, ECONNRESET, Rank{2}})}) {
                if (scene.keyed) message.resize(message.size() + wire::kTagBytes, kForgedByte);
                sent += user.send_to_all(message);
            }
        return sent;
    });
}

void send_foreseen_data(const Scene& scene) {
    const ByteString other(kForeseenBytes, kForgedByte);
    send_messages(
        scene,
        [](wire::Header& header) {
            header.kind = wire::Kind::data;
            header.fragment = FragmentIndex{0};
            header.total = kForeseenBytes;
        },
        other);
}

void send_failures(const Scene& scene) {
    send_messages(scene,
                  [](wire::Header& header) {
                      header.kind = wire::Kind::fail;
                      header.sender = Rank{1};
                      header.fragment = FragmentIndex{2};
                      header.total = ECONNRESET;
                  },
                  {});
}

void send_pongs(const Scene& scene) {
    send_messages(scene,
                  [](wire::Header& header) {
                      header.kind = wire::Kind::pong;
                      header.sender = Rank{1};
                      header.total = 1;
                  },
                  {});
}

void watch_names(const Scene& scene) {
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(watch >= 0 && inotify_add_watch(watch, "/dev/shm", IN_CREATE) >= 0);
    scene.board.words[kListening] = 1;
    LocalUser user(scene);
    while (goes_on(scene) && !user.captured()) std::this_thread::sleep_for(kPause);
    if (!goes_on(scene)) fail("no packet of the members was captured");
    const wire::Header& captured = user.captured()->header;
    alignas(inotify_event) char events[65536];
    std::string names;
    for (ssize_t got = 0; (got = read(watch, events, sizeof events)) > 0;)
        for (ssize_t at = 0; at < got;) {
            const auto* event = reinterpret_cast<const inotify_event*>(events + at);
            if (event->len > 0) {
                names += std::string(event->name) + "\n";
                scene.board.words[kAttacks].fetch_add(1);
            }
            at += static_cast<ssize_t>(sizeof *event + event->len);
        }
    close(watch);
    if (names.find("mcastcoll-") == std::string::npos) fail("the members share no memory");
    for (const std::string& number : {fmt::format("{:x}", static_cast<std::uint64_t>(captured.key)),
                                      fmt::format("{:x}", static_cast<std::uint32_t>(captured.epoch))})
        if (names.find(number) != std::string::npos) scene.board.words[kHarm].fetch_add(1);
    scene.board.words[kAttackMs] = 1;
}

// Opens more connections than a member has receives. Connections that members close are opened again.
void stall_messages(const Scene& scene) {
    constexpr std::size_t kForEach = 70;
    struct Stalled {
        FileDescriptor connection;
        bool begun = false;
    };
    scene.board.words[kListening] = 1;
    await_members(scene);
    std::vector<sockaddr_in> listeners = listeners_of(members_of(scene));
    // Leaves out the listeners of the applications' own endpoints, which belong to the inner provider.
    for (unsigned rank = 0; rank < kAttacked; ++rank)
        std::erase_if(listeners, [port = service_address(scene.board, rank).sin_port](const auto& listener) {
            return listener.sin_port == port;
        });
    std::vector<Stalled> all(listeners.size() * kForEach);
    attack(scene, [&] {
        unsigned begun = 0;
        for (std::size_t i = 0; i < all.size() && goes_on(scene); ++i) {
            Stalled& one = all[i];
            std::byte answer;
            const bool there = one.connection.valid();
            const ssize_t got = there ? recv(one.connection.get(), &answer, 1, MSG_DONTWAIT | MSG_PEEK) : 0;
            if (got == 0 || (got < 0 && errno != EAGAIN))
                one = {connect_foreign(listeners[i / kForEach], "127.0.0.2",
                                       static_cast<std::uint16_t>(1000 + i % kForEach))};
            if (!one.begun && one.connection.valid()) begun += one.begun = begin_message(one.connection);
        }
        return begun;
    });
}

}  // namespace mcastcoll::fabtest
