// Reception test: every host in turn multicasts numbered datagrams in the way of the provider, and all hosts
// count the datagrams that arrive.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "ports/multicast_choice.h"
#include "tally.h"
#include "transport/multicast_hub.h"

namespace mcastcoll::doctor {

// The datagrams of a phase.
struct PhaseLoad {
    Phase phase{};
    std::uint64_t datagrams = 0;
    std::size_t bytes = 0;   // of each datagram
    std::uint64_t mbit = 0;  // rate; 0: `at_once` datagrams together, then a pause
    std::uint64_t at_once = 1;
};
// Returns the phases of a host's turn, which takes a second at most, and less with many hosts. `window` is
// the number of datagrams that a root may have in flight.
std::vector<PhaseLoad> loads_of_turn(std::size_t datagram_bytes, std::uint64_t window, std::uint64_t top_mbit,
                                     unsigned hosts);
std::vector<PhaseLoad> repeated_loads();

class Experiment {
  public:
    // Joins the group and begins to listen. `key` is the same on all hosts and unique to this experiment:
    // other datagrams are ignored.
    static Result<std::unique_ptr<Experiment>> open(const transport::UdpMulticastOptions& options,
                                                    const transport::SocketAddress& group, std::uint64_t key,
                                                    unsigned self, unsigned members);
    ~Experiment();

    // Sends these phases in this host's turn. `loop`: whether processes of this host receive them, too.
    std::vector<Stream> send(const std::vector<PhaseLoad>& loads, bool loop);
    // Ends listening, and returns what this process received. `sent` has the streams of each member.
    std::vector<ReceivedStream> received(const std::vector<std::vector<Stream>>& sent);
    std::uint64_t overflows() const { return overflows_; }

  private:
    Experiment(const transport::SocketAddress& group, std::uint64_t key, unsigned self, unsigned members);
    void listen();
    void take(Bytes bytes);
    Stream send(const PhaseLoad& load, bool loop);

    const transport::SocketAddress group_;
    const std::uint64_t key_;
    const unsigned self_, members_;
    std::unique_ptr<transport::MulticastHub> sender_, receiver_;
    transport::Membership membership_;
    std::atomic<bool> ended_{false};
    std::map<std::pair<unsigned, Phase>, Tally> tallies_;  // owned by the listening thread until it has ended
    std::uint64_t overflows_ = 0;
    std::thread thread_;
};

}  // namespace mcastcoll::doctor
