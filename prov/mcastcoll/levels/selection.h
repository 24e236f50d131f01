// Which algorithm carries out which operation: a table that one can read, print and replace.
//
// A row names an operation, ranges of members, hosts and bytes, and an algorithm. The first row that matches
// decides; the user's rows come before the built-in ones, so a file needs to hold only what is to be
// different. As text a row is a line:
//
//     # operation  members  hosts  bytes   algorithm
//     allgather    *        2-     -8K     reduction
//     allgather    2-64     *      *       chains:4
//     alltoall     *        2-     1M-     none
//
// Bytes are those of the longest buffer that a member has: the message, the vector, or the blocks of all
// members together. "none" says that the caller had better use something of its own (advice() of the group);
// who asks all the same gets what the rows below say.
//
// All members must come to the same choice, so rank 0's table holds for a group: its rows for so many members
// and hosts travel in the welcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "levels/level.h"

namespace mcastcoll::levels {

// The numbers travel in the welcome.
enum class Algorithm : std::uint8_t {
    levels,     // one walk through the levels: shared memory, multicast, messages between sites
    messages,   // messages among all members
    reduction,  // an allgather as an allreduce of vectors that are zero but for one block
    chains,     // an allgather as broadcasts, one of each member
    split,      // an allreduce as a reduce_scatter, then chains
    none
};
inline constexpr std::size_t kAlgorithms = 6;
inline constexpr std::size_t kKinds = kCollectiveKinds;
inline constexpr std::uint16_t kMostChains = 64;
// Rows that a group can have; some of them are kept for the built-in ones.
inline constexpr std::size_t kMostRows = 128, kBuiltInMost = 32;

// Ends in NUL.
std::string_view name_of(Algorithm algorithm);
using mcastcoll::name_of;

struct Range {
    std::uint64_t least = 0, most = UINT64_MAX;
    bool has(std::uint64_t value) const { return least <= value && value <= most; }
    bool operator==(const Range&) const = default;
};

// Chains where a table says no number, or does not ask for chains: blocks of different lengths, or no other
// algorithm is there.
constexpr std::uint16_t kUsualChains = 2;

struct Choice {
    Algorithm algorithm = Algorithm::levels;
    std::uint16_t chains = 0;  // that run side by side; of chains and split
    bool operator==(const Choice&) const = default;
};

struct Row {
    Kind kind = Kind::broadcast;
    Range members, hosts, bytes;
    Choice choice;
    std::uint32_t line = 0;     // of the user's file; 0: built in
    std::string_view why = {};  // of a built-in one
};

// What holds without a file.
std::span<const Row> built_in_rows();

// A file's rows, without the built-in ones. The error names the line and what may stand there.
Result<std::vector<Row>> parse_selection(std::string_view text);
std::string to_text(const Choice& choice);
// One line, with columns of fixed width.
std::string to_text(const Row& row);

// The bytes by which rows are chosen, from the bytes of a leg or request.
std::uint64_t longest_buffer(Kind kind, std::size_t bytes, std::size_t members);

// The rows for one group.
class Selection {
  public:
    // Nothing but walks through the levels, and messages for blocks.
    Selection() = default;
    // The user's rows come first, then the built-in ones.
    Selection(std::span<const Row> user, std::uint32_t members, std::size_t hosts);

    struct Decision {
        Choice choice;
        bool aside = false;  // "none": better left to the caller
    };
    Decision decide(Kind kind, std::uint64_t bytes) const;

    // u8 version (1), u8 rows, then u8 kind, u8 algorithm, u16 chains, u64 least, u64 most bytes of each.
    std::vector<std::byte> encode() const;
    static std::optional<Selection> decode(Bytes bytes);

  private:
    struct Rule {
        Kind kind = Kind::broadcast;
        Choice choice;
        Range bytes;
    };
    std::vector<Rule> rules_;
};

// Whether an operation can be carried out so.
bool allowed(Kind kind, Algorithm algorithm);

}  // namespace mcastcoll::levels
