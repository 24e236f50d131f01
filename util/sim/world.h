// Whole groups of production engines in virtual time, their applications, and the oracles: every byte is
// right and delivered exactly once; no write into a buffer returned to the application; no data from another
// group or operation; no memory beyond that of the join; no more packets in flight than stated; every
// operation completed or failed by the deadline; all members gone after the close.
//
// The world owns the network, the engines and all buffers. A run is determined by one seed. The class has
// many methods, since each oracle examines the same member that the application and the network change.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arrival.h"
#include "base/function_ref.h"
#include "engine/engine.h"
#include "script.h"
#include "simulation.h"

namespace mcastcoll::sim {

// A group of engines and its operations.
struct EngineSetup {
    engine::GroupConfig config{};        // self is filled in for every member
    std::vector<std::uint32_t> hosts{};  // of the ranks; empty: rank r is on host r
    std::vector<Step> script{};
    std::vector<bool> no_socket{};  // ranks without a multicast socket
};

struct Options : Conditions {
    std::vector<EngineSetup> setups = std::vector<EngineSetup>(1);
    std::vector<HostEvent> deaths;  // after: completions of any one member
    // Separated: all members arrive at an operation when the previous one has completed everywhere, plus the
    // arrival pattern. Otherwise each member keeps `in_flight` operations posted and waits up to `think`
    // between two posts.
    bool separated = false;
    Arrival arrival;
    Nanoseconds settle = Nanoseconds::from_us(100);  // between two separated operations
    std::uint32_t in_flight = 4;
    Nanoseconds think{};
    Nanoseconds start_skew{};                            // members join up to this late
    Nanoseconds stream_pace = Nanoseconds::from_us(50);  // a streaming root gets more up to this late
    Nanoseconds turn{};  // input within this time is read in one turn, with one time
    Nanoseconds time_limit = Nanoseconds::from_ms(60'000);
    bool check_invariants = true;  // after every call into an engine; slow for large groups
    // If set, is called for each member to change its configuration.
    std::function<void(engine::GroupConfig&)> each;
    // If set, is called to change an operation before a member posts it: for mutation tests of the oracles.
    std::function<void(Rank, std::uint64_t step, Collective&)> tamper;
    std::function<void(Nanoseconds now, std::uint64_t events)> progress;  // called now and then

    // The configuration of the first group.
    engine::GroupConfig& group() { return setups[0].config; }
    const engine::GroupConfig& group() const { return setups[0].config; }
};

class World : public Simulation {
  public:
    explicit World(Options options);

    // Joins, runs the scripts, closes. Returns an error message or "". Call once.
    std::string run() override;
    // Does the same as run(), with this script for the first group.
    std::string run(std::vector<Step> script);

    // A member's engine in the first group.
    const engine::Engine& engine(std::uint32_t rank) const { return *members_[rank].engine; }
    // The error of the first group on a member; 0 without an error.
    int status(std::uint32_t rank) const { return members_[rank].status; }
    engine::Counters total() const;
    Nanoseconds killed_at() const { return killed_at_; }
    // Returns the time from the first post of a step to its last completion.
    Nanoseconds duration(std::uint64_t step) const { return span(step, step); }
    // Returns the time from the first post of step `from` to the last completion of step `to`.
    Nanoseconds span(std::uint64_t from, std::uint64_t to, std::uint32_t group = 0) const;
    // Traffic from the start of the first separated operation to the end of the last.
    Network::Traffic traffic_of_operations() const { return traffic_of_operations_; }
    std::int64_t peak_bytes_per_member() const;
    std::uint64_t events() const { return steps_; }
    std::uint64_t failed_operations() const { return failed_operations_; }
    // Delivers a datagram to a member, as if from the wire.
    void inject(std::uint32_t member, Bytes datagram);
    // If set, gets every multicast datagram, like a listener on the wire.
    std::function<void(Bytes)> tap;

  private:
    enum Tag : std::uint32_t { kStart, kTimer, kPost, kPoll, kPeerLost, kDeath, kClose, kAdvance, kRelease };
    using Content = std::shared_ptr<const std::vector<std::byte>>;
    struct Posted {
        std::vector<std::byte> buffer;
        std::vector<std::byte> input;   // of a reduction that is not in place
        std::vector<std::byte> source;  // of a stream, until all bytes have arrived
        Content expected;               // expected contents of the buffer, until completion
        Nanoseconds posted_at{}, done_at{};
        std::uint64_t ready = UINT64_MAX;  // bytes announced to the engine by a streaming root
        std::uint64_t arrived = 0;         // bytes reported as arrived, and checked
        int status = 0;
        bool done = false;
    };
    struct Member {
        std::unique_ptr<engine::Engine> engine;
        std::vector<Posted> posted;
        std::vector<std::uint64_t> held;     // steps that rank 0 must release
        std::vector<std::uint64_t> streams;  // steps for which this root has not got all bytes
        std::vector<Rank> watched;           // members watched for failure
        std::uint64_t completed = 0;
        Nanoseconds next_post{}, timer = kNever, turn_at{};
        std::int64_t bytes = 0, peak_bytes = 0, joined_bytes = 0;
        std::uint32_t group = 0, in_flight_limit = 0;
        int status = 0;
        bool joined = false, left = false, failed = false, closed = false, over = false;
        bool post_due = false, poll_due = false;
    };
    struct Group {
        std::uint32_t begin = 0, members = 0;                               // of members_
        std::vector<std::weak_ptr<const std::vector<std::byte>>> expected;  // by step, while in use
    };

    // world.cc
    void start();
    void on_packet(std::uint32_t member, Bytes datagram) override;
    void on_message(std::uint32_t member, std::uint32_t from, Bytes message) override;
    void on_wake(std::uint32_t member, std::uint32_t tag) override;
    // Wraps every call into an engine, to account for its memory.
    void metered(std::uint32_t member, FunctionRef<void(engine::Engine&)> body);
    // Calls the engine and takes its effects.
    void call(std::uint32_t member, FunctionRef<void(engine::Engine&)> body) {
        members_[member].turn_at = now();
        metered(member, body);
        pump(member);
    }
    // Delivers input in the current turn, or begins a new turn.
    void read(std::uint32_t member, FunctionRef<void(engine::Engine&, Nanoseconds)> body);
    void pump(std::uint32_t member);
    void take_effect(std::uint32_t member, const engine::Effect& effect);
    void arm_timer(std::uint32_t member);
    void on_timer(std::uint32_t member);
    void report_lost(std::uint32_t member);
    void kill(std::uint32_t host);
    void kill_after(std::uint64_t completed);
    bool in_time();

    // application.cc
    bool can_post(const Member& member) const;
    void post_pipelined(std::uint32_t member);
    void post_one(std::uint32_t member);
    void close(std::uint32_t member);
    void take_completion(std::uint32_t member, const engine::Effect& effect);
    void retire(std::uint32_t member, std::uint64_t step);
    void member_joined(std::uint32_t member);
    void complete_step(std::uint32_t member);
    void begin_step(std::uint32_t group);
    Content expected_content(std::uint32_t group, std::uint64_t step);

    void fill(std::uint32_t member, std::uint64_t step);
    void take_gathered(std::uint32_t member, std::uint64_t step);
    void release_held(std::uint32_t member);
    bool gets_result(std::uint32_t member, std::uint64_t step) const;
    void advance_streams(std::uint32_t member);
    void check_arrived(std::uint32_t member);

    std::string check() const;
    std::string first_unfinished() const;
    std::string check_member(std::uint32_t member, bool must_succeed) const;

    const Group& group_at(std::uint32_t member) const { return groups_[members_[member].group]; }
    std::uint32_t rank_at(std::uint32_t member) const { return member - group_at(member).begin; }
    // The member of the same group with this rank.
    std::uint32_t fellow(std::uint32_t member, Rank rank) const {
        return group_at(member).begin + index_of(rank);
    }
    const std::vector<Step>& script_of(std::uint32_t member) const {
        return options_.setups[members_[member].group].script;
    }
    std::string name_of(std::uint32_t member) const;

    Options options_;
    std::vector<Group> groups_;
    std::vector<Member> members_;
    std::deque<std::pair<std::uint32_t, std::uint64_t>>
        retired_;  // members' steps with buffers still being watched
    std::uint64_t retired_bytes_ = 0;
    std::uint64_t steps_ = 0, failed_operations_ = 0;
    std::uint32_t over_ = 0, groups_begun_ = 0, groups_done_ = 0;
    std::vector<std::uint32_t> hosts_to_kill_;  // hosts to end after the current event
    Network::Traffic traffic_at_begin_, traffic_of_operations_;
    Nanoseconds killed_at_ = kNever;
};

}  // namespace mcastcoll::sim
