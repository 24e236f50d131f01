// Where the members of a group are, and which levels one of them takes part in.
//
// Hosts, segments and sites are clusters of members (Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan:
// Exploiting Hierarchy in Parallel Computer Networks, IPDPS 2000). The lowest rank of a cluster leads it. A
// host's leader stands for it among the hosts of its segment, a segment's leader among the segments. A
// segment is what multicasts reach; a site is several of them that are near each other. Whoever sends to
// another site sends to one segment of it, which passes it on.
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

// All members, hosts, segments and sites, as numbers end to end: the processes of a host share one such
// array. A view of it, which lies elsewhere.
class Places {
  public:
    // Members of one host that claim different segments are of their leader's; so are segments in sites.
    static std::vector<std::uint32_t> lay_out(const std::vector<MemberPlace>& places);
    // Nothing when it is not what lay_out() makes: some number leads beyond its end.
    static std::optional<Places> view(Ranks numbers);

    std::uint32_t members() const { return static_cast<std::uint32_t>(host_of_.size()); }
    std::uint32_t host_of(std::uint32_t rank) const { return host_of_[rank]; }
    // Leaders of all hosts, and of all segments.
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
    // Of this member. The numbers that the places are a view of outlive it.
    Placement(std::uint32_t self, const Places& places);
    // With numbers of its own.
    Placement(std::uint32_t self, const std::vector<MemberPlace>& places);

    std::uint32_t self() const { return self_; }
    std::uint32_t members() const { return places_.members(); }
    std::uint32_t host_of(std::uint32_t rank) const { return places_.host_of(rank); }
    std::uint32_t segment_of(std::uint32_t rank) const { return places_.segment_of_host(host_of(rank)); }
    std::uint32_t site_of(std::uint32_t rank) const { return places_.site_of_segment(segment_of(rank)); }
    std::uint32_t host_leader(std::uint32_t rank) const { return host_leaders()[host_of(rank)]; }

    // Ranks of the leaders of all hosts, of this member's own host, of the leaders of its segment's hosts,
    // and of the leaders of all segments.
    Ranks host_leaders() const { return places_.host_leaders(); }
    Ranks host() const { return places_.members_of(host_of(self_)); }
    const std::vector<std::uint32_t>& segment() const { return segment_; }
    Ranks segments() const { return places_.segment_leaders(); }
    std::size_t hosts() const { return host_leaders().size(); }

    // This member's place in its own host, and in the segment if it leads its host; or kNotThere.
    std::uint32_t host_self() const { return host_self_; }
    std::uint32_t segment_self() const { return segment_self_; }
    bool leads_host() const { return host_self_ == 0; }
    bool leads_segment() const { return segments()[segment_of(self_)] == self_; }

    // The member of this host, or of this segment, that a broadcast of this root comes from: the root itself,
    // who replaces its host's leader, or whoever stands for the outside.
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
