// The places of all members of a group.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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
    Ranks host_leaders() const { return host_leaders_; }
    Ranks segment_leaders() const { return segment_leaders_; }
    // The ranks on a host, in ascending order.
    Ranks members_of(std::uint32_t host) const {
        return by_host_.subspan(starts_[host], starts_[host + 1] - starts_[host]);
    }
    std::uint32_t segment_of_host(std::uint32_t host) const { return segment_of_host_[host]; }
    std::uint32_t site_of_segment(std::uint32_t segment) const { return site_of_segment_[segment]; }

  private:
    Places() = default;

    Ranks host_of_;                 // by rank
    Ranks host_leaders_, by_host_;  // ranks, by host
    Ranks starts_;                  // of each host in by_host_, and the end
    Ranks segment_of_host_, segment_leaders_, site_of_segment_;
};

}  // namespace mcastcoll::levels
