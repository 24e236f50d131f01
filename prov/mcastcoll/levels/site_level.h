// The level between segments: trees of reliable messages, one between sites and one between the segments of
// each site. The trees are flat unless the user sets another shape, because links between sites have long
// delays and each is to be crossed once. In a broadcast the root sends the message once to every other site,
// and to every other segment of the root's site. In a reduction each leader sends its segment's vector once,
// and the first segment's leader returns the result. Only the first segment of each site takes part in the
// tree between sites, and forwards within its own site: a link between sites is crossed once, however many
// segments are at its ends.
//
// Two segments exchange short vectors, and both combine. The link carries as many vectors as with a vector
// one way and a result back, in half the time.
//
// A piece for a member that does not know the group yet would be lost. So segments first exchange hellos
// (empty grants): each leader sends hellos to the first segment's leader, which answers when it has a hello
// from every segment.
#pragma once

#include "levels/message_level.h"
#include "levels/placement.h"
#include "topology/algorithms.h"

namespace mcastcoll::levels {

// Interval between unanswered hellos, doubled from the shortest to the longest.
inline constexpr Nanoseconds kMinHelloInterval = Nanoseconds::from_ms(5);
inline constexpr Nanoseconds kMaxHelloInterval = Nanoseconds::from_ms(500);

// `self` and `members` are taken from the placement.
struct SiteConfig : MessageConfig {
    topology::Algorithm algorithm;         // shape of the tree between sites
    topology::Algorithm within_algorithm;  // shape of the tree between the segments of a site
};

class SiteLevel final : public MessageLevel {
  public:
    SiteLevel(const Placement& placement, const SiteConfig& config);

    // Starts sending hellos. Do not post before connected().
    void start(Nanoseconds now);
    bool connected() const { return connected_; }

    int post(LevelOperation& operation, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override;

  private:
    struct Neighbours {
        bool is_root = false;
        std::uint32_t parent = 0;
        std::vector<std::uint32_t> children;
    };

    bool is_first() const { return placement_.segments().front() == placement_.self(); }
    void send_hello_to_first(Nanoseconds now);
    void on_grant(Peer& from) override;
    Neighbours neighbours(const LevelOperation& operation) const;
    void connect(const std::vector<std::uint32_t>& nodes, const topology::Algorithm& algorithm,
                 Neighbours& result) const;
    bool exchanges(const LevelOperation& operation) const;
    void make_exchange(const LevelOperation& operation, Schedule& schedule) const;
    void make_tree(const LevelOperation& operation, Schedule& schedule) const;

    const Placement& placement_;
    const topology::Algorithm algorithm_, within_algorithm_;
    bool connected_ = false;
    Nanoseconds hello_at_ = kNever, hello_interval_ = kMinHelloInterval;
};

}  // namespace mcastcoll::levels
