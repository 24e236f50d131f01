// The places of a group's members, and the levels in which one member takes part.
//
// Hosts, segments and sites are clusters of members (Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan:
// Exploiting Hierarchy in Parallel Computer Networks, IPDPS 2000). The lowest rank of a cluster leads it. A
// host leader represents the host in its segment, a segment leader the segment in the group. A segment is the
// domain of a multicast; a site consists of one or more segments near each other. Data for another site goes
// to a single segment, which forwards the data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"

namespace mcastcoll::levels {

// Clusters are numbered from 0 in the order of their first members.
struct MemberPlace {
    std::uint32_t segment = 0, host = 0, site = 0;
};

inline constexpr std::uint32_t kNotThere = UINT32_MAX;

using Ranks = std::span<const std::uint32_t>;

// All members, hosts, segments and sites as one array of numbers, which the processes of a host share. This
// class is a view of the array and does not own it.
class Places {
  public:
    // Members of one host with different segments count to their leader's segment; the same holds for
    // segments in sites.
    static std::vector<std::uint32_t> lay_out(const std::vector<MemberPlace>& places);
    // Returns nothing if a number in the array is out of bounds, which lay_out() never produces.
    static std::optional<Places> view(Ranks numbers);

    std::uint32_t members() const { return static_cast<std::uint32_t>(host_of_.size()); }
    std::uint32_t host_of(std::uint32_t rank) const { return host_of_[rank]; }
    // The host leaders, and the segment leaders.
    Ranks host_leaders() const { return host_leaders_; }
    Ranks segment_leaders() const { return segment_leaders_; }
    // In ascending order.
    Ranks members_of(std::uint32_t host) const {
        return by_host_.subspan(starts_[host], starts_[host + 1] - starts_[host]);
    }
    std::uint32_t segment_of_host(std::uint32_t host) const { return segment_of_host_[host]; }
    std::uint32_t site_of_segment(std::uint32_t segment) const { return site_of_segment_[segment]; }

  private:
    Places() = default;

    Ranks host_of_;                 // by rank
    Ranks host_leaders_, by_host_;  // by host; ranks
    Ranks starts_;                  // of each host in by_host_, and the end
    Ranks segment_of_host_, segment_leaders_, site_of_segment_;
};

class Placement {
  public:
    // The placement of one member. The array under `places` must outlive it.
    Placement(std::uint32_t self, const Places& places);
    // With an array of its own.
    Placement(std::uint32_t self, const std::vector<MemberPlace>& places);

    std::uint32_t self() const { return self_; }
    std::uint32_t members() const { return places_.members(); }
    std::uint32_t host_of(std::uint32_t rank) const { return places_.host_of(rank); }
    std::uint32_t segment_of(std::uint32_t rank) const { return places_.segment_of_host(host_of(rank)); }
    std::uint32_t site_of(std::uint32_t rank) const { return places_.site_of_segment(segment_of(rank)); }
    std::uint32_t host_leader(std::uint32_t rank) const { return host_leaders()[host_of(rank)]; }

    // The ranks of: all host leaders; this member's host; the host leaders in this segment; all segment
    // leaders.
    Ranks host_leaders() const { return places_.host_leaders(); }
    Ranks host() const { return places_.members_of(host_of(self_)); }
    const std::vector<std::uint32_t>& segment() const { return segment_; }
    Ranks segments() const { return places_.segment_leaders(); }
    std::size_t hosts() const { return host_leaders().size(); }

    // This member's place in the host, and, on a host leader, in the segment; else kNotThere.
    std::uint32_t host_self() const { return host_self_; }
    std::uint32_t segment_self() const { return segment_self_; }
    bool leads_host() const { return host_self_ == 0; }
    bool leads_segment() const { return segments()[segment_of(self_)] == self_; }

    // The member of this host, or of this segment, from which a broadcast of this root arrives: the root
    // itself, which replaces its host's leader, or the leader that receives from outside.
    std::uint32_t host_root(std::uint32_t root) const;
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
