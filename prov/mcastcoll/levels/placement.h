// The places of a group's members, and the levels in which one member takes part.
//
// Hosts, segments and sites are clusters of members (Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan:
// Exploiting Hierarchy in Parallel Computer Networks, IPDPS 2000). The lowest rank of a cluster leads it. A
// host leader represents the host in its segment, a segment leader the segment in the group. A segment is the
// domain of a multicast; a site consists of one or more segments near each other. Data for another site goes
// to a single segment, which forwards the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "levels/places.h"

namespace mcastcoll::levels {

class Placement {
  public:
    // The placement of one member. The array under `places` must outlive it.
    Placement(std::uint32_t self, const Places& places);
    // The placement of one member, with an array of its own.
    Placement(std::uint32_t self, const std::vector<MemberPlace>& places);

    std::uint32_t self() const { return self_; }
    std::uint32_t members() const { return places_.members(); }
    std::uint32_t host_of(std::uint32_t rank) const { return places_.host_of(rank); }
    std::uint32_t segment_of(std::uint32_t rank) const { return places_.segment_of_host(host_of(rank)); }
    std::uint32_t site_of(std::uint32_t rank) const { return places_.site_of_segment(segment_of(rank)); }
    std::uint32_t host_leader(std::uint32_t rank) const { return host_leaders()[host_of(rank)]; }

    // The ranks of all host leaders.
    Ranks host_leaders() const { return places_.host_leaders(); }
    // The ranks on this member's host.
    Ranks host() const { return places_.members_of(host_of(self_)); }
    // The ranks of the host leaders in this member's segment.
    const std::vector<std::uint32_t>& segment() const { return segment_; }
    // The ranks of all segment leaders.
    Ranks segments() const { return places_.segment_leaders(); }
    std::size_t hosts() const { return host_leaders().size(); }

    // This member's place in host().
    std::uint32_t host_self() const { return host_self_; }
    // On a host leader: this member's place in segment(). On other members: kNotThere.
    std::uint32_t segment_self() const { return segment_self_; }
    bool leads_host() const { return host_self_ == 0; }
    bool leads_segment() const { return segments()[segment_of(self_)] == self_; }

    // The place in host() of the member that sends a broadcast of this root within the host: the root itself,
    // or, if the root is on another host, the host's leader.
    std::uint32_t host_root(std::uint32_t root) const;
    // The place in segment() of the host leader that sends a broadcast of this root within the segment: the
    // leader of the root's host, or, if the root is in another segment, the segment's leader.
    std::uint32_t segment_root(std::uint32_t root) const;

  private:
    std::shared_ptr<const std::vector<std::uint32_t>> own_numbers_;
    std::uint32_t self_;
    Places places_;
    std::vector<std::uint32_t> segment_;
    std::uint32_t host_self_ = 0, segment_self_ = kNotThere;

    Placement(std::uint32_t self, std::shared_ptr<const std::vector<std::uint32_t>> numbers);
};

}  // namespace mcastcoll::levels
