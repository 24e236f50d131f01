// Our own hierarchy in the simulator: every broadcast walks sites, segments and machines from the outside in.
//
//   between sites      messages from the root's site to each other one, so that each link is crossed once
//   in a site          the production engine among the leaders, one process of each machine: one multicast
//   inside a machine   its leader writes into memory, all others read
//
// A machine's leader is its lowest rank, as only leaders join the multicast; a root that leads nobody hands
// its message to its leader first. The lowest leader of a site receives for the site; at the root's, the
// root's leader sends. Everybody passes on what it has as soon as it has it, a piece at a time, and an engine
// whose root gets its bytes from elsewhere is told how many there are. What goes to another site is paced to
// the link's rate, as the window of a TCP connection would, so that it does not keep multicasts out of the
// adapter.
//
// The composite owns the network, the engines and everybody's buffer. Every byte is compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "network.h"
#include "script.h"

namespace mcastcoll::sim {

class Composite : public Sink {
  public:
    struct Options {
        std::uint32_t ranks = 1;     // rank r is host r of the layout; machines and sites are runs of ranks
        engine::GroupConfig config;  // of every site's group but for key, self and members
        Model model;
        Faults faults;
        std::uint64_t seed = 1;
        Nanoseconds settle = Nanoseconds::from_us(200);
        std::uint32_t piece_bytes = 64 * 1024;  // passed on at once, between sites and through memory
    };
    Composite(Options options, std::vector<Step> script);

    // Joins, then all broadcasts, of a byte or more, each when the one before is over everywhere. Returns
    // what went wrong, or "".
    std::string run();
    // Of every rank, from the start of a step until it is through with it.
    const std::vector<Nanoseconds>& times(std::uint64_t step) const { return times_[step]; }
    Nanoseconds now() const { return network_->now(); }
    const Network& network() const { return *network_; }
    // Called when a step is over everywhere, and before the first.
    std::function<void(std::uint64_t steps_done)> step_over;

  private:
    enum Tag : std::uint32_t { kStart, kTimer, kPump, kEnter };
    static constexpr std::uint32_t kNobody = UINT32_MAX;
    struct Outward {  // to one rank of another site, or a root's to its leader
        std::uint32_t to = 0;
        std::uint64_t sent = 0;
        Nanoseconds next{};  // when the link can take another piece
    };
    struct Member {
        std::vector<std::byte> buffer;
        std::uint64_t have = 0;  // bytes from the start
        std::vector<Outward> outward;
        Nanoseconds pump_at = kNever;  // when it is to be woken to send
        std::uint64_t published = 0;   // of a leader: told to its machine
        bool entered = false, engine_done = false, through = false;
        // Of leaders only.
        std::unique_ptr<engine::Engine> engine;
        std::uint32_t site = 0, rank_in_site = 0;
        std::uint32_t last_of_machine = 0;  // the machine's ranks are [leader, this]
        Nanoseconds timer = kNever;         // when it is to be woken for its engine
    };

    void make_leaders();
    void on_packet(std::uint32_t rank, Bytes datagram) override;
    void on_message(std::uint32_t rank, std::uint32_t from, Bytes message) override;
    void on_wake(std::uint32_t rank, std::uint32_t tag) override;
    void begin_step();
    void choose_ways();
    void enter(std::uint32_t rank);
    void take_piece(std::uint32_t rank, Bytes piece);
    void got(std::uint32_t rank, std::uint64_t have);
    void pump(std::uint32_t rank);
    bool send_outward(std::uint32_t rank, Outward& outward);
    void publish(std::uint32_t rank);
    void take_effect(std::uint32_t rank, const engine::Effect& effect);
    void on_timer(std::uint32_t rank);
    void arm_timer(std::uint32_t rank);
    void wake_pump(std::uint32_t rank, Nanoseconds at);
    void look_whether_through(std::uint32_t rank);

    bool leads(std::uint32_t rank) const { return leader_of_[rank] == rank; }
    std::uint64_t bytes() const { return script_[step_].bytes; }
    std::uint32_t root() const { return index_of(script_[step_].root); }
    // Who has a site's bytes first: the root's leader, elsewhere the lowest one.
    std::uint32_t gate_of(std::uint32_t site) const;
    void trouble(std::string what);

    const Options options_;
    const std::vector<Step> script_;
    std::vector<Member> members_;
    std::vector<std::uint32_t> leader_of_;             // by rank
    std::vector<std::vector<std::uint32_t>> leaders_;  // by site
    std::unique_ptr<Network> network_;
    std::uint64_t step_ = 0;
    std::uint32_t unfinished_ = 0, to_join_ = 0;
    Nanoseconds began_at_{};
    std::vector<std::byte> content_;
    std::vector<std::vector<Nanoseconds>> times_;
    std::string trouble_;
};

}  // namespace mcastcoll::sim
