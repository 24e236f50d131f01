// Between segments: trees of reliable messages, one between sites and one between the segments of each site.
// They are flat unless the user says otherwise, because links between sites are long and each is to be
// crossed once: the root of a broadcast sends the message once to every other site, and to every other
// segment of its own; of a reduction each leader sends its segment's vector once, and the first segment's
// leader the result back. Of each site only the first segment takes part in the tree between sites, and
// passes on within its own: so a link between sites is crossed once, however many segments are at its ends.
//
// Two segments exchange what is short: each sends the other its vector, and both combine. The link is crossed
// as often as by a vector there and a result back, in half the time.
//
// A piece for a member that has not heard of the group yet would be lost. So segments greet before they work:
// the first one's leader is sent an empty grant again and again, and when it has one from everybody it
// answers all.
#pragma once

#include "levels/message_level.h"
#include "topology/policy.h"

namespace mcastcoll::levels {

// How often a segment that is not answered greets: less and less.
inline constexpr Nanoseconds kLeastGreetInterval = Nanoseconds::from_ms(5);
inline constexpr Nanoseconds kMostGreetInterval = Nanoseconds::from_ms(500);

// Who this member is, and how many there are, is as in the placement.
struct SiteConfig : MessageConfig {
    topology::Algorithm algorithm;         // the shape of the tree: between sites,
    topology::Algorithm within_algorithm;  // and between the segments of one
};

class SiteLevel final : public MessageLevel {
  public:
    SiteLevel(const Placement& placement, const SiteConfig& config);

    // Begins to greet. Nobody posts before greeted().
    void start(Nanoseconds now);
    bool greeted() const { return greeted_; }

    int post(Leg& leg, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override;

  private:
    struct Neighbours {
        bool is_root = false;
        std::uint32_t parent = 0;
        std::vector<std::uint32_t> children;
    };

    bool is_first() const { return placement_.segments().front() == placement_.self(); }
    void greet_first(Nanoseconds now);
    void on_grant(Peer& from) override;
    Neighbours neighbours(const Leg& leg) const;
    void connect(const std::vector<std::uint32_t>& nodes, const topology::Algorithm& algorithm,
                 Neighbours& result) const;
    bool exchanges(const Leg& leg) const;
    void plan_exchange(const Leg& leg, Schedule& plan) const;
    void plan_tree(const Leg& leg, Schedule& plan) const;

    const Placement& placement_;
    const topology::Algorithm algorithm_, within_algorithm_;
    bool greeted_ = false;
    Nanoseconds greet_at_ = kNever, greet_interval_ = kLeastGreetInterval;
};

}  // namespace mcastcoll::levels
