// An intruder on the same network: while broadcasts and barriers run, it throws garbage, truncated, replayed,
// altered and well-formed but forged datagrams at the groups' addresses and ports. Data stay exact, and the
// members' counters show that the datagrams came and were refused. Strangers who greet as if they were
// members, or name addresses to answer to, end no group and have nobody connect to where they say.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <random>
#include <thread>

#include "functional/forge_greetings.h"
#include "functional/forge_strangers.h"
#include "functional/multicast_sockets.h"
#include "support/program.h"
#include "support/statistics.h"
#include "wire/packet.h"

namespace {

using namespace mcastcoll;
using namespace mcastcoll::fabtest;

// Words of the board.
constexpr std::size_t kMembersDone = 0;
constexpr std::size_t kRoundsDone = 1;
constexpr std::size_t kThrown = 2;
constexpr std::size_t kCaptured = 3;
constexpr std::size_t kGroupsFound = 4;

// Enough of everything to be sure, few enough to leave the members some of two processors.
constexpr std::uint64_t kEnoughThrown = 20'000;
constexpr std::uint64_t kEnoughCaptured = 200;
constexpr unsigned kMaxRounds = 3000;

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
        // The members say by kRoundsDone that their groups are there.
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

    // Takes what the members send, for replaying; ours are known by their group key's pattern or are as good.
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

    // A valid packet's header with something else in it, and a checksum that is right again.
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
                break;  // only the data are others
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

// Rounds of broadcasts and barriers in two groups until enough has been thrown. Member 0 decides how far it
// goes.
void under_fire(Member& me) {
    me.stage("working under fire");
    const auto set = me.everybody();
    const auto one = me.join(set.get());
    const auto two = me.join(set.get());
    auto& words = me.board().words;
    const auto deadline = Clock::now() + std::chrono::seconds(me.options().timeout_s / 2);
    for (unsigned round = 0;; ++round) {
        const auto root = static_cast<unsigned>(round % me.size());
        const std::uint64_t seed = mix(me.options().seed, round);
        Buffer small(1 + seed % 3000), large(50'000 + seed % 50'000);
        small.poison(), large.poison();
        if (me.rank() == root) small.fill(seed), large.fill(seed + 1);
        Ticket& first = me.broadcast(*one, large.data(), large.size(), root);
        Ticket& second = me.broadcast(*two, small.data(), small.size(), root);
        Ticket& third = me.barrier(*two);
        me.finish(first), me.finish(second), me.finish(third);
        small.check(seed, "a small broadcast under fire");
        large.check(seed + 1, "a large broadcast under fire");
        if (me.rank() == 0) {
            const bool enough =
                words[kThrown].load() >= kEnoughThrown && words[kCaptured].load() >= kEnoughCaptured;
            words[kRoundsDone] = round + 1;
            if (enough || round >= kMaxRounds || Clock::now() > deadline) words[kMembersDone] = 1;
        }
        // Member 0 writes before it arrives here, so all read the same.
        me.meet();
        if (words[kMembersDone].load() != 0) break;
        me.meet();
    }
    if (me.rank() == 0) {
        if (words[kThrown].load() < 1000) fail("only {} datagrams were thrown", words[kThrown].load());
        if (words[kCaptured].load() == 0)
            fail("no genuine datagram was seen: the groups do not use multicast");
    }
}

// Groups come and go while greetings are thrown.
void joins_under_fire(Member& me) {
    auto& words = me.board().words;
    constexpr unsigned kRounds = 100;
    const auto set = me.everybody();
    for (unsigned round = 0; round < kRounds || words[kThrown].load() < 1000; ++round) {
        me.stage("joining under fire");
        const auto group = me.join(set.get());
        Buffer buffer(1000);
        buffer.poison();
        if (me.rank() == round % me.size()) buffer.fill(round);
        me.finish(me.broadcast(*group, buffer.data(), buffer.size(), round % me.size()));
        buffer.check(round, "a broadcast in a group that was joined under fire");
        // So that all see the same count.
        me.finish(me.barrier(*group));
        me.meet();
    }
    me.meet();
    if (me.rank() == 0)
        fmt::print("     thrown: {}, genuine ones captured: {}\n", words[kThrown].load(),
                   words[kCaptured].load());
    words[kMembersDone] = 1;
}

constexpr unsigned kStrangersHosts = 4;  // members of the cases with strangers
constexpr StrangerWords kStrangers{kRoundsDone, kThrown, kMembersDone};
// Of connections that a stranger makes to a member: those it listens at, and what serves each.
constexpr std::size_t kForStrangers = 16;

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator entries("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

// A group lives and works while strangers speak as if they were of it, and so does the next one.
void among_strangers(Member& me) {
    auto& words = me.board().words;
    const auto set = me.everybody();
    const auto group = me.join(set.get());
    const auto work = [&](const Join& in, unsigned round) {
        Buffer buffer(2000);
        buffer.poison();
        if (me.rank() == round % me.size()) buffer.fill(round);
        me.finish(me.broadcast(in, buffer.data(), buffer.size(), round % me.size()));
        buffer.check(round, "a broadcast among strangers");
        me.finish(me.barrier(in));
        while (me.read_event())
            ;
        CHECK(me.group_errors().empty());
    };
    for (unsigned round = 0; round < 20; ++round) work(*group, round);
    const std::size_t descriptors = open_descriptors();
    me.stage("among strangers");
    me.meet();
    words[kRoundsDone] = 1;
    for (unsigned round = 0;; ++round) {
        work(*group, round);
        const bool over = words[kMembersDone].load() != 0;
        me.meet();
        // Who has seen it before the others goes on until all have.
        if (over) words[kCaptured].fetch_add(1);
        me.meet();
        if (words[kCaptured].load() > 0) break;
        if (me.board().abandoned) fail("the stranger has failed");
    }
    me.idle(std::chrono::milliseconds(200));
    if (open_descriptors() > descriptors + kForStrangers)
        fail("{} descriptors are open instead of {}", open_descriptors(), descriptors);
    const auto next = me.join(set.get());
    work(*next, 1);
    me.meet();
}

void check_strangers(const std::string& prefix, const std::vector<const char*>& counted) {
    auto sum = take_statistics(prefix);
    if (sum.empty()) fail("no member has left its counters in {}.*", prefix);
    for (const char* name : counted) {
        fmt::print("     {}: {}\n", name, sum[name]);
        CHECK(sum[name] > 0);
    }
    CHECK(sum["operations_failed"] == 0);
}

// What was refused must have been counted, and nothing may have failed.
void check_counters(const std::string& prefix) {
    auto sum = take_statistics(prefix);
    if (sum.empty()) fail("no member has left its counters in {}.*", prefix);
    std::string text;
    for (const char* name : {"bad_packet", "bad_checksum", "foreign_group", "bad_sender",
                             "datagrams_received", "operations_failed"})
        text += fmt::format(" {} {}", name, sum[name]);
    fmt::print("     counters:{}\n", text);
    CHECK(sum["bad_packet"] > 0);
    CHECK(sum["bad_checksum"] > 0);
    CHECK(sum["bad_sender"] > 0);
    CHECK(sum["datagrams_received"] > 0);
    CHECK(sum["operations_failed"] == 0);
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_forge",
                    "Broadcasts and barriers while an intruder throws forged datagrams at their groups");
    const std::string prefix = statistics_prefix("mcc-forge");
    program.add({.name = "forged, truncated, replayed and foreign datagrams",
                 .body = under_fire,
                 .environment = {{"FI_MCASTCOLL_STATS", prefix}},
                 .only_mcastcoll = true,
                 .outsider = [](Board& board, const Options& options) { Intruder(board, options).run(); },
                 .after = [prefix] { check_counters(prefix); }});
    program.add({.name = "forged and replayed greetings",
                 .body = joins_under_fire,
                 .only_mcastcoll = true,
                 .outsider = [](Board& board, const Options& options) {
                     throw_greetings(board, options.seed, kMembersDone, kThrown, kCaptured);
                 }});
    const auto add_strangers = [&](const char* name, auto outsider, std::vector<const char*> counted) {
        const std::string counters = statistics_prefix(std::string("mcc-") + counted.front());
        program.add({.name = name,
                     .body = among_strangers,
                     .members = kStrangersHosts,
                     .environment = {{"FI_MCASTCOLL_STATS", counters}},
                     .only_mcastcoll = true,
                     .outsider = outsider,
                     .after = [counters, counted] { check_strangers(counters, counted); }});
    };
    add_strangers("strangers greet for members of a live group",
                  [](Board& board, const Options&) { greet_as_members(board, kStrangersHosts, kStrangers); },
                  {"foreign_datagrams", "doubts"});
    add_strangers("a stranger's echoes name addresses",
                  [](Board& board, const Options& options) {
                      send_echoes(board, options, kStrangersHosts, kStrangers);
                  },
                  {"foreign_messages"});
    return program.run(argc, argv);
}
