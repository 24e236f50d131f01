// Where the members of a group are, and which levels one of them takes part in.
//
// Hosts, segments and sites are clusters of members (Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan:
// Exploiting Hierarchy in Parallel Computer Networks, IPDPS 2000). The lowest rank of a cluster leads it. A
// host's leader stands for it among the hosts of its segment, a segment's leader among the segments. A
// segment is what multicasts reach; a site is several of them that are near each other. Whoever sends to
// another site sends to one segment of it, which passes it on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace mcastcoll::levels {

// Clusters are numbered from 0 in the order of their first members.
struct MemberPlace {
    std::uint32_t segment = 0, host = 0, site = 0;
};

inline constexpr std::uint32_t kNotThere = UINT32_MAX;

class Placement {
  public:
    // Members of one host that claim different segments are of their leader's; so are segments in sites.
    Placement(std::uint32_t self, std::vector<MemberPlace> places);

    std::uint32_t self() const { return self_; }
    std::uint32_t members() const { return static_cast<std::uint32_t>(places_.size()); }
    std::uint32_t segment_of(std::uint32_t rank) const { return places_[rank].segment; }
    std::uint32_t site_of(std::uint32_t rank) const { return places_[rank].site; }
    std::uint32_t host_of(std::uint32_t rank) const { return places_[rank].host; }
    std::uint32_t host_leader(std::uint32_t rank) const { return host_leaders_[places_[rank].host]; }

    // Ranks of the leaders of all hosts, of this member's own host, of the leaders of its segment's hosts,
    // and of the leaders of all segments.
    const std::vector<std::uint32_t>& host_leaders() const { return host_leaders_; }
    const std::vector<std::uint32_t>& host() const { return host_; }
    const std::vector<std::uint32_t>& segment() const { return segment_; }
    const std::vector<std::uint32_t>& segments() const { return segment_leaders_; }
    std::size_t hosts() const { return host_leaders_.size(); }

    // This member's place in its own host, and in the segment if it leads its host; or kNotThere.
    std::uint32_t host_self() const { return host_self_; }
    std::uint32_t segment_self() const { return segment_self_; }
    bool leads_host() const { return host_self_ == 0; }
    bool leads_segment() const { return segment_leaders_[segment_of(self_)] == self_; }

    // The member of this host, or of this segment, that a broadcast of this root comes from: the root itself,
    // who replaces its host's leader, or whoever stands for the outside.
    std::uint32_t host_root(std::uint32_t root) const;
    std::uint32_t segment_root(std::uint32_t root) const;

  private:
    std::uint32_t self_;
    std::vector<MemberPlace> places_;
    std::vector<std::uint32_t> host_leaders_, segment_leaders_, host_, segment_;
    std::uint32_t host_self_ = 0, segment_self_ = kNotThere;
};

}  // namespace mcastcoll::levels
