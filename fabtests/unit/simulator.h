// A deterministic world for engines: virtual time, one seed, N members that run the very engine archive of
// the provider, a multicast that loses, reorders and duplicates, and reliable messages that may overtake each
// other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace mcastcoll::sim {

struct Faults {
    double loss = 0;       // share of multicast datagrams each receiver loses, 0..1
    double duplicate = 0;  // share delivered twice
    double corrupt = 0;    // share with one byte changed
    Nanoseconds jitter{};  // each datagram is late by up to this, so that datagrams overtake each other
    bool messages_overtake = false;
    // Decides by hand: true drops this datagram for this receiver. For table-driven cases.
    std::function<bool(const wire::Header&, Rank receiver)> drop;
};

struct Options {
    engine::GroupConfig group;  // self is filled in for every member
    Faults faults;
    std::uint64_t seed = 1;
    Nanoseconds latency = Nanoseconds::from_us(20);
    Nanoseconds think{};               // members wait up to this between two operations
    std::uint32_t in_flight = 4;       // operations a member keeps posted
    std::vector<bool> no_socket;       // members without a multicast socket
    std::uint32_t receive_buffer = 0;  // datagrams a member's socket holds between two reads, 0 = any number
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
    // The same, but ends member `rank` when `after` operations have completed somewhere; the others must all
    // end.
    std::string run_killing(const std::vector<Step>& script, Rank rank, std::uint64_t after);

    const engine::Engine& engine(std::uint32_t member) const { return *members_[member].engine; }
    engine::Counters total() const;
    Nanoseconds now() const { return now_; }
    // A digest of everything that was delivered, to tell whether two runs were the same.
    std::uint64_t digest() const { return digest_; }
    // Hands a datagram to a member as if it had come from the wire.
    void inject(std::uint32_t member, Bytes datagram) { members_[member].engine->on_packet(datagram, now_); }

  private:
    struct Posted {
        std::vector<std::byte> buffer;
        bool done = false;
        int status = 0;
    };
    struct Member {
        std::unique_ptr<engine::Engine> engine;
        std::vector<Posted> posted;
        std::uint64_t completed = 0;
        Nanoseconds next_post{};
        bool joined = false, left = false, failed = false, dead = false, closed = false;
        int status = 0;
    };
    struct Event {
        Nanoseconds at;
        std::uint64_t order = 0;
        std::uint32_t to = 0;
        bool multicast = false;
        std::vector<std::byte> bytes;
        bool operator>(const Event& other) const {
            return std::tie(at, order) > std::tie(other.at, other.order);
        }
    };

    double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
    Nanoseconds up_to(Nanoseconds most);
    void send(std::uint32_t from, const engine::Effect& effect);
    void deliver(std::uint32_t to, std::vector<std::byte> bytes, bool multicast, Nanoseconds delay);
    void pump(std::uint32_t member);
    void post(std::uint32_t member, const std::vector<Step>& script);
    bool step(const std::vector<Step>& script);
    std::string check(const std::vector<Step>& script, bool must_succeed) const;
    void kill(std::uint32_t member);

    Options options_;
    std::mt19937_64 random_;
    std::vector<Member> members_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::vector<Nanoseconds> last_message_;  // per pair, for messages that keep their order
    std::vector<std::uint32_t> queued_;      // datagrams on their way to each member's socket
    Nanoseconds now_{1};
    std::uint64_t order_ = 0, digest_ = 14695981039346656037ULL, steps_ = 0;
    std::string trouble_;
};

// The byte at `offset` of the broadcast of step `index`.
std::byte pattern(std::uint64_t index, std::uint64_t offset);
// A script of broadcasts of mixed sizes from mixed roots, and barriers.
std::vector<Step> mixed_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                               std::uint64_t most_bytes);

}  // namespace mcastcoll::sim
