// What the user says about the topology: FI_MCASTCOLL_TOPOLOGY, a few words or a file. Pure: discover.h
// reads the file.
//
// Words, separated by commas:
//
//     auto                         what is discovered counts (the default)
//     flat                         one level: everybody alone on its host, all in one segment
//     -LEVEL                       this level does not count: any but the wan
//     ALGORITHM@LEVEL              how a level connects what lies in it: chain@wan, 4-ary@segment
//     site=NAME                    this process is at that site; also segment=, host=
//     site=NAME:SUBNET,NAME:SUBNET ...   where a process is by its own address; the longest prefix counts
//
// host=NAME divides a real host, it never joins two: what cannot share memory must not be told to.
//
// In a file each line is one of these; # begins a comment:
//
//     auto                         site NAME [SUBNET ...]        (also segment, host)
//     flat                         level LEVEL on|off
//     algorithm LEVEL ALGORITHM
#pragma once

#include "base/result.h"
#include "topology/policy.h"
#include "topology/subnet.h"

namespace mcastcoll::topology {

class Override {
  public:
    // The error says where and what is allowed.
    static Result<Override> parse_words(std::string_view text);
    // `file` is its name, for complaints.
    static Result<Override> parse_file(std::string_view text, std::string_view file);

    // What a list of sites says; where the user has given sites addresses already, those count.
    bool places_sites() const;
    void add_site(Name name, const Subnet& subnet) { assignments_.push_back({Level::site, name, subnet}); }

    // For the group this process is rank 0 of.
    const Policy& policy() const { return policy_; }
    // The name that is given to a process with this own address (4 or 16 bytes, or none), empty: none.
    Name name_at(Level level, Bytes address) const;
    // Puts what is given into a discovered place.
    void apply(Place& place, Bytes address) const;

  private:
    friend class OverrideParser;
    struct Assignment {
        Level level;
        Name name;
        Subnet subnet;
    };

    Policy policy_;
    std::array<Name, kLevels> own_{};
    std::vector<Assignment> assignments_;
};

}  // namespace mcastcoll::topology
