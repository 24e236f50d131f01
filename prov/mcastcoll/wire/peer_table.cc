#include "wire/peer_table.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <new>
#include <numeric>

#include "wire/bytes.h"

namespace mcastcoll::wire {
namespace {

// The default level compresses a table of 1,024 members in a millisecond; level 19 takes a hundred, for a
// table shorter by a twentieth.
constexpr int kLevel = ZSTD_CLEVEL_DEFAULT;
// First bytes of a zstd frame; older formats and skippable frames begin differently.
constexpr std::uint32_t kFrameBegins = 0x28b52ffd;

constexpr std::array kStrings{&Peer::private_address, &Peer::multicast_source, &Peer::watch_point,
                              &Peer::place};

// Ranks in the order of the table's rows.
using Order = std::vector<std::uint32_t>;

Order by_rank(std::size_t members) {
    Order order(members);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

Order by_place(const std::vector<Peer>& peers) {
    Order order = by_rank(peers.size());
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t one, std::uint32_t other) {
        return peers[one].place < peers[other].place;
    });
    return order;
}

// Sorts rows by the length of a string, since strings with names of equal length have the bytes after the
// name in the same columns.
Order by_length(Order order, const std::vector<Peer>& peers, ByteString Peer::*string) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t one, std::uint32_t other) {
        return (peers[one].*string).size() < (peers[other].*string).size();
    });
    return order;
}

// Numbers are stored as distances from their predecessor. Distances repeat if ranks are assigned to hosts in
// a regular way, and if the members agree on the sequence of the join.
void put_numbers(ByteString& table, const std::vector<std::uint32_t>& numbers) {
    for (std::size_t byte = 0; byte < sizeof(std::uint32_t); ++byte) {
        std::uint32_t last = UINT32_MAX;
        for (const std::uint32_t number : numbers)
            table.push_back(static_cast<std::byte>((number - last) >> (24 - 8 * byte))), last = number;
    }
}

std::vector<std::uint32_t> get_numbers(Bytes columns) {
    std::vector<std::uint32_t> numbers(columns.size() / sizeof(std::uint32_t));
    std::uint32_t last = UINT32_MAX;
    for (std::size_t row = 0; row < numbers.size(); ++row) {
        std::uint32_t distance = 0;
        for (std::size_t byte = 0; byte < sizeof distance; ++byte)
            distance = distance << 8 | std::to_integer<std::uint32_t>(columns[byte * numbers.size() + row]);
        numbers[row] = last += distance;
    }
    return numbers;
}

// Whether each rank occurs once.
bool is_order(const Order& order) {
    std::vector<bool> seen(order.size());
    for (const std::uint32_t rank : order) {
        if (rank >= seen.size() || seen[rank]) return false;
        seen[rank] = true;
    }
    return true;
}

void put_columns(ByteString& table, const std::vector<Peer>& peers, const Order& order,
                 ByteString Peer::*string) {
    std::size_t longest = 0;
    for (const std::uint32_t rank : order) {
        const ByteString& one = peers[rank].*string;
        assert(one.size() <= kMaxAddressBytes);
        table.push_back(static_cast<std::byte>(one.size()));
        longest = std::max(longest, one.size());
    }
    const Order rows = by_length(order, peers, string);
    for (std::size_t at = 0; at < longest; ++at)
        for (const std::uint32_t rank : rows)
            if (const ByteString& one = peers[rank].*string; at < one.size()) table.push_back(one[at]);
}

// The rest of the table, or nothing if the table is too short.
std::optional<Bytes> get_columns(Bytes rest, std::vector<Peer>& peers, const Order& order,
                                 ByteString Peer::*string) {
    if (rest.size() < peers.size()) return {};
    const Bytes lengths = rest.first(peers.size());
    rest = rest.subspan(peers.size());
    std::size_t longest = 0, all = 0;
    for (const std::byte length : lengths) {
        longest = std::max(longest, std::to_integer<std::size_t>(length));
        all += std::to_integer<std::size_t>(length);
    }
    if (longest > kMaxAddressBytes || rest.size() < all) return {};
    for (std::size_t row = 0; row < order.size(); ++row)
        (peers[order[row]].*string).resize(std::to_integer<std::size_t>(lengths[row]));
    const Order rows = by_length(order, peers, string);
    std::size_t next = 0;
    for (std::size_t at = 0; at < longest; ++at)
        for (const std::uint32_t rank : rows)
            if (ByteString& one = peers[rank].*string; at < one.size()) one[at] = rest[next++];
    return rest.subspan(all);
}

ByteString compress(Bytes table) {
    ByteString packed(ZSTD_compressBound(table.size()));
    const std::size_t length =
        ZSTD_compress(packed.data(), packed.size(), table.data(), table.size(), kLevel);
    // The buffer is always large enough, so the error is lack of memory.
    if (ZSTD_isError(length) != 0) throw std::bad_alloc();
    packed.resize(length);
    return packed;
}

// Decompresses exactly one frame, which must state its content's length, at most `max`.
std::optional<ByteString> decompress(Bytes packed, std::size_t max) {
    if (packed.size() < sizeof kFrameBegins || get<std::uint32_t>(packed.data()) != kFrameBegins) return {};
    if (ZSTD_findFrameCompressedSize(packed.data(), packed.size()) != packed.size()) return {};
    const unsigned long long length = ZSTD_getFrameContentSize(packed.data(), packed.size());
    if (length > max) return {};  // also if unknown: zstd's codes for that are the largest numbers
    ByteString table(length);
    const std::size_t got = ZSTD_decompress(table.data(), table.size(), packed.data(), packed.size());
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation) throw std::bad_alloc();
    if (got != length) return {};
    return table;
}

ByteString pack(const std::vector<Peer>& peers, const std::vector<std::uint8_t>& range_of,
                const std::vector<std::uint32_t>& sequences, const Order& order) {
    ByteString table;
    for (const std::uint8_t range : range_of) table.push_back(static_cast<std::byte>(range));
    put_numbers(table, order);
    put_numbers(table, sequences);
    for (const auto string : kStrings) put_columns(table, peers, order, string);
    return compress(table);
}

}  // namespace

ByteString pack(const std::vector<Peer>& peers, const std::vector<std::uint8_t>& range_of,
                const std::vector<std::uint32_t>& sequences) {
    assert(peers.size() == range_of.size() && peers.size() == sequences.size());
    ByteString ranked = pack(peers, range_of, sequences, by_rank(peers.size()));
    ByteString placed = pack(peers, range_of, sequences, by_place(peers));
    return placed.size() < ranked.size() ? placed : ranked;
}

std::optional<PeerTable> unpack(Bytes packed, std::size_t members) {
    const auto table = decompress(packed, members * kMaxUnpackedBytes);
    const std::size_t numbers = members * sizeof(Order::value_type);
    if (!table || table->size() < members + 2 * numbers) return {};
    std::optional<Bytes> rest = *table;
    const auto take = [&](std::size_t bytes) {
        const Bytes columns = rest->first(bytes);
        rest = rest->subspan(bytes);
        return columns;
    };
    PeerTable result;
    result.peers.resize(members);
    for (const std::byte range : take(members))
        result.range_of.push_back(std::to_integer<std::uint8_t>(range));
    const Order order = get_numbers(take(numbers));
    if (!is_order(order)) return {};
    result.sequences = get_numbers(take(numbers));
    for (const auto string : kStrings)
        if (rest) rest = get_columns(*rest, result.peers, order, string);
    if (!rest || !rest->empty()) return {};
    return result;
}

}  // namespace mcastcoll::wire
