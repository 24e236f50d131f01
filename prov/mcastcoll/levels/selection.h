// Selects the algorithm of an operation from a table that users can read, print and replace.
//
// A row consists of an operation, ranges of members, hosts and bytes, and an algorithm. The first matching
// row decides. User rows precede the built-in rows, so a file contains differences only. A row is one line of
// text (grammar: base/rule_line.h):
//
//     # operation  members  hosts  bytes   algorithm
//     allgather    *        2-     -8K     reduction
//     allgather    2-64     *      *       chains:4
//     allreduce    *        2-     1M-     split:4
//
// Bytes are those of the longest buffer of a member: the message, the vector, or the blocks of all members
// together.
//
// All members must make the same choice, so rank 0's table holds for a group: its rows for this number of
// members and hosts travel in the welcome.
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

// The numeric values are sent in the welcome.
enum class Algorithm : std::uint8_t {
    levels,     // one operation through the levels: shared memory, multicast, messages between sites
    messages,   // messages among all members
    reduction,  // an allgather as an allreduce of vectors that are zero except for one block
    chains,     // an allgather as one broadcast per member
    split       // an allreduce as a reduce_scatter, then chains
};
inline constexpr std::size_t kAlgorithms = 5;
inline constexpr std::size_t kKinds = kCollectiveKinds;
inline constexpr std::uint16_t kMaxChains = 64;
// Limit for the rows of a group, and the share reserved for built-in rows.
inline constexpr std::size_t kMaxRows = 128, kMaxBuiltIn = 32;

std::string_view name_of(Algorithm algorithm);
using mcastcoll::name_of;

struct Range {
    std::uint64_t min = 0, max = UINT64_MAX;
    bool has(std::uint64_t value) const { return min <= value && value <= max; }
    bool operator==(const Range&) const = default;
};

// The number of chains if a table gives none, or if chains are used without a row: for blocks of different
// lengths, or as the only possible algorithm.
constexpr std::uint16_t kUsualChains = 2;

struct Choice {
    Algorithm algorithm = Algorithm::levels;
    std::uint16_t chains = 0;  // parallel chains; for chains and split only
    bool operator==(const Choice&) const = default;
};

struct Row {
    Kind kind = Kind::broadcast;
    Range members, hosts, bytes;
    Choice choice;
    std::uint32_t line = 0;     // in the user's file; 0: built in
    std::string_view why = {};  // reason for a built-in row
};

// The rows that follow the user's rows.
std::span<const Row> built_in_rows();

// Parses a file's rows, without the built-in ones. The error names the line and the allowed values.
Result<std::vector<Row>> parse_selection(std::string_view text);
std::string to_text(const Choice& choice);
// Returns one line, with columns of fixed width.
std::string to_text(const Row& row);

// The byte count for choosing a row, from the bytes of a `LevelOperation` or `Request`.
std::uint64_t longest_buffer(Kind kind, std::size_t bytes, std::size_t members);

// The rows for one group.
class Selection {
  public:
    // An empty table: operations go through the levels, and blocks as messages.
    Selection() = default;
    // The user's rows come first, then the built-in ones.
    Selection(std::span<const Row> user, std::uint32_t members, std::size_t hosts);

    Choice decide(Kind kind, std::uint64_t bytes) const;

    // Format: u8 version (1), u8 number of rows; for each row u8 kind, u8 algorithm, u16 chains, u64 minimum
    // and u64 maximum number of bytes.
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

// Whether this algorithm can implement this operation.
bool allowed(Kind kind, Algorithm algorithm);

}  // namespace mcastcoll::levels
