#include "levels/exchange_level.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "reduce/slices.h"

namespace mcastcoll::levels {
namespace {

using Pattern = BlockMap::Pattern;

// Bytes that a member may have in flight in overlapping rounds.
constexpr std::size_t kOverlapBytes = 512 * 1024;
// Number of rounds that may always overlap.
constexpr std::size_t kMinOverlap = 4;
// For blocks up to these sizes algorithms are used in which several blocks share a message and a block
// travels more than once.
constexpr std::size_t kMaxBinomialBytes = 1024, kMaxBruckAlltoallBytes = 256, kMaxBruckAllgatherBytes = 16384;
constexpr std::uint32_t kMinBinomialMembers = 16, kMinBruckAlltoallMembers = 8;

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
    return reinterpret_cast<std::uintptr_t>(a) < reinterpret_cast<std::uintptr_t>(b) + b_bytes &&
           reinterpret_cast<std::uintptr_t>(b) < reinterpret_cast<std::uintptr_t>(a) + a_bytes;
}

// A node of the binomial tree over places relative to the root. Its subtree consists of `subtree` places,
// from its own on.
struct Node {
    std::uint32_t place, subtree, parent;  // place and parent relative to the root
    Node(std::uint32_t self, std::uint32_t root, std::uint32_t members)
        : place((self + members - root) % members), subtree(members), parent(place & (place - 1)) {
        if (place > 0) subtree = std::min(place & ~(place - 1), members - place);
    }
};

// Builds one schedule.
struct Maker {
    Schedule& schedule;
    const LevelOperation& operation;
    std::uint32_t self, members;

    std::uint32_t around(std::uint64_t rank) const { return static_cast<std::uint32_t>(rank % members); }
    BlockMap circle(std::uint32_t first) const { return {Pattern::circle, first, members, operation.bytes}; }
    BlockMap digit(std::uint32_t bit) const { return {Pattern::digit, bit, members, operation.bytes}; }
    std::byte* result(std::uint32_t rank) const { return operation.buffer + rank * operation.bytes; }

    void gather_linear() {
        if (self != index_of(operation.root))
            return schedule.send(index_of(operation.root), 0, 0, operation.input, operation.bytes);
        move_block(result(self), operation.input, operation.bytes);
        for (std::uint32_t i = 1; i < members; ++i)
            schedule.receive(around(self + i), 0, result(around(self + i)), operation.bytes);
    }

    void scatter_linear() {
        if (self != index_of(operation.root))
            return schedule.receive(index_of(operation.root), 0, operation.buffer, operation.bytes);
        move_block(operation.buffer, operation.input + self * operation.bytes, operation.bytes);
        for (std::uint32_t i = 1; i < members; ++i)
            schedule.send(around(self + i), 0, 0, operation.input + around(self + i) * operation.bytes,
                          operation.bytes);
    }

    // The largest subtree takes longest, so it is served last in a gather, and first in a scatter.
    void gather_binomial() {
        const Node node(self, index_of(operation.root), members);
        const std::uint32_t parent = around(node.parent + index_of(operation.root));
        if (node.place > 0 && node.subtree == 1)
            return schedule.send(parent, 0, 0, operation.input, operation.bytes);
        const bool root = node.place == 0;
        std::byte* blocks = root ? operation.buffer : schedule.room(node.subtree * operation.bytes);
        move_block(root ? result(self) : blocks, operation.input, operation.bytes);
        for (std::uint32_t step = 1; step < node.subtree; step <<= 1) {
            const std::size_t bytes = std::min(step, node.subtree - step) * operation.bytes;
            const std::uint32_t child = around(self + step);
            schedule.receive(child, 0, blocks + (root ? 0 : step * operation.bytes), bytes,
                             root ? circle(child) : BlockMap{});
        }
        if (!root) schedule.send(parent, 0, schedule.receives.size(), blocks, node.subtree * operation.bytes);
    }

    void scatter_binomial() {
        const Node node(self, index_of(operation.root), members);
        const std::uint32_t parent = around(node.parent + index_of(operation.root));
        if (node.place > 0 && node.subtree == 1)
            return schedule.receive(parent, 0, operation.buffer, operation.bytes);
        const bool root = node.place == 0;
        const std::byte* blocks = operation.input;
        if (root) {
            move_block(operation.buffer, operation.input + self * operation.bytes, operation.bytes);
        } else {
            schedule.receive(parent, 0, schedule.room(node.subtree * operation.bytes),
                             node.subtree * operation.bytes);
            blocks = schedule.scratch.data();
            schedule.copied_bytes = operation.bytes;
        }
        for (std::uint32_t step = std::bit_floor(node.subtree - 1); step > 0; step >>= 1) {
            const std::size_t bytes = std::min(step, node.subtree - step) * operation.bytes;
            const std::uint32_t child = around(self + step);
            schedule.send(child, 0, root ? 0 : 1, blocks + (root ? 0 : step * operation.bytes), bytes,
                          root ? circle(child) : BlockMap{});
        }
    }

    // In round r the partner of a member is r minus its own rank, modulo the members, which is symmetric. A
    // member skips the round in which the formula yields the member itself. Sending to and receiving from the
    // same partner lets the result overwrite the input.
    void alltoall_pairwise(std::size_t overlapping) {
        const bool in_place = operation.input == operation.buffer;
        if (in_place) schedule.order = Schedule::Order::in_place;
        move_block(result(self), operation.input + self * operation.bytes, operation.bytes);
        for (std::uint32_t round = 0; round < members; ++round) {
            const std::uint32_t partner = around(std::uint64_t{round} + members - self);
            if (partner == self) continue;
            const std::size_t before = schedule.receives.size();
            schedule.send(partner, 0, before > overlapping ? before - overlapping : 0,
                          operation.input + partner * operation.bytes, operation.bytes);
            schedule.receive(partner, 0, result(partner), operation.bytes);
        }
    }

    // Block i of the scratch memory has to move by i places; round k moves the blocks with bit k set by 2^k.
    void alltoall_bruck() {
        schedule.order = Schedule::Order::in_turn;
        schedule.unrotates = true;
        std::byte* blocks = schedule.room(members * operation.bytes);
        const std::size_t first = (members - self) * operation.bytes, rest = self * operation.bytes;
        move_block(blocks, operation.input + rest, first);
        move_block(blocks + first, operation.input, rest);
        for (std::uint32_t bit = 0; (std::uint32_t{1} << bit) < members; ++bit) {
            const std::uint32_t step = std::uint32_t{1} << bit, remainder = members % (2 * step);
            const std::uint32_t count =
                members / (2 * step) * step + (remainder > step ? remainder - step : 0);
            schedule.send(around(self + step), bit, bit, blocks, count * operation.bytes, digit(bit));
            schedule.receive(around(std::uint64_t{self} + members - step), bit, blocks,
                             count * operation.bytes, digit(bit));
        }
    }

    void allgather_ring() {
        move_block(result(self), operation.input, operation.bytes);
        const std::uint32_t right = around(self + 1), left = around(self + members - 1);
        for (std::uint32_t round = 0; round + 1 < members; ++round) {
            schedule.send(right, round, round, result(around(self + members - round)), operation.bytes);
            schedule.receive(left, round, result(around(left + members - round)), operation.bytes);
        }
    }

    // A member's range of blocks, starting with its own, doubles in each round. Blocks are written to their
    // final places, so no rotation is needed at the end.
    void allgather_bruck() {
        move_block(result(self), operation.input, operation.bytes);
        std::uint32_t round = 0;
        for (std::uint32_t have = 1; have < members; have *= 2, ++round) {
            const std::size_t bytes = std::min(have, members - have) * operation.bytes;
            schedule.send(around(self + members - have), round, round, operation.buffer, bytes, circle(self));
            schedule.receive(around(self + have), round, operation.buffer, bytes,
                             circle(around(self + have)));
        }
    }

    // Each member sends each slice to the slice's owner, which combines the slices in the order of ranks.
    void reduce_scatter() {
        const std::size_t elements = operation.bytes / operation.combiner.element_bytes;
        const auto slice = [&](std::uint32_t rank) {
            return reduce::slice_of(rank, members, elements, operation.combiner.element_bytes);
        };
        for (std::uint32_t i = 1; i < members; ++i) {
            const std::uint32_t owner = around(self + i);
            if (slice(owner).bytes > 0)
                schedule.send(owner, 0, 0, operation.input + slice(owner).offset, slice(owner).bytes);
        }
        const reduce::Slice own = slice(self);
        if (own.bytes == 0) return;
        std::byte* sum = operation.buffer;
        if (overlap(sum, own.bytes, operation.input, operation.bytes)) {
            sum = schedule.room(own.bytes);
            schedule.copied_bytes = own.bytes;
        }
        for (std::uint32_t rank = 0; rank < members; ++rank) {
            schedule.receive(rank, 0, sum, own.bytes);
            schedule.receives.back().combined = rank > 0;
        }
        schedule.receives[self].own = operation.input + own.offset;
    }

    void make(ExchangeAlgorithm algorithm) {
        if (operation.bytes == 0) return;
        switch (algorithm) {
            case ExchangeAlgorithm::linear:
                if (operation.kind == Kind::gather) return gather_linear();
                if (operation.kind == Kind::scatter) return scatter_linear();
                return alltoall_pairwise(members);
            case ExchangeAlgorithm::binomial:
                return operation.kind == Kind::gather ? gather_binomial() : scatter_binomial();
            case ExchangeAlgorithm::pairwise:
                if (operation.kind == Kind::reduce_scatter) return reduce_scatter();
                return alltoall_pairwise(std::max(kMinOverlap, kOverlapBytes / operation.bytes));
            case ExchangeAlgorithm::bruck:
                return operation.kind == Kind::alltoall ? alltoall_bruck() : allgather_bruck();
            case ExchangeAlgorithm::ring:
                return allgather_ring();
        }
    }
};

// Chooses the algorithm, the same on all members. `bytes` as in a `LevelOperation`.
ExchangeAlgorithm choose(Kind kind, std::size_t bytes, std::uint32_t members) {
    using enum ExchangeAlgorithm;
    if (kind == Kind::reduce_scatter) return pairwise;
    if (kind == Kind::allgather) return bytes <= kMaxBruckAllgatherBytes ? bruck : ring;
    if (kind == Kind::alltoall)
        return bytes <= kMaxBruckAlltoallBytes && members >= kMinBruckAlltoallMembers ? bruck : pairwise;
    return bytes <= kMaxBinomialBytes && members >= kMinBinomialMembers ? binomial : linear;
}

// Bits for the number of a message between two members in one operation. A ring has the most rounds, one for
// each other member.
constexpr unsigned message_bits(std::uint32_t members) {
    return std::max(8U, static_cast<unsigned>(std::bit_width(members - 1)));
}

MessageConfig with_window(ExchangeConfig config) {
    config.window_bytes = std::clamp(config.memory_bytes / std::max(1U, config.members),
                                     config.min_window_bytes, config.max_window_bytes);
    return config;
}

}  // namespace

ExchangeLevel::ExchangeLevel(const ExchangeConfig& config)
    : MessageLevel(with_window(config), {.piece = wire::Kind::block,
                                         .grant = wire::Kind::block_grant,
                                         .kind_bits = 4,
                                         .message_bits = message_bits(config.members)}) {}

int ExchangeLevel::post(LevelOperation& operation, Nanoseconds now) {
    return moves_blocks(operation.kind)
               ? post(operation, choose(operation.kind, operation.bytes, config_.members), now)
               : ENOSYS;
}

int ExchangeLevel::post(LevelOperation& operation, ExchangeAlgorithm algorithm, Nanoseconds now) {
    if (own_failure() != 0) return own_failure();
    if (const unsigned bits = format_.kind_bits + format_.message_bits; operation.number > UINT64_MAX >> bits)
        return EOVERFLOW;
    Maker{begin(operation, now), operation, config_.self, config_.members}.make(algorithm);
    carry_out();
    return 0;
}

}  // namespace mcastcoll::levels
