// Members whose ports are flooded with packets that differ from a member's only in an invalid authentication
// tag. Broadcast data stay correct and resources bounded. The cost of a flood is measured beside the cost of
// the same flood to sockets on the members' hosts that only drop it.
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "functional/flood_source.h"
#include "functional/forge_listening.h"
#include "functional/forge_sender.h"
#include "functional/forge_spoofed.h"
#include "functional/multicast_sockets.h"
#include "support/process.h"
#include "support/program.h"
#include "support/statistics.h"

namespace mcastcoll::fabtest {
namespace {

constexpr unsigned kOperations = 200;  // per measurement
constexpr std::uint64_t kHighRate = 100'000;
constexpr std::size_t kMaxGroups = 1'000;
constexpr std::size_t kMaxGrowth = std::size_t{32} << 20;

// Opens a socket of this host at a port (0: any), which also receives the sinks' multicast group.
int open_sink(in_addr own, std::uint16_t& port, int kind) {
    const int descriptor = socket(AF_INET, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    CHECK(descriptor >= 0 && setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (kind == SOCK_STREAM) address.sin_addr = own;
    CHECK(bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    socklen_t length = sizeof address;
    CHECK(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port = ntohs(address.sin_port);
    if (kind == SOCK_STREAM) {
        CHECK(listen(descriptor, 16) == 0);
        return descriptor;
    }
    ip_mreq membership{{}, own};
    CHECK(inet_pton(AF_INET, kSinkGroup, &membership.imr_multiaddr) == 1);
    CHECK(setsockopt(descriptor, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership) == 0);
    return descriptor;
}

// Reads datagrams and connections, and drops the data, until the process is killed.
[[noreturn]] void read_and_drop(int datagrams, int listener) {
    std::vector<pollfd> all{{datagrams, POLLIN, 0}, {listener, POLLIN, 0}};
    static char bytes[65536];
    for (;;) {
        poll(all.data(), all.size(), -1);
        if ((all[1].revents & POLLIN) != 0) {
            const int stream = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (stream >= 0) all.push_back({stream, POLLIN, 0});
        }
        for (pollfd& one : all) {
            if (one.fd < 0 || one.fd == listener) continue;
            ssize_t got = 0;
            while ((got = recv(one.fd, bytes, sizeof bytes, 0)) > 0)
                ;
            if (got == 0 && one.fd != datagrams) close(one.fd), one.fd = -1;
        }
    }
}

class Target {
  public:
    // `sinks`: whether the process also opens sockets that only drop packets, to be flooded in comparison.
    // Each member then needs an address of its own.
    Target(Member& me, bool sinks) : me_(me), words_(me.board().words), set_(me.all_members()) {
        if (sinks) open_sinks(service_address(me.board(), me.rank()).sin_addr);
        tap_.listen(me.board(), kFlooded);
        group_ = me.join(set_.get());
        work(false);
        tap_.listen(me.board(), kFlooded);
        const auto listeners = listeners_of({getpid()});
        for (std::size_t i = 0; i < std::min<std::size_t>(listeners.size(), 2); ++i)
            words_[kPrivatePorts + 2 * me.rank() + i] = ntohs(listeners[i].sin_port);
        me.meet();
        if (me.rank() != 0) return;
        words_[kFloodList] = tap_.list().value();
        words_[kFloodRate] = kHighRate;
        // Counts this process's groups only: other programs on this machine may have groups, too.
        std::size_t groups = 0;
        for (const sockaddr_in& one : multicast_sockets_of({getpid()}))
            if (one.sin_port != htons(static_cast<std::uint16_t>(words_[kUnreadPort].load())) &&
                groups < kMaxGroups)
                words_[kGroups + groups++] = std::uint64_t{one.sin_addr.s_addr} << 16 | one.sin_port;
        CHECK(groups > 0);
        words_[kFloodGroups] = groups;
    }
    ~Target() {
        if (reader_ > 0) kill(reader_, SIGKILL);
        if (unread_ >= 0) close(unread_);
    }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    // Runs broadcasts with each member as root in turn, so that each root waits for the broadcast before.
    void work(bool timed) {
        for (unsigned i = 0; i < (timed ? kOperations : 50U); ++i) {
            ++round_;
            buffer_.poison();
            const auto root = static_cast<unsigned>(round_ % me_.size());
            if (me_.rank() == root) buffer_.fill(round_);
            finish(me_.broadcast(*group_, buffer_.data(), buffer_.size(), root));
            buffer_.check(round_, "a broadcast in a flood");
        }
    }

    // Sleeps while it waits: with more members than processors, polling would measure the scheduler.
    void finish(Ticket& ticket) {
        const auto until = Clock::now() + std::chrono::seconds(me_.options().wait_s);
        for (fi_cq_tagged_entry entry{}; !ticket.done;) {
            const ssize_t got = fi_cq_sread(me_.cq(), &entry, 1, nullptr, 1'000);
            if (got == 1)
                me_.take(entry);
            else if (got == -FI_EAVAIL)
                me_.take_error();
            else if (Clock::now() > until || me_.board().abandoned)
                fail("a broadcast is waited for in vain");
        }
        me_.finish(ticket);
    }

    // Returns rank 0's value of the condition on every member; all members call this.
    bool goes_on(const std::function<bool()>& holds) {
        me_.meet();
        if (me_.rank() == 0) words_[kGoesOn] = holds();
        me_.meet();
        return words_[kGoesOn].load() != 0;
    }

    struct Measured {
        double us = 0;            // time of a broadcast
        double rate = 0;          // packets per second
        double processor_us = 0;  // of the receiver, per packet, while the members sleep
    };
    // Measures a broadcast under this flood, and returns rank 0's measurement; all members call this.
    Measured measure(std::uint64_t flood) {
        if (me_.rank() == 0) words_[kFlood] = flood;
        do {
            work(false);  // traffic that the flood copies
        } while (goes_on([&] { return words_[kFlooding].load() != flood; }));
        me_.idle(std::chrono::milliseconds(20));
        me_.meet();
        const std::uint64_t sent = words_[kFloodSent].load();
        const auto begin = Clock::now();
        work(true);
        const std::chrono::duration<double> time = Clock::now() - begin;
        const double packets = double(words_[kFloodSent].load() - sent);
        me_.meet();
        return {time.count() * 1e6 / kOperations, packets / time.count(),
                reader_ > 0 && flood != 0 ? processor_time(Flood::of(flood).victim) : 0};
    }

    decltype(Board::words)& words() { return words_; }

  private:
    static std::uint64_t nanoseconds(clockid_t clock) {
        timespec time{};
        CHECK(clock_gettime(clock, &time) == 0);
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
               static_cast<std::uint64_t>(time.tv_nsec);
    }
    // Returns the processor time of a receiver. Sleeping members use processor time only for the flood.
    double processor_time(Victim victim) {
        clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
        if (victim != Victim::members) CHECK(clock_getcpuclockid(reader_, &clock) == 0);
        words_[kProcessorNs] = 0;
        me_.meet();
        const std::uint64_t sent = words_[kFloodSent].load(), used = nanoseconds(clock);
        const auto until = Clock::now() + std::chrono::milliseconds(300);
        fi_cq_tagged_entry entry{};
        while (Clock::now() < until) CHECK_RETURNS(-FI_EAGAIN, fi_cq_sread(me_.cq(), &entry, 1, nullptr, 50));
        words_[kProcessorNs].fetch_add(nanoseconds(clock) - used);
        const auto packets = std::max<std::uint64_t>(words_[kFloodSent].load() - sent, 1);
        me_.meet();
        return double(words_[kProcessorNs].load()) / 1e3 / double(packets);
    }
    // Opens the same ports on all hosts.
    void open_sinks(in_addr own) {
        const auto open = [&] {
            auto unread = static_cast<std::uint16_t>(words_[kUnreadPort].load());
            auto read = static_cast<std::uint16_t>(words_[kReadPort].load());
            unread_ = open_sink(own, unread, SOCK_DGRAM);
            const int datagrams = open_sink(own, read, SOCK_DGRAM);
            const int listener = open_sink(own, read, SOCK_STREAM);
            words_[kUnreadPort] = unread;
            words_[kReadPort] = read;
            reader_ = fork();
            CHECK(reader_ >= 0);
            if (reader_ == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                read_and_drop(datagrams, listener);
            }
            close(datagrams);
            close(listener);
        };
        if (me_.rank() == 0) open();
        me_.meet();
        if (me_.rank() != 0) open();
        me_.meet();
    }

    Member& me_;
    decltype(Board::words)& words_;
    const Fid<fid_av_set> set_;
    Wiretap tap_;
    Buffer buffer_{kFloodBytes};
    std::unique_ptr<Join> group_;
    std::uint64_t round_ = 0;
    int unread_ = -1;
    pid_t reader_ = -1;
};

constexpr const char* kPortNames[] = {"service port", "multicast port", "private endpoint", "unknown lists"};

void survive(Member& me) {
    Target target(me, false);
    const std::size_t descriptors = open_descriptors(), memory = resident_bytes();
    for (const Port port : {Port::service, Port::multicast, Port::messages, Port::unknown}) {
        me.stage(kPortNames[static_cast<std::size_t>(port)]);
        const auto until = Clock::now() + std::chrono::milliseconds(500);
        Target::Measured last;
        do {
            last = target.measure(Flood{port, Victim::members}.code());
        } while (target.goes_on([&] { return Clock::now() < until; }));
        if (me.rank() == 0)
            fmt::print("     {}: {:.0f} packets a second\n", me.board().places[0].stage.load(), last.rate);
    }
    (void)target.measure(0);
    if (open_descriptors() > descriptors + 16)
        fail("{} descriptors are open instead of {}", open_descriptors(), descriptors);
    if (kMeasuresMemory && resident_bytes() > memory + kMaxGrowth)
        fail("{} bytes of memory are used instead of {}", resident_bytes(), memory);
    target.words()[kFloodOver] = 1;
    me.meet();
}

double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

void measure_costs(Member& me) {
    constexpr unsigned kRounds = 7;
    Target target(me, true);
    std::vector<std::uint64_t> floods{0};
    for (const Port port : {Port::service, Port::multicast, Port::messages, Port::unknown})
        for (const Victim victim : {Victim::unread, Victim::read, Victim::members})
            if (port != Port::messages || victim != Victim::unread)
                floods.push_back(Flood{port, victim}.code());
    std::vector<std::vector<double>> us(floods.size()), rates(floods.size()), processor(floods.size());
    for (unsigned round = 0; round < kRounds; ++round)
        for (std::size_t i = 0; i < floods.size(); ++i) {
            const std::size_t which = (i + round) % floods.size();
            const Target::Measured one = target.measure(floods[which]);
            us[which].push_back(one.us), rates[which].push_back(one.rate);
            processor[which].push_back(one.processor_us);
        }
    target.words()[kFloodOver] = 1;
    me.meet();
    if (me.rank() != 0) return;
    constexpr const char* kVictims[] = {"members", "no reader", "a reader"};
    fmt::print("     {:16} {:14} {:>10} {:>10} {:>10} {:>14}\n", "flooded", "who reads", "packets/s", "us",
               "more", "processor us");
    for (std::size_t i = 0; i < floods.size(); ++i) {
        const Flood flood = Flood::of(std::max<std::uint64_t>(floods[i], 1));
        fmt::print("     {:16} {:14} {:10.0f} {:10.1f} {:10.1f} {:14.2f}\n",
                   i == 0 ? "-" : kPortNames[std::size_t(flood.port)],
                   i == 0 ? "-" : kVictims[std::size_t(flood.victim)], median(rates[i]), median(us[i]),
                   median(us[i]) - median(us[0]), median(processor[i]));
    }
}

void check_refused(const std::string& prefix) {
    auto sum = take_statistics(prefix);
    for (const char* name : {"foreign_datagrams", "unproven_packets"}) {
        fmt::print("     {}: {}\n", name, sum[name]);
        CHECK(sum[name] > 0);
    }
    CHECK(sum["operations_failed"] == 0);
}

}  // namespace
}  // namespace mcastcoll::fabtest

int main(int argc, char** argv) {
    using namespace mcastcoll::fabtest;
    Program program("fi_mcc_flood", "Broadcasts while foreign hosts flood the members' ports");
    const SecretFile secret;
    const auto add = [&](const char* name, void (*body)(Member&), bool large) {
        const std::string prefix = statistics_prefix(large ? "mcc-flood-cost" : "mcc-flood");
        program.add(
            {.name = name,
             .body = body,
             .opening = {.queue_wait = FI_WAIT_UNSPEC},
             .members = kFlooded,
             .environment = {{"FI_MCASTCOLL_STATS", prefix}, {"FI_MCASTCOLL_KEY_FILE", secret.path()}},
             .only_mcastcoll = true,
             .only_large = large,
             .outsider = flood,
             .after = [prefix] { check_refused(prefix); }});
    };
    if (geteuid() == 0) {  // raw sockets need root
        add("a flood harms no member", survive, false);
        add("what a flood costs", measure_costs, true);
    }
    return program.run(argc, argv);
}
