// The level between sites by itself: hellos (the first messages between two sites), windows, and invalid
// messages.
#include <criterion/criterion.h>

#include <cerrno>
#include <vector>

#include "levels/site_level.h"
#include "meeting_level.h"

namespace mcastcoll::levels {

TestSuite(site_level, .timeout = 300);

namespace {

struct TwoSites {
    explicit TwoSites(const SiteConfig& config = {}) : first(one, config), second(other, config) {}
    Placement one{0, {{0, 0}, {1, 1}}}, other{1, {{0, 0}, {1, 1}}};
    SiteLevel first, second;
};

// Returns a broadcast whose data are complete.
LevelOperation broadcast(std::vector<std::byte>& message) {
    LevelOperation operation;
    operation.buffer = message.data();
    operation.bytes = operation.ready = message.size();
    return operation;
}

// Delivers the messages queued at `from`; returns their number and their bytes.
std::pair<int, std::size_t> deliver(SiteLevel& from, SiteLevel& to) {
    std::pair<int, std::size_t> sent;
    for (Outgoing message; from.poll_outgoing(message); ++sent.first) {
        sent.second += message.payload.size();
        to.on_message(letter(message), {});
    }
    return sent;
}

// An operator whose result shows which vector was the first operand.
void twice_plus(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const std::uint64_t*>(one),
               *second = static_cast<const std::uint64_t*>(other);
    for (std::size_t i = 0; i < elements; ++i) static_cast<std::uint64_t*>(out)[i] = 2 * first[i] + second[i];
}

}  // namespace

// A hello is repeated, because a message to a member that has not formed the group yet is lost.
Test(site_level, sites_send_hellos_until_they_are_answered) {
    TwoSites sites;
    SiteLevel &top = sites.first, &other = sites.second;
    Outgoing message;
    other.start({});
    cr_assert(other.poll_outgoing(message));  // lost
    cr_assert_not(other.poll_outgoing(message));
    top.start({});
    cr_assert_not(top.connected());
    cr_assert_eq(other.next_deadline(), kMinHelloInterval);
    other.progress(kMinHelloInterval);
    cr_assert(other.poll_outgoing(message));
    top.on_message(message.header, {});
    cr_assert(top.connected());
    cr_assert(top.poll_outgoing(message));
    cr_assert_eq(message.to, 1U);
    cr_assert_not(other.connected());
    other.on_message(message.header, {});
    cr_assert(other.connected());
    cr_assert_eq(other.next_deadline(), kNever);
}

Test(site_level, lengths_that_differ_are_an_error) {
    TwoSites sites;
    std::vector<std::byte> long_one(100), short_one(50);
    LevelOperation out = broadcast(long_one), in = broadcast(short_one);
    cr_assert_eq(sites.first.post(out, {}), 0);
    cr_assert_eq(sites.second.post(in, {}), 0);
    cr_assert_eq(deliver(sites.first, sites.second).first, 1);
    sites.second.progress({});
    cr_assert(in.done);
    cr_assert_eq(in.error, EMSGSIZE);
}

// Two sites exchange short vectors with a message each way at once, and combine them in the order of sites. A
// long vector goes there, and the result back.
Test(site_level, two_sites_exchange_what_is_short) {
    for (const std::size_t elements : {0UL, 1UL, 2048UL, 2049UL}) {
        for (const bool in_place : {false, true}) {
            TwoSites sites;
            SiteLevel* const levels[] = {&sites.first, &sites.second};
            std::vector<std::uint64_t> inputs[2], results[2];
            LevelOperation level_operations[2];
            for (std::uint64_t site = 0; site < 2; ++site) {
                inputs[site].assign(elements + 1, 10 + site);
                results[site].resize(elements + 1);
                auto& to = in_place ? inputs[site] : results[site];
                level_operations[site].kind = elements == 0 ? Kind::barrier : Kind::allreduce;
                level_operations[site].number = 1;
                level_operations[site].input = reinterpret_cast<const std::byte*>(inputs[site].data());
                level_operations[site].buffer = reinterpret_cast<std::byte*>(to.data());
                level_operations[site].bytes = level_operations[site].ready = 8 * elements;
                level_operations[site].combiner = {twice_plus, 8};
                cr_assert_eq(levels[site]->post(level_operations[site], {}), 0);
            }
            const bool exchanged = elements <= 2048;
            const int there = deliver(sites.first, sites.second).first;
            const int back = deliver(sites.second, sites.first).first;
            cr_assert_eq(there, exchanged ? 1 : 0);
            cr_assert_eq(back, 1);
            for (int turn = 0; turn < 3; ++turn) {
                for (SiteLevel* level : levels) level->progress({});
                if (!exchanged) deliver(sites.first, sites.second);
            }
            for (std::size_t site = 0; site < 2; ++site) {
                cr_assert(level_operations[site].done && level_operations[site].error == 0);
                const auto& got = in_place ? inputs[site] : results[site];
                for (std::size_t i = 0; i < elements; ++i) cr_assert_eq(got[i], 2 * 10 + 11);
                cr_assert_eq(got[elements], in_place ? 10 + site : 0, "nothing behind it");
            }
        }
    }
}

// Pieces of an operation never posted are kept up to the window, and no further.
Test(site_level, unposted_pieces_are_bounded) {
    SiteConfig config;
    config.message_bytes = 2048;
    config.window_bytes = 8192;
    TwoSites sites(config);
    std::vector<std::byte> data(100000);
    LevelOperation out = broadcast(data);
    cr_assert_eq(sites.first.post(out, {}), 0);
    const std::size_t sent = deliver(sites.first, sites.second).second;
    cr_assert_gt(sent, 0);
    cr_assert_leq(sent, config.window_bytes);
    cr_assert_eq(sites.second.counters().bad_pieces, 0);
    cr_assert_not(out.done);
}

Test(site_level, foreign_and_broken_pieces_are_counted) {
    TwoSites sites;
    SiteLevel& level = sites.first;
    std::vector<std::byte> garbage(100);
    level.on_message(garbage, {});
    level.on_message(Bytes(garbage).first(3), {});
    wire::Header header;
    header.kind = wire::Kind::piece;
    header.key = GroupKey{1};
    header.sender = rank_of(1);
    wire::HeaderBytes encoded;
    wire::encode(header, {}, encoded);
    level.on_message(encoded, {});
    header.key = GroupKey{0};
    header.sender = rank_of(17);
    wire::encode(header, {}, encoded);
    level.on_message(encoded, {});
    cr_assert_eq(level.counters().bad_pieces, 4);
}

}  // namespace mcastcoll::levels
