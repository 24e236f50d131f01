// A deterministic world for engines: virtual time, one seed, N members that run the very engine archive of
// the provider, a multicast that loses, reorders, duplicates and corrupts, and reliable messages that may
// overtake each other.
//
// The world plays the application, too: it posts a script of operations on every member, checks every byte at
// the moment an operation completes, and then scribbles over the buffer, because from then on an engine may
// neither read nor write it. The world owns the engines and all buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "engine/engine.h"

namespace mcastcoll::sim {

struct Faults {
    double loss = 0;       // share of multicast datagrams each receiver loses, 0..1
    double duplicate = 0;  // share delivered twice
    double corrupt = 0;    // share with one byte changed
    Nanoseconds jitter{};  // each datagram is late by up to this, so that datagrams overtake each other
    bool messages_overtake = false;
    double spike = 0;  // share of messages that are late by spike_delay
    Nanoseconds spike_delay = Nanoseconds::from_ms(2);
    double backpressure = 0;                           // share of polls at which sending is not allowed
    Nanoseconds dead_from = kNever, dead_to = kNever;  // the multicast carries nothing in between
    Nanoseconds heal_at = kNever;  // everything above is over from here on: the liveness phase
    // Decides by hand: true drops this datagram for this receiver. For table-driven cases.
    std::function<bool(const wire::Header&, Rank receiver)> drop;
    // Breaks the promise that messages are reliable. Only to prove that the world notices.
    std::function<bool(const wire::Header&, Rank receiver)> lose_message;
};

struct Options {
    engine::GroupConfig group;  // self is filled in for every member
    Faults faults;
    std::uint64_t seed = 1;
    Nanoseconds latency = Nanoseconds::from_us(20);
    Nanoseconds think{};                  // members wait up to this between two operations
    std::uint32_t in_flight = 4;          // operations a member keeps posted
    std::vector<bool> no_socket;          // members without a multicast socket
    std::vector<Nanoseconds> read_every;  // members that look at the network only this often; shorter: all do
    std::uint32_t receive_buffer = 0;  // datagrams a member's socket holds between two reads, 0 = any number
    Nanoseconds time_limit = kNever;   // of virtual time for the whole script
    // What the application of a member really posts, when it is not what the script says. Only for canaries.
    std::function<void(Rank, std::uint64_t, engine::Operation&)> tamper;
};

struct Step {
    engine::OperationKind kind = engine::OperationKind::broadcast;
    Rank root{};
    std::uint64_t bytes = 0;
};

class World {
  public:
    explicit World(const Options& options);

    // Runs the join, then every member posts the steps in order; all bytes are checked. Returns what went
    // wrong, or "".
    std::string run(const std::vector<Step>& script);
    // The same, but ends member `rank` when `after` operations have completed on some member; the others must
    // all end.
    std::string run_killing(const std::vector<Step>& script, Rank rank, std::uint64_t after);
    // The same at a moment.
    std::string run_killing_at(const std::vector<Step>& script, Rank rank, Nanoseconds at);

    const engine::Engine& engine(std::uint32_t member) const { return *members_[member].engine; }
    engine::Counters total() const;
    Nanoseconds now() const { return now_; }
    // What ended the group for a member: 0 while nothing has.
    int status(std::uint32_t member) const { return members_[member].status; }
    Nanoseconds joined_at() const { return joined_at_; }  // when the last member had joined
    Nanoseconds killed_at() const { return killed_at_; }
    // From the first post of a step until its last completion.
    Nanoseconds duration(std::uint64_t step) const;
    // A digest of everything that was delivered and when, to tell whether two runs were the same.
    std::uint64_t digest() const { return digest_; }
    // Hands a datagram to a member as if it had come from the wire.
    void inject(std::uint32_t member, Bytes datagram) { members_[member].engine->on_packet(datagram, now_); }
    // Called with every datagram that is multicast: what a listener on the wire sees.
    std::function<void(Bytes)> tap;

  private:
    struct Posted {
        std::vector<std::byte> buffer;
        bool done = false;
        int status = 0;
        Nanoseconds posted_at{}, done_at{};
    };
    struct Member {
        std::unique_ptr<engine::Engine> engine;
        std::vector<Posted> posted;
        std::uint64_t completed = 0;
        Nanoseconds next_post{};
        Nanoseconds deadline =
            kNever;                 // the engine's, kept because asking all engines at every event is slow
        std::vector<bool> watched;  // whose death it wants to know of
        bool joined = false, left = false, failed = false, dead = false, closed = false;
        int status = 0;
    };
    struct Event {
        enum class What : std::uint8_t { datagram, message, poll, peer_lost };
        Nanoseconds at{};
        std::uint64_t order = 0;
        std::uint32_t to = 0;
        What what = What::message;
        Rank lost = kNoRank;
        std::vector<std::byte> bytes{};
        bool operator>(const Event& other) const {
            return std::tie(at, order) > std::tie(other.at, other.order);
        }
    };

    bool healed() const { return now_ >= options_.faults.heal_at; }
    bool chance(double share);
    Nanoseconds up_to(Nanoseconds most);
    Nanoseconds reading_time(std::uint32_t member, Nanoseconds at) const;
    void schedule(Event event, Nanoseconds at);
    void send_message(std::uint32_t from, std::uint32_t to, std::vector<std::byte> bytes);
    void send_multicast(std::uint32_t from, const std::vector<std::byte>& bytes);
    bool lost(std::uint32_t to, const wire::Header& header);
    void pump(std::uint32_t member);
    void take_effect(std::uint32_t member, const engine::Effect& effect);
    void take_completion(std::uint32_t member, const engine::Effect& effect);
    void take_event(const Event& event);
    bool can_post(const Member& member) const;
    void post(std::uint32_t member);
    void start(const std::vector<Step>& script);
    bool step();
    bool in_time();
    bool ended() const;
    std::string check(bool must_succeed) const;
    void kill(std::uint32_t member);
    void trouble(std::string what);

    Options options_;
    std::vector<Step> script_;
    std::mt19937_64 random_;
    std::vector<Member> members_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::vector<Nanoseconds> last_message_;  // per pair, for messages that keep their order
    std::vector<std::uint32_t> queued_;      // datagrams on their way to each member's socket
    Nanoseconds now_{1}, joined_at_{}, killed_at_ = kNever;
    std::uint64_t order_ = 0, digest_ = 14695981039346656037ULL, steps_ = 0;
    std::string trouble_;
};

// The byte at `offset` of the broadcast of step `index`.
std::byte pattern(std::uint64_t index, std::uint64_t offset);
// A script of broadcasts of mixed sizes from mixed roots, and barriers.
std::vector<Step> mixed_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                               std::uint64_t most_bytes);

}  // namespace mcastcoll::sim
