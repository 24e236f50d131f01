// Shared by the tests of reductions: vectors that identify their contributor, and packets with these vectors.
#pragma once

#include <cstring>

#include "engine_fixture.h"

namespace mcastcoll::bench {

inline constexpr std::uint32_t kPiece = 1424;

// Returns a vector of words that depend on the contributing rank.
inline ByteString vector_of(std::uint32_t rank, std::uint64_t bytes) {
    ByteString result(bytes);
    for (std::uint64_t at = 0; at + 4 <= bytes; at += 4) {
        const auto word = static_cast<std::uint32_t>((at + 1) * 2654435761U + rank * 40503U);
        std::memcpy(result.data() + at, &word, 4);
    }
    return result;
}

// Returns the combination of these ranks' vectors, in this order.
inline ByteString mixed(const std::vector<std::uint32_t>& ranks, std::uint64_t bytes) {
    ByteString result = vector_of(ranks[0], bytes);
    for (std::size_t i = 1; i < ranks.size(); ++i)
        mix_words(result.data(), result.data(), vector_of(ranks[i], bytes).data(), bytes / 4);
    return result;
}

inline Packet packet(Kind kind, std::uint32_t sender, std::uint32_t fragment, std::uint64_t total,
                     ByteString payload = {}) {
    return {.kind = kind,
            .sender = sender,
            .fragment = fragment,
            .total = total,
            .payload = std::move(payload),
            .key = {},
            .epoch = {}};
}

inline Packet gather(std::uint32_t sender, const ByteString& vector, bool reduce = false) {
    return packet(Kind::gather, sender, 0, vector.size() | (reduce ? wire::kReduceFlag : 0), vector);
}

inline Packet pieces(std::uint32_t sender, std::uint32_t first, std::uint32_t count, const ByteString& vector,
                     bool reduce = false) {
    const std::size_t from = std::size_t{first} * kPiece;
    const std::size_t to = std::min<std::size_t>(vector.size(), from + std::size_t{count} * kPiece);
    return packet(Kind::contribution, sender, first, vector.size() | (reduce ? wire::kReduceFlag : 0),
                  ByteString(vector.begin() + static_cast<std::ptrdiff_t>(from),
                             vector.begin() + static_cast<std::ptrdiff_t>(to)));
}

// Returns the credit that these effects grant to a child; 0 if none.
inline std::uint32_t granted(const std::vector<Out>& all, std::uint32_t child) {
    std::uint32_t result = 0;
    for (const Out& out : all)
        if (out.kind == Effect::Kind::message && out.header.kind == Kind::credit && out.to == rank_of(child))
            result = index_of(out.header.fragment);
    return result;
}

inline const Out& the(const std::vector<Out>& all, Kind kind) {
    for (const Out& out : all)
        if ((out.kind == Effect::Kind::message || out.kind == Effect::Kind::multicast) &&
            out.header.kind == kind)
            return out;
    cr_assert(false, "no such packet");
    return all.front();
}

}  // namespace mcastcoll::bench
