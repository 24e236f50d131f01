// The user's topology settings: FI_MCASTCOLL_TOPOLOGY, a list of words or a file. Makes no system calls:
// discover.h reads the file.
//
// Words, separated by commas:
//
//     auto                         use the discovered place (the default)
//     flat                         one level: each process is a host of its own, all in one segment
//     -LEVEL                       ignore this level; any level except the wan
//     ALGORITHM@LEVEL              algorithm of a level for connecting clusters: chain@wan, 4-ary@segment
//     site=NAME                    this process is at that site; also segment=, host=
//     site=NAME:SUBNET,NAME:SUBNET ...   site by the process's own address; the longest prefix counts
//
// host=NAME divides a real host and never joins two: processes that cannot share memory must not try.
//
// In a file each line is one of these; # starts a comment:
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
    // Parses a list of words. The error names the position and the allowed values.
    static Result<Override> parse_words(std::string_view text);
    // Parses the text of a file. `file`: the file's name, for error messages.
    static Result<Override> parse_file(std::string_view text, std::string_view file);

    // Whether subnets are assigned to sites.
    bool places_sites() const;
    // Adds a site's subnet from the sites file. Subnets that the user has given take precedence.
    void add_site(Name name, const Subnet& subnet) { assignments_.push_back({Level::site, name, subnet}); }

    // The policy of the groups in which this process is rank 0.
    const Policy& policy() const { return policy_; }
    // Returns the name that the user has given to this process's cluster at this level. `address`: the
    // process's own address, 4 or 16 bytes, or empty. Empty if the user has given no name.
    Name name_at(Level level, Bytes address) const;
    // Replaces the coordinates for which the user has given names in a discovered place.
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
