// Strong types shared by all layers: passing a rank where a fragment index is expected does not compile.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace mcastcoll {

// Time for the engine: nanoseconds of a monotonic clock or of the simulator's virtual clock. Not a
// std::chrono type, because a std::chrono time point names its clock, and pure code has none: times are
// passed in.
struct Nanoseconds {
    std::int64_t value = 0;
    constexpr auto operator<=>(const Nanoseconds&) const = default;
    constexpr Nanoseconds operator+(Nanoseconds other) const { return {value + other.value}; }
    constexpr Nanoseconds operator-(Nanoseconds other) const { return {value - other.value}; }
    static constexpr Nanoseconds from_us(std::int64_t us) { return {us * 1000}; }
    static constexpr Nanoseconds from_ms(std::int64_t ms) { return {ms * 1000 * 1000}; }
};

inline constexpr Nanoseconds kNever{INT64_MAX};

// Position of a member in its group's ordered address vector set.
enum class Rank : std::uint32_t {};
inline constexpr Rank kNoRank{UINT32_MAX};
constexpr std::uint32_t index_of(Rank rank) {
    return static_cast<std::uint32_t>(rank);
}
constexpr Rank rank_of(std::size_t index) {
    return static_cast<Rank>(index);
}

// Random 64-bit identifier of a group, carried in every packet.
enum class GroupKey : std::uint64_t {};

// Incarnation of a group. Packets of an older epoch are treated as foreign.
enum class Epoch : std::uint32_t {};

// Sequence number of a collective operation in its group, counted from 0 in posting order. 64 bits never
// wrap.
enum class OperationId : std::uint64_t {};
constexpr std::uint64_t number_of(OperationId id) {
    return static_cast<std::uint64_t>(id);
}
constexpr OperationId operation_of(std::uint64_t count) {
    return static_cast<OperationId>(count);
}

// Index of a fragment in its operation.
enum class FragmentIndex : std::uint32_t {};
constexpr std::uint32_t index_of(FragmentIndex index) {
    return static_cast<std::uint32_t>(index);
}
constexpr FragmentIndex fragment_of(std::size_t index) {
    return static_cast<FragmentIndex>(index);
}

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

}  // namespace mcastcoll
