// The reference: broadcasts along a tree of whole point-to-point messages, in the same network and without an
// engine. The tree is the binomial tree of MPI libraries, or the caller's. Barriers are not supported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arrival.h"
#include "script.h"
#include "simulation.h"

namespace mcastcoll::sim {

// The trees of point-to-point broadcasts, for Karonis et al., "Exploiting Hierarchy in Parallel Computer
// Networks to Optimize Collective Operation Performance" (IPDPS 2000). All are built from one step: the
// members of a cluster are split into the inner clusters, whose leaders get the message first, and so on
// inwards. The root leads its cluster at every level, otherwise the lowest rank does.
//
//   binomial    no clusters: as in MPICH without topology information
//   by machine  MagPIe's two levels with machines as clusters: flat between machines, binomial inside
//   by site     the same with sites as clusters
//   multilevel  sites, then machines, then processes; flat between sites, binomial otherwise
//
// Flat between sites, since with long latencies all messages are in flight at once; binomial where sending
// costs more than waiting.
//
// A Tree has the children of each rank, in the order of sending.
using Tree = std::vector<std::vector<std::uint32_t>>;
using TreeOf = std::function<Tree(std::uint32_t ranks, std::uint32_t root)>;

enum class TreeShape : std::uint8_t { binomial, by_machine, by_site, multilevel };
inline constexpr TreeShape kTreeShapes[] = {TreeShape::binomial, TreeShape::by_machine, TreeShape::by_site,
                                            TreeShape::multilevel};
constexpr std::string_view name_of(TreeShape shape) {
    constexpr std::string_view kNames[] = {"binomial", "by_machine", "by_site", "multilevel"};
    return kNames[static_cast<std::uint8_t>(shape)];
}

// Returns the function that builds trees of this shape; rank r is host r of the layout.
TreeOf tree_of(TreeShape shape, const Layout& layout = {});

class MessageTree : public Simulation {
  public:
    MessageTree(const Conditions& conditions, std::uint32_t ranks, std::vector<Step> script,
                Nanoseconds settle, TreeOf tree_of = sim::tree_of(TreeShape::binomial),
                const Arrival& arrival = {});

    // Runs all broadcasts, each after the previous broadcast has completed everywhere. Returns an error
    // message or "".
    std::string run() override;

  private:
    void on_packet(std::uint32_t, Bytes) override {}
    void on_message(std::uint32_t rank, std::uint32_t from, Bytes message) override;
    void on_wake(std::uint32_t rank, std::uint32_t tag) override;
    void begin_step();
    void forward(std::uint32_t rank);

    const std::uint32_t ranks_;
    const std::vector<Step> script_;
    const Arrival arrival_;
    const Nanoseconds settle_;
    const TreeOf tree_of_;
    Tree tree_;  // of the current step
    std::vector<std::byte> content_;
    std::vector<bool> entered_, has_;
};

}  // namespace mcastcoll::sim
