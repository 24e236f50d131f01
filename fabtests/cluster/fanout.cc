// One publisher and its subscribers, by reliable multicast messages or by a TCP connection to each
// subscriber: the same messages, checked byte by byte, so that both ways can be timed in turns. Members may
// run on hosts of the virtual cluster. With multicast a subscriber may join late, another stall, and a third
// be killed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdio>

#include "arguments/arguments.h"
#include "config.h"
#include "functional/datagram_node.h"
#include "support/host.h"
#include "support/launcher.h"

namespace {

using namespace mcastcoll::fabtest;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kRoom = 65536;
constexpr std::size_t kPosted = 64;
constexpr std::size_t kRead = 32;
constexpr int kNapMs = 100;
constexpr std::size_t kSamples = 10;

// Words of the board; the words after the last one hold resident memory, kSamples words for each process.
enum Word : std::size_t { kReady, kSent, kDone, kLateIsIn, kExpelled, kPort, kStart, kEnd, kMemory = 64 };

struct Workload {
    std::string kind = "multicast";  // or tcp, tcp-batch
    std::string cluster;             // members run on its hosts; empty: on this host
    std::uint64_t count = 100'000;
    std::size_t size = 64;  // 0: mixed
    unsigned subscribers = 8;
    unsigned timeout_s = 300;
    bool faults = false;
};

struct Head {
    std::uint64_t number, bytes;
};

std::size_t size_of(const Workload& workload, std::uint64_t number) {
    if (workload.size > 0) return std::max(workload.size, sizeof(Head));
    return sizeof(Head) + (number % 64 == 63 ? 7000 : mix(1, number) % 200);
}

void fill(const Workload& workload, std::uint64_t number, std::vector<std::byte>& message) {
    message.assign(size_of(workload, number), static_cast<std::byte>(number));
    const Head head{number, message.size()};
    std::memcpy(message.data(), &head, sizeof head);
}

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

std::uint64_t resident_kib() {
    long pages = 0, resident = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr) return 0;
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
    return static_cast<std::uint64_t>(resident) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

// What a member knows of the others: their ranks, and how to wait for them.
class Party {
  public:
    Party(const Workload& its_workload, Board& its_board, unsigned its_rank)
        : workload(its_workload), board(its_board), rank(its_rank) {}
    std::atomic<std::uint64_t>& word(std::size_t index) const { return board.words[index]; }
    void wait_for(const char* what, const std::function<bool()>& holds) const {
        const auto deadline = Clock::now() + std::chrono::seconds(workload.timeout_s);
        while (!holds()) {
            if (Clock::now() > deadline) fail("{} took too long", what);
            if (board.abandoned) fail("another member has failed");
        }
    }
    void sample(std::uint64_t number) {
        while (sampled_ < kSamples && number >= workload.count * (sampled_ + 1) / kSamples)
            word(kMemory + rank * kSamples + sampled_++) = resident_kib();
    }
    // Checks each message of the publisher, in order.
    void check(const std::byte* at, std::size_t bytes) {
        Head head{};
        CHECK(bytes >= sizeof head);
        std::memcpy(&head, at, sizeof head);
        if (!begun_) first_ = next_ = head.number, begun_ = true;
        if (head.number != next_) fail("message {} came instead of {}", head.number, next_);
        CHECK(bytes == head.bytes && bytes == size_of(workload, head.number));
        // All bytes equal the first, and the first is correct.
        const std::byte* filling = at + sizeof head;
        if (bytes > sizeof head && (*filling != static_cast<std::byte>(head.number) ||
                                    std::memcmp(filling, filling + 1, bytes - sizeof head - 1) != 0))
            fail("message {} is spoilt", head.number);
        sample(++next_);
    }
    std::uint64_t next() const { return next_; }
    std::uint64_t first() const { return first_; }

    const Workload& workload;
    Board& board;
    const unsigned rank;

  private:
    bool begun_ = false;
    std::uint64_t first_ = 0, next_ = 0, sampled_ = 0;
};

Wish wish_of(const Workload& workload) {
    Wish wish{.type = FI_EP_RDM};
    if (!workload.cluster.empty()) wish.node = "";
    return wish;
}

void publish_by_multicast(Party& me) {
    Options options;
    Node node(wish_of(me.workload), options);
    auto group_of_all = node.join(group(1), FI_SEND);
    const fi_addr_t to = fi_mc_addr(group_of_all.get());
    const unsigned early = me.workload.subscribers - (me.workload.faults ? 1 : 0);
    me.wait_for("the subscribers", [&] { return usleep(1000), me.word(kReady) == early; });
    me.word(kStart) = now_ns();
    std::vector<std::byte> message;
    fi_cq_tagged_entry entries[kRead];
    for (std::uint64_t number = 0; number < me.workload.count; ++number) {
        fill(me.workload, number, message);
        const iovec piece{message.data(), message.size()};
        const fi_msg one{&piece, nullptr, 1, to, nullptr, 0};
        me.wait_for("a message", [&] {
            const ssize_t rc = fi_sendmsg(node.ep.get(), &one, FI_MULTICAST | FI_INJECT);
            if (rc == 0) return true;
            CHECK(rc == -FI_EAGAIN);
            const ssize_t got = fi_cq_sread(node.cq.get(), entries, kRead, nullptr, kNapMs);
            CHECK(got > 0 || got == -FI_EAGAIN || got == -FI_EINTR);
            return false;
        });
        me.word(kSent) = number + 1;
        me.sample(number + 1);
    }
    const unsigned living = me.workload.subscribers - (me.workload.faults ? 2 : 0);
    me.wait_for("the subscribers' end", [&] {
        const ssize_t got = fi_cq_sread(node.cq.get(), entries, kRead, nullptr, kNapMs);
        CHECK(got > 0 || got == -FI_EAGAIN || got == -FI_EINTR);
        return me.word(kDone) == living;
    });
    // The stalled subscriber now reads that it was expelled.
    if (me.workload.faults)
        me.wait_for("the stalled one", [&] {
            fi_cq_sread(node.cq.get(), entries, kRead, nullptr, kNapMs);
            return me.word(kExpelled) != 0;
        });
}

// A subscriber's receive buffers, which are posted again after each message.
class Inbox {
  public:
    Inbox(Node& node, Party& party) : node_(node), party_(party), bytes_(kPosted * kRoom) {
        for (std::size_t i = 0; i < kPosted; ++i) post(bytes_.data() + i * kRoom);
    }
    void read() {
        fi_cq_tagged_entry entries[kRead];
        const ssize_t got = fi_cq_sread(node_.cq.get(), entries, kRead, nullptr, kNapMs);
        if (got == -FI_EAGAIN || got == -FI_EINTR) return;
        if (got < 0) fail("reading the queue: {}", fi_strerror(static_cast<int>(-got)));
        for (ssize_t i = 0; i < got; ++i) {
            auto* at = static_cast<std::byte*>(entries[i].op_context);
            party_.check(at, entries[i].len);
            post(at);
        }
    }

  private:
    void post(std::byte* at) {
        CHECK_RETURNS(0, fi_recv(node_.ep.get(), at, kRoom, nullptr, FI_ADDR_UNSPEC, at));
    }
    Node& node_;
    Party& party_;
    std::vector<std::byte> bytes_;
};

void subscribe_by_multicast(Party& me) {
    const bool stalls = me.workload.faults && me.rank == 1, dies = me.workload.faults && me.rank == 2;
    const bool late = me.workload.faults && me.rank == me.workload.subscribers;
    if (late)
        me.wait_for("half of the messages",
                    [&] { return usleep(1000), me.word(kSent) >= me.workload.count / 2; });
    Options options;
    Node node(wish_of(me.workload), options);
    Inbox inbox(node, me);
    auto mc = node.join(group(1), FI_RECV);
    const std::uint64_t sent = me.word(kSent);
    if (!late) ++me.word(kReady);
    fi_eq_err_entry error{};
    me.wait_for("all messages", [&] {
        inbox.read();
        if (dies && me.next() > me.workload.count / 4) raise(SIGKILL);
        if (!stalls && fi_eq_readerr(node.eq.get(), &error, 0) > 0)
            fail("the group is lost after {} messages: {}", me.next(), fi_strerror(error.err));
        return me.next() == me.workload.count || (stalls && me.next() > me.workload.count / 8);
    });
    if (late ? me.first() > sent : me.first() != 0) fail("begins with {}, joined at {}", me.first(), sent);
    if (!stalls) {
        if (++me.word(kDone) + (me.workload.faults ? 2 : 0) == me.workload.subscribers)
            me.word(kEnd) = now_ns();
        return;
    }
    me.wait_for("the others", [&] { return usleep(10'000), me.word(kEnd) != 0; });
    me.wait_for("being expelled", [&] { return inbox.read(), fi_eq_readerr(node.eq.get(), &error, 0) > 0; });
    CHECK(error.fid == &mc->fid && error.err == FI_ECONNABORTED && me.next() < me.workload.count);
    me.word(kExpelled) = 1;
}

void wait_for_socket(int socket, short what) {
    pollfd one{socket, what, 0};
    poll(&one, 1, kNapMs);
}

void write_all(Party& me, int socket, const iovec* pieces, std::size_t count) {
    std::vector<iovec> left(pieces, pieces + count);
    std::size_t at = 0;
    me.wait_for("a socket", [&] {
        while (at < left.size() && left[at].iov_len == 0) ++at;
        if (at == left.size()) return true;
        msghdr out{};
        out.msg_iov = &left[at];
        out.msg_iovlen = left.size() - at;
        ssize_t sent = sendmsg(socket, &out, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            CHECK(errno == EAGAIN || errno == EINTR);
            wait_for_socket(socket, POLLOUT);
            return false;
        }
        for (; sent > 0; ++at) {
            const std::size_t part = std::min(static_cast<std::size_t>(sent), left[at].iov_len);
            left[at].iov_base = static_cast<std::byte*>(left[at].iov_base) + part;
            left[at].iov_len -= part;
            sent -= static_cast<ssize_t>(part);
            if (left[at].iov_len > 0) break;
        }
        return false;
    });
}

void publish_by_tcp(Party& me, bool batch) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own{};
    socklen_t size = sizeof own;
    own.sin_family = AF_INET;
    CHECK(listener >= 0 && listen(listener, 64) == 0);
    CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size) == 0);
    me.word(kPort) = ntohs(own.sin_port);
    std::vector<int> peers;
    while (peers.size() < me.workload.subscribers) {
        const int peer = accept(listener, nullptr, nullptr);
        const int on = 1;
        CHECK(peer >= 0 && setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
        peers.push_back(peer);
    }
    me.wait_for("the subscribers", [&] { return usleep(1000), me.word(kReady) == me.workload.subscribers; });
    me.word(kStart) = now_ns();
    std::vector<std::byte> message, gathered;
    const auto send_to_all = [&](const std::vector<std::byte>& bytes) {
        const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
        for (const int peer : peers) write_all(me, peer, &piece, 1);
    };
    for (std::uint64_t number = 0; number < me.workload.count; ++number) {
        fill(me.workload, number, message);
        if (batch) {
            gathered.insert(gathered.end(), message.begin(), message.end());
            if (gathered.size() >= kRoom) send_to_all(gathered), gathered.clear();
        } else {
            send_to_all(message);
        }
        me.sample(number + 1);
    }
    send_to_all(gathered);
    me.wait_for("the subscribers' end",
                [&] { return usleep(1000), me.word(kDone) == me.workload.subscribers; });
    for (const int peer : peers) close(peer);
    close(listener);
}

// Receives the publisher's messages from a TCP connection. The head of a message contains its length.
void subscribe_by_tcp(Party& me) {
    me.wait_for("the publisher", [&] { return usleep(1000), me.word(kPort) != 0; });
    const int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(me.word(kPort)));
    to.sin_addr.s_addr = static_cast<in_addr_t>(me.board.places[0].address_bytes.load());
    CHECK(connect(stream, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    ++me.word(kReady);
    std::vector<std::byte> bytes(8 * kRoom);
    std::size_t from = 0, until = 0;
    me.wait_for("all messages", [&] {
        if (bytes.size() - until < 2 * kRoom) {
            std::memmove(bytes.data(), bytes.data() + from, until - from);
            until -= from;
            from = 0;
        }
        const ssize_t got = recv(stream, bytes.data() + until, bytes.size() - until, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return wait_for_socket(stream, POLLIN), false;
        CHECK(got > 0);
        until += static_cast<std::size_t>(got);
        Head head{};
        while (until - from >= sizeof head) {
            std::memcpy(&head, bytes.data() + from, sizeof head);
            if (until - from < head.bytes) break;
            me.check(bytes.data() + from, head.bytes);
            from += head.bytes;
        }
        return me.next() == me.workload.count;
    });
    if (++me.word(kDone) == me.workload.subscribers) me.word(kEnd) = now_ns();
    close(stream);
}

int be_member(const Workload& workload, Board& board, unsigned rank) {
    try {
        if (!workload.cluster.empty()) enter_host(workload.cluster, rank);
        Party me(workload, board, rank);
        if (workload.kind == "multicast")
            rank == 0 ? publish_by_multicast(me) : subscribe_by_multicast(me);
        else
            rank == 0 ? publish_by_tcp(me, workload.kind == "tcp-batch") : subscribe_by_tcp(me);
        return kExitFine;
    } catch (const std::exception& problem) {
        fmt::print(stderr, "fanout: {} {}: {}\n", rank == 0 ? "publisher" : "subscriber", rank,
                   problem.what());
        board.abandoned = true;
        return kExitFailed;
    }
}

void print(const Workload& workload, const Board& board) {
    std::uint64_t bytes = 0;
    for (std::uint64_t number = 0; number < workload.count; ++number) bytes += size_of(workload, number);
    const double seconds = static_cast<double>(board.words[kEnd] - board.words[kStart]) / 1e9;
    rusage all{};
    getrusage(RUSAGE_CHILDREN, &all);
    const double cpu = static_cast<double>(all.ru_utime.tv_sec + all.ru_stime.tv_sec) +
                       static_cast<double>(all.ru_utime.tv_usec + all.ru_stime.tv_usec) / 1e6;
    fmt::print(
        R"({{"kind": "{}", "size": {}, "count": {}, "subscribers": {}, "seconds": {:.3f}, "per_second": {:.0f}, "mb_per_second": {:.1f}, "cpu_seconds": {:.2f}, "resident_kib": [)",
        workload.kind, workload.size, workload.count, workload.subscribers, seconds,
        static_cast<double>(workload.count) / seconds, static_cast<double>(bytes) / 1e6 / seconds, cpu);
    for (unsigned rank = 0; rank <= workload.subscribers; ++rank) {
        fmt::print("{}[", rank == 0 ? "" : ", ");
        for (std::size_t i = 0; i < kSamples; ++i)
            fmt::print("{}{}", i == 0 ? "" : ", ", board.words[kMemory + rank * kSamples + i].load());
        fmt::print("]");
    }
    fmt::print("]}}\n");
}

}  // namespace

int main(int argc, char** argv) {
    Workload workload;
    std::string address = "127.0.0.1";
    mcastcoll::Arguments arguments(
        "fanout", "A publisher and its subscribers, by reliable multicast or by TCP", PACKAGE_VERSION);
    arguments
        .option("--kind", workload.kind, "what carries the messages; tcp-batch: 64 KiB of them at a time")
        .one_of({"multicast", "tcp", "tcp-batch"});
    arguments.option("--cluster", workload.cluster, "members are the hosts of this virtual cluster (VC)");
    arguments.option("--address", address, "of the publisher, for TCP");
    arguments.option("--count", workload.count, "messages").range(1UL, 1UL << 40);
    arguments.option("--size", workload.size, "of a message; 0: mixed, mostly small").range(0UL, kRoom);
    arguments.option("--subscribers", workload.subscribers, "").range(1U, 60U);
    arguments.option("--timeout", workload.timeout_s, "seconds for all of it");
    arguments.flag("--faults", workload.faults,
                   "subscriber 1 stalls, 2 is killed, the last one joins late (multicast, from 4 on)");
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    if (workload.faults && (workload.subscribers < 4 || workload.kind != "multicast")) {
        fmt::print(stderr, "fanout: --faults needs multicast and 4 subscribers\n");
        return 2;
    }
    try {
        SharedBoard board;
        in_addr publisher{};
        if (inet_pton(AF_INET, address.c_str(), &publisher) != 1) fail("'{}' is no IPv4 address", address);
        board->places[0].address_bytes = publisher.s_addr;
        Team team{.processes = workload.subscribers + 1, .timeout_s = workload.timeout_s, .victims = {}};
        if (workload.faults) team.victims = {2};
        const Outcome outcome =
            run_team(team, *board, [&](unsigned rank) { return be_member(workload, *board, rank); });
        if (outcome.kind != Outcome::Kind::fine) fail("{}", outcome.reason);
        print(workload, *board);
    } catch (const std::exception& problem) {
        fmt::print(stderr, "fanout: {}\n", problem.what());
        return 1;
    }
    return 0;
}
