// The members' addresses in a welcome (rank 0's answer to the members of a join): their small size, and the
// refusal of malformed tables.
#include <criterion/criterion.h>
#include <zstd.h>

#include <functional>
#include <vector>

#include "peers_fixture.h"
#include "wire/peer_table.h"

using namespace mcastcoll;
using test::Cluster;
using test::Order;
using wire::ByteString;
using wire::kMaxUnpackedBytes;

namespace {

constexpr std::size_t kMany = 1024;

std::vector<std::uint8_t> ranges(std::size_t members) {
    std::vector<std::uint8_t> result;
    for (std::size_t rank = 0; rank < members; ++rank) result.push_back(static_cast<std::uint8_t>(rank / 64));
    return result;
}

// Returns counts of joins: every eighth process has restarted, and counts anew.
std::vector<std::uint32_t> sequences(std::size_t members) {
    std::vector<std::uint32_t> result(members, 70'000);
    for (std::size_t rank = 5; rank < members; rank += 8) result[rank] = 1;
    return result;
}

// Returns the size of a welcome with these peers, and every other part at its maximum length.
std::size_t welcome_bytes(const std::vector<wire::Peer>& peers) {
    std::mt19937_64 random{3};
    const auto drawn = [&](std::size_t length) {
        ByteString result(length);
        for (std::byte& byte : result) byte = static_cast<std::byte>(random());
        return result;
    };
    wire::Welcome welcome;
    welcome.group_addresses.assign(wire::kMaxGroupAddresses, drawn(19));
    welcome.policy = drawn(wire::kMaxAddressBytes);
    welcome.selection = drawn(wire::kMaxTableBytes);
    welcome.peers = peers;
    welcome.range_of = ranges(peers.size());
    welcome.sequences = sequences(peers.size());
    for (std::uint8_t& range : welcome.range_of) range %= wire::kMaxGroupAddresses;
    const ByteString bytes = wire::encode(welcome);
    const auto back = wire::decode_welcome(bytes, peers.size());
    cr_assert(back && back->peers == welcome.peers && back->range_of == welcome.range_of &&
              back->sequences == welcome.sequences);
    return bytes.size();
}

ByteString compress(const ByteString& table) {
    ByteString frame(ZSTD_compressBound(table.size()));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), table.data(), table.size(), 3));
    return frame;
}

ByteString joined(ByteString first, const ByteString& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

// Returns the table of members without any address: ranges, then the first byte of all distances between
// ranks, the second byte of all, and so on, then those of the sequences.
ByteString empty_strings(std::size_t members) {
    ByteString table(13 * members);
    std::fill_n(table.begin() + static_cast<std::ptrdiff_t>(4 * members), members, std::byte{1});
    return table;
}

ByteString without_length(const ByteString& table) {
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ByteString frame(ZSTD_compressBound(table.size()));
    frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), table.data(), table.size()));
    ZSTD_freeCCtx(context);
    return frame;
}

}  // namespace

TestSuite(wire_peers, .timeout = 300);

Test(wire_peers, a_thousand_members_take_few_bytes) {
    const struct {
        Cluster cluster;
        std::size_t max;
    } cases[] = {
        {{32, 32, Order::hosts}, 16 << 10},        {{32, 32, Order::round_robin}, 16 << 10},
        {{32, 32, Order::shuffled}, 20 << 10},     {{1024, 1, Order::hosts}, 40 << 10},
        {{32, 32, Order::hosts, true}, 18 << 10},  {{32, 32, Order::shuffled, true}, 22 << 10},
        {{1024, 1, Order::hosts, true}, 65 << 10}, {{1024, 1, Order::shuffled, true}, 65 << 10},
    };
    for (const auto& [cluster, max] : cases) {
        const auto peers = test::PeerMaker(cluster).make();
        cr_assert_eq(peers.size(), kMany);
        const std::size_t bytes = welcome_bytes(peers);
        cr_log_info("%zu hosts of %zu, order %d, %s: %zu bytes", cluster.hosts, cluster.ranks,
                    static_cast<int>(cluster.order), cluster.strange ? "strange" : "alike", bytes);
        cr_assert_leq(bytes, max, "%zu hosts of %zu: %zu bytes", cluster.hosts, cluster.ranks, bytes);
    }
}

Test(wire_peers, tables_of_all_sizes_and_lengths_come_back) {
    for (const std::size_t members :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{100}, kMany - 1, kMany}) {
        std::vector<wire::Peer> peers(members);
        for (std::size_t rank = 0; rank < members; ++rank) {
            const std::size_t length = rank % (wire::kMaxAddressBytes + 1);
            peers[rank] = {ByteString(length, static_cast<std::byte>(rank)),
                           ByteString(wire::kMaxAddressBytes - length, std::byte{1}),
                           ByteString(rank % 2 * wire::kMaxAddressBytes, std::byte{2}),
                           ByteString(rank == 0 ? 0 : 1, std::byte{3})};
        }
        const ByteString packed = wire::pack(peers, ranges(members), sequences(members));
        const auto back = wire::unpack(packed, members);
        cr_assert(back && back->peers == peers && back->range_of == ranges(members) &&
                      back->sequences == sequences(members),
                  "%zu", members);
        cr_assert(!wire::unpack(packed, members + 1), "%zu", members);
        if (members > 0) cr_assert(!wire::unpack(packed, members - 1), "%zu", members);
    }
}

// Whatever the bytes contain, no more is unpacked than this many members can need.
Test(wire_peers, bombs_and_frames_that_lie_are_refused) {
    constexpr std::size_t kMembers = 60;
    const ByteString table = empty_strings(kMembers), good = compress(table);
    cr_assert(wire::unpack(good, kMembers).has_value());
    const auto with = [](ByteString bytes, std::size_t at, std::uint8_t value) {
        bytes[at] = std::byte{value};
        return bytes;
    };
    const ByteString skipped{std::byte{0x50}, std::byte{0x2a}, std::byte{0x4d}, std::byte{0x18},
                             std::byte{0},    std::byte{0},    std::byte{0},    std::byte{0}};
    const struct {
        const char* what;
        ByteString packed;
    } cases[] = {
        {"nothing", {}},
        {"no frame", table},
        {"a bomb", compress(ByteString(std::size_t{64} << 20))},
        {"a byte more than members can have", compress(ByteString(kMembers * kMaxUnpackedBytes + 1))},
        {"a byte more than these have", compress(ByteString(table.size() + 1))},
        {"a byte less", compress(ByteString(table.size() - 1))},
        {"an empty table", compress({})},
        {"only ranges", compress(ByteString(table.begin(), table.begin() + kMembers))},
        {"only ranges and numbers", compress(ByteString(table.begin(), table.begin() + 9 * kMembers))},
        {"a rank that is none", compress(with(table, kMembers, 1))},
        {"a rank twice", compress(with(table, 4 * kMembers + 1, 0))},
        {"a string that is too long", compress(with(table, 9 * kMembers, wire::kMaxAddressBytes + 1))},
        {"a string that is not there", compress(with(table, 9 * kMembers, 1))},
        {"a last string that is not there", compress(with(table, table.size() - 1, 1))},
        {"a frame that does not say how long it is", without_length(table)},
        // 780 bytes: the frame's sixth and seventh byte contain 524, with an offset of 256.
        {"a frame that says that it is shorter", with(good, 5, 11)},
        {"a frame that says that it is longer", with(good, 5, 13)},
        {"two frames", joined(good, compress({}))},
        {"something behind the frame", joined(good, ByteString(1))},
        {"a frame to be skipped behind it", joined(good, skipped)},
        {"a frame to be skipped before it", joined(skipped, good)},
        {"a frame of another version", with(good, 0, 0x27)},
    };
    cr_assert(good[5] == std::byte{12} && good[6] == std::byte{2});
    for (const auto& one : cases) cr_assert(!wire::unpack(one.packed, kMembers), "%s", one.what);
}

// The message, not the table, has a checksum: a forger can send this table.
Test(wire_peers, damage_is_refused_or_is_another_table) {
    for (const std::size_t members : {3, 200}) {
        const auto peers = test::PeerMaker({members, 1}).make();
        const ByteString good = wire::pack(peers, ranges(members), sequences(members));
        for (std::size_t length = 0; length < good.size(); ++length)
            cr_assert(!wire::unpack(Bytes(good).first(length), members), "length %zu", length);
        cr_assert(!wire::unpack(joined(good, ByteString(1)), members));
        for (std::size_t bit = 0; bit<8 * good.size(); bit += members> 3 ? 13 : 1) {
            ByteString flipped = good;
            flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            const auto table = wire::unpack(flipped, members);
            cr_assert(!table || (table->peers.size() == members && table->range_of.size() == members));
        }
    }
    std::mt19937_64 random{11};
    for (int i = 0; i < 20'000; ++i) {
        ByteString table(random() % 600);
        for (std::byte& byte : table) byte = static_cast<std::byte>(random() % 8 == 0 ? random() % 256 : 0);
        const auto unpacked = wire::unpack(compress(table), 60);
        cr_assert(!unpacked || unpacked->peers.size() == 60);
    }
}
