// A join of several processes in memory: each member's own Join, and a network that loses, duplicates, delays
// and reorders its datagrams, and delivers messages in order as long as both ends live. A run depends only on
// its seed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "group/arrival.h"
#include "group/join.h"
#include "group/port.h"
#include "sim/random.h"

namespace mcastcoll::test {

using sim::Random;

struct JoinNetwork {
    std::uint64_t seed = 1;
    double loss = 0, doubled = 0;                   // shares of the datagrams
    Nanoseconds delay = Nanoseconds::from_us(50);   // minimum, of datagrams and messages
    Nanoseconds jitter = Nanoseconds::from_us(50);  // maximum of an additional random delay of each
    std::size_t messages_at_once = 32;              // limit of a member's messages in flight
};

class JoinWorld;

// The process of one rank. Like a CollectiveEndpoint, it keeps hellos (a join's first messages) for a join
// that it has not called yet, and forwards messages to the called join.
class JoinProcess final : private group::JoinPort, private group::Outbox::Port {
  public:
    JoinProcess(JoinWorld& world, Rank self, wire::JoinId id, std::uint64_t incarnation);

    void call(Nanoseconds until);  // fi_join_collective
    void on_datagram(Rank from, Bytes bytes);
    void on_join_message(Bytes message);
    void on_time();
    // Ends its join as the application would, for example with the welcome half sent.
    void fail(int error);

    Nanoseconds next_deadline() const { return join ? join->next_deadline() : kNever; }
    bool over() const { return welcome.has_value() || error != 0; }

    wire::Hello hello;
    std::optional<group::Join> join;  // set by call()
    std::optional<wire::Welcome> welcome;
    int error = 0;
    bool silent = false;  // does not answer surveys, which measure round trips between networks
    Nanoseconds deadline = kNever;
    Nanoseconds over_at = kNever;  // the latest end: an abort may follow a welcome
    std::size_t hellos_sent = 0, echoes_sent = 0;
    std::size_t received = 0;     // hellos and messages received
    unsigned failing_hellos = 0;  // this many hellos fail for lack of memory
    std::vector<std::string> sentences;
    group::RoundTrips measured;
    const std::uint64_t incarnation;

  private:
    wire::Hello own_hello() const override { return hello; }
    void send_hello(Rank to, std::uint32_t attempt, Bytes bytes) override;
    void send(Rank to, std::uint32_t attempt, Bytes datagram) override;
    const wire::Hello* miscounted_hello(Rank rank) override;
    group::RoundTrips& round_trips() override { return measured; }
    Result<group::Outbox::Peer> peer(const wire::ByteString& private_address) override;
    void queue_message(std::vector<group::Outbox::Peer> to, wire::ByteString message) override;
    void withdraw() override { outbox_.withdraw(kOwner); }
    void explain(std::string_view sentence) override { sentences.emplace_back(sentence); }
    bool has_room(std::size_t) const override { return under_way_ < max_under_way_; }
    void send_join_message(group::Outbox::Peer to, Bytes message) override;
    void on_hello(const wire::Hello& hello);
    void follow();
    void welcome_by(const wire::Welcome& said);
    void end();

    static constexpr group::Outbox::Owner kOwner = 7;
    JoinWorld& world_;
    const Rank self_;
    const wire::JoinId id_;
    group::Arrival arrival_;
    group::Outbox outbox_;
    std::size_t under_way_ = 0, max_under_way_ = 0;
    std::vector<wire::Hello> early_;
};

class JoinWorld {
  public:
    explicit JoinWorld(std::size_t members, const JoinNetwork& network = {});

    // Every process calls the join within this time.
    void call_all(Nanoseconds within, Nanoseconds timeout = Nanoseconds::from_ms(10'000));
    // Replaces the process of this rank by a new process, which counts its joins from `sequence`.
    JoinProcess& start_again(std::uint32_t rank, std::uint32_t sequence);
    // Runs until no event is left, or for this long.
    void run(Nanoseconds longest = Nanoseconds::from_ms(60'000));
    void at(Nanoseconds time, std::function<void()> what) { events_.emplace(time, std::move(what)); }

    std::size_t size() const { return processes_.size(); }
    JoinProcess& process(std::uint32_t rank) { return *processes_[rank]; }
    bool lives(Rank rank, std::uint64_t incarnation) const;
    Nanoseconds now() const { return now_; }
    // Delay of datagrams between two ranks, in addition to the network's delay.
    std::function<Nanoseconds(Rank, Rank)> distance;

    // The first error so far, such as a welcome accepted twice, or "".
    const std::string& wrong() const { return wrong_; }
    // Returns "" if every member is in the same group.
    std::string why_not_all_welcomed();

  private:
    friend class JoinProcess;
    void complain(std::string what);
    Nanoseconds delay() { return network_.delay + random_.up_to(network_.jitter); }
    void datagram(Rank from, Rank to, Bytes bytes);
    void join_message(Rank to, std::uint64_t incarnation, Bytes bytes, Nanoseconds& last,
                      std::function<void()> sent);

    const JoinNetwork network_;
    Random random_;
    Nanoseconds now_{1};
    std::multimap<Nanoseconds, std::function<void()>> events_;
    std::vector<std::unique_ptr<JoinProcess>> processes_;
    // When the last message of a sender arrives at a receiving process: later messages must not overtake it.
    std::map<std::pair<std::uint32_t, std::uint64_t>, Nanoseconds> last_message_;
    std::uint64_t incarnations_ = 0;
    std::string wrong_;
};

}  // namespace mcastcoll::test
