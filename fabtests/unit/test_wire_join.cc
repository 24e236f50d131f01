// The messages of the join: round trips, limits, and that no malformed message is accepted.
#include <criterion/criterion.h>

#include <vector>

#include "wire/bytes.h"
#include "wire/join.h"
#include "wire_fixture.h"

using namespace mcastcoll;
using wire::ByteString;
using wire::JoinKind;

namespace {

ByteString string_of(std::size_t length, unsigned seed) {
    ByteString result(length);
    for (std::size_t i = 0; i < length; ++i) result[i] = static_cast<std::byte>(i * 7 + seed);
    return result;
}

wire::Peer peer_of(unsigned seed) {
    return {string_of(16 + seed % 3, seed), string_of(seed % 2 * 19, seed + 1), string_of(20, seed + 2)};
}

wire::Hello sample_hello() {
    return {.id = {0x1122334455667788, 3},
            .rank = Rank{2},
            .members = 5,
            .datagram_bytes = 1472,
            .window = 256,
            .address_family = 6,
            .room = 1,
            .gmac = 1,
            .verbs = {.datagram_bytes = 4096, .window = 255, .room = 1, .source = string_of(19, 6)},
            .peer = peer_of(1)};
}

wire::Welcome sample_welcome(std::size_t members) {
    wire::Welcome welcome{{.id = {7, 9},
                           .key = GroupKey{0xabcdef},
                           .epoch = Epoch{4},
                           .mac = 1,
                           .address_scheme = 1,
                           .group_addresses = {string_of(7, 3), string_of(7, 4), string_of(7, 5)},
                           .fragment_bytes = 1424,
                           .window = 128,
                           .repair = 1,
                           .redundancy = 2,
                           .channels = 16,
                           .root_sync = 2,
                           .root_delay_us = 70},
                          {},
                          {},
                          {}};
    for (std::size_t i = 0; i < members; ++i) {
        welcome.peers.push_back(peer_of(static_cast<unsigned>(i)));
        welcome.range_of.push_back(static_cast<std::uint8_t>(i % 3));
        welcome.sequences.push_back(i == 5 ? 0 : 9);
    }
    return welcome;
}

bool same(const wire::Peer& a, const wire::Peer& b) {
    return a.private_address == b.private_address && a.multicast_source == b.multicast_source &&
           a.watch_point == b.watch_point;
}

bool taken(Bytes bytes) {
    return wire::decode_hello(bytes) || wire::decode_welcome(bytes, 3) || wire::decode_part(bytes) ||
           wire::decode_host_welcome(bytes) || wire::decode_collect(bytes) ||
           wire::decode_gathered_hellos(bytes) || wire::decode_answer(bytes) || wire::decode_ended(bytes) ||
           wire::decode_survey(bytes) || wire::decode_echo(bytes) || wire::decode_surveyed(bytes) ||
           wire::decode_waiting(bytes) || wire::decode_key_request(bytes) || wire::decode_key_reply(bytes);
}

void refuse_all_damage(const ByteString& good) {
    cr_assert(taken(good));
    for (std::size_t length = 0; length < good.size(); ++length)
        cr_assert(!taken(Bytes(good).first(length)), "length %zu", length);
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        auto flipped = good;
        flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        cr_assert(!taken(flipped), "bit %zu", bit);
    }
    auto longer = good;
    longer.push_back(std::byte{0});
    cr_assert(!taken(longer));
}

}  // namespace

TestSuite(wire_join, .timeout = 300);

Test(wire_join, hello_round_trip) {
    const auto hello = sample_hello();
    const auto bytes = encode(hello);
    cr_assert(wire::join_kind(bytes) == JoinKind::hello);
    const auto back = wire::decode_hello(bytes);
    cr_assert(back.has_value());
    cr_assert(back->id == hello.id && back->rank == hello.rank && back->members == hello.members);
    cr_assert_eq(back->datagram_bytes, hello.datagram_bytes);
    cr_assert_eq(back->window, hello.window);
    cr_assert_eq(back->address_family, hello.address_family);
    cr_assert_eq(back->room, hello.room);
    cr_assert_eq(back->gmac, hello.gmac);
    cr_assert(back->verbs == hello.verbs);
    cr_assert(same(back->peer, hello.peer));
    cr_assert(!wire::decode_welcome(bytes, 0) && !wire::decode_answer(bytes));
}

// A checksum of the bytes: processors of every kind must be able to read them. It changes with kJoinVersion,
// and only then. (A welcome's bytes also depend on the compressor.)
Test(wire_join, a_hello_has_the_same_bytes_on_every_processor) {
    const std::uint32_t hello = wire::add_to_crc(0, encode(sample_hello()));
    cr_assert_eq(hello, 0x2a86dc80U, "%08x", hello);
}

Test(wire_join, key_requests_and_replies_round_trip) {
    const wire::KeyRequest request{{0x1122334455667788, 3}, Rank{2}, 5, 0x99aabbccddeeff00};
    const auto request_bytes = encode(request);
    cr_assert(wire::join_kind(request_bytes) == JoinKind::key_request);
    cr_assert_eq(request_bytes.size(), wire::kKeyRequestBytes);
    cr_assert(wire::decode_key_request(request_bytes) == request);
    for (const std::size_t length : {std::size_t{1}, std::size_t{231}, std::size_t{1000}}) {
        const wire::KeyReply reply{request.id, request.rank, request.nonce, string_of(length, 3)};
        const auto reply_bytes = encode(reply);
        const auto back = wire::decode_key_reply(reply_bytes);
        cr_assert(back && back->id == reply.id && back->to == reply.to && back->nonce == reply.nonce);
        cr_assert(back->credential == reply.credential);
        cr_assert(!wire::decode_key_request(reply_bytes) && !wire::decode_key_reply(request_bytes));
    }
}

Test(wire_join, key_requests_of_no_member_or_another_length_are_refused) {
    const wire::KeyRequest good{{7, 3}, Rank{4}, 5, 1};
    cr_assert(wire::decode_key_request(encode(good)));
    wire::KeyRequest beyond = good;
    beyond.rank = Rank{5};
    cr_assert(!wire::decode_key_request(encode(beyond)));
    for (const std::size_t length : {wire::kKeyRequestBytes - 1, wire::kKeyRequestBytes + 1}) {
        auto other = encode(good);
        other.resize(length);
        test::put_checksum(other);
        cr_assert(!wire::decode_key_request(other), "%zu", length);
    }
    auto filled = encode(good);
    filled.back() = std::byte{1};
    test::put_checksum(filled);
    cr_assert(!wire::decode_key_request(filled));
    wire::KeyReply empty{{7, 3}, Rank{4}, 1, {}};
    cr_assert(!wire::decode_key_reply(encode(empty)));
}

Test(wire_join, welcome_round_trip) {
    for (std::size_t members : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{5000}}) {
        const auto welcome = sample_welcome(members);
        const auto back = wire::decode_welcome(encode(welcome), members);
        cr_assert(back.has_value(), "%zu members", members);
        cr_assert(back->id == welcome.id && back->key == welcome.key && back->epoch == welcome.epoch);
        cr_assert(back->address_scheme == welcome.address_scheme &&
                  back->group_addresses == welcome.group_addresses);
        cr_assert(back->range_of == welcome.range_of && back->sequences == welcome.sequences);
        cr_assert_eq(back->fragment_bytes, welcome.fragment_bytes);
        cr_assert_eq(back->window, welcome.window);
        cr_assert_eq(back->repair, welcome.repair);
        cr_assert_eq(back->redundancy, welcome.redundancy);
        cr_assert_eq(back->channels, welcome.channels);
        cr_assert_eq(back->root_sync, welcome.root_sync);
        cr_assert_eq(back->root_delay_us, welcome.root_delay_us);
        cr_assert_eq(back->peers.size(), members);
        for (std::size_t i = 0; i < members; ++i) cr_assert(same(back->peers[i], welcome.peers[i]));
    }
}

Test(wire_join, what_welcomes_and_collects_round_trip) {
    const wire::MessageHead head{{7, 9}, 3, ByteString(16, std::byte{4})};
    const auto part = wire::decode_part(encode(wire::WelcomePart{head, 5, 9, ByteString(4, std::byte{8})}));
    cr_assert(part && part->head == head && part->offset == 5 && part->total == 9);
    cr_assert(part->bytes == ByteString(4, std::byte{8}) && head.answer_id() == (wire::JoinId{7, 3}));
    cr_assert(!wire::decode_part(encode(wire::WelcomePart{head, 5, 8, ByteString(4)})), "beyond the end");
    cr_assert(!wire::decode_part(encode(wire::WelcomePart{head, 5, 5, {}})), "nothing");
    const wire::Welcome whole = sample_welcome(1);
    const auto here = wire::decode_host_welcome(encode(wire::HostWelcome{head, ByteString(20), whole}));
    cr_assert(here && here->head == head && here->host_point == ByteString(20));
    cr_assert(here->agreement.key == whole.key && here->agreement.selection == whole.selection);
    const auto collect = wire::decode_collect(wire::encode_collect(head));
    cr_assert(collect && *collect == head);
    wire::GatheredHellos sent{{7, 3}, rank_of(32), {sample_hello(), sample_hello()}};
    const auto gathered = wire::decode_gathered_hellos(encode(sent));
    cr_assert(gathered && gathered->id == sent.id && gathered->from == sent.from &&
              gathered->hellos.size() == 2);
    cr_assert(same(gathered->hellos[1].peer, sent.hellos[1].peer));
    sent.hellos[1].rank = rank_of(sent.hellos[1].members);
    cr_assert(!wire::decode_gathered_hellos(encode(sent)), "there is no such rank");
}

Test(wire_join, answer_round_trip) {
    for (JoinKind kind : {JoinKind::ack, JoinKind::abort}) {
        const auto back = wire::decode_answer(encode(wire::Answer{kind, {5, 6}, 22}));
        cr_assert(back.has_value());
        cr_assert(back->kind == kind && back->id == (wire::JoinId{5, 6}));
        cr_assert_eq(back->error, 22U);
    }
}

Test(wire_join, end_round_trip) {
    for (const Rank lost : {Rank{0}, Rank{255}, kNoRank}) {
        const auto back = wire::decode_ended(encode(wire::Ended{{5, 6}, 104, lost}));
        cr_assert(back.has_value() && back->id == (wire::JoinId{5, 6}));
        cr_assert(back->error == 104 && back->lost == lost);
    }
}

Test(wire_join, an_end_without_an_error_is_none) {
    for (const std::uint32_t error : {0U, 1U, 65'535U, 65'536U}) {
        const bool good = error == 1 || error == 65'535;
        cr_assert_eq(wire::decode_ended(encode(wire::Ended{{5, 6}, error, kNoRank})).has_value(), good);
        cr_assert_eq(
            wire::decode_answer(encode(wire::Answer{wire::JoinKind::abort, {5, 6}, error})).has_value(),
            good);
    }
    cr_assert(wire::decode_answer(encode(wire::Answer{wire::JoinKind::ack, {5, 6}, 0})).has_value());
}

Test(wire_join, waiting_round_trip) {
    const ByteString good = encode(wire::Waiting{{5, 6}, rank_of(255)});
    const auto back = wire::decode_waiting(good);
    cr_assert(back.has_value() && back->id == (wire::JoinId{5, 6}) && back->from == rank_of(255));
    refuse_all_damage(good);
}

// A hello of any version begins with a common part, by which another version is detected and answered.
Test(wire_join, other_versions_are_detected_and_answered) {
    ByteString old = encode(sample_hello());
    cr_assert(!wire::decode_foreign_hello(old), "its own version is not foreign");
    const auto id = sample_hello().id;
    // An abort in the form of version 1, byte for byte, as processes of that release expect.
    const ByteString refusal = encode(wire::Answer{JoinKind::abort, {5, 6}, 92}, 1);
    cr_assert(!wire::decode_answer(refusal) && !wire::join_kind(refusal));
    cr_assert_eq(refusal.size(), 24U);
    cr_assert_eq(refusal[2], std::byte{1});
    cr_assert_eq(refusal[15], std::byte{5});
    // A hello of a future version: the id comes first, followed by unknown bytes.
    old[2] = std::byte{200};
    cr_assert(!wire::decode_foreign_hello(old), "the checksum covers the version");
    test::put_checksum(old);
    const auto foreign = wire::decode_foreign_hello(old);
    cr_assert(foreign.has_value());
    cr_assert_eq(foreign->version, 200);
    cr_assert(foreign->id == id);
    cr_assert(!wire::join_kind(old) && !wire::decode_hello(old));
    old.resize(12);
    test::put_checksum(old);
    cr_assert(!wire::decode_foreign_hello(old), "no id");
}

Test(wire_join, surveys_round_trip) {
    const wire::SurveyHead head{{5, 6}, 7, Rank{255}};
    const wire::Survey survey{head, {{Rank{3}, 0}, {Rank{1}, UINT32_MAX}}};
    const auto decoded = wire::decode_survey(encode(survey));
    cr_assert(decoded.has_value() && decoded->head == head && decoded->targets == survey.targets);
    for (const bool back : {false, true}) {
        const auto echo = wire::decode_echo(encode(wire::Echo{head, 1ULL << 60, back}));
        cr_assert(echo.has_value() && echo->back == back && echo->stamp == 1ULL << 60);
        cr_assert(echo->head == head);
    }
    const wire::Surveyed result{head, {0, 12345, wire::kNotMeasured}};
    const auto decoded_result = wire::decode_surveyed(encode(result));
    cr_assert(decoded_result.has_value() && decoded_result->head == head &&
              decoded_result->round_trips_ns == result.round_trips_ns);
}

Test(wire_join, other_members_and_ranks_out_of_range_are_refused) {
    for (const std::size_t members : {9U, 10U, 11U})
        cr_assert_eq(wire::decode_welcome(encode(sample_welcome(members)), 10).has_value(), members == 10,
                     "%zu members", members);
    auto hello = sample_hello();
    hello.rank = Rank{5};
    cr_assert(!wire::decode_hello(encode(hello)));
    hello.rank = Rank{UINT32_MAX - 1};
    hello.members = UINT32_MAX;
    cr_assert(wire::decode_hello(encode(hello)).has_value(), "no hello exceeds the size for a large group");
}

Test(wire_join, addresses_and_schemes_out_of_range_are_refused) {
    auto welcome = sample_welcome(4);
    welcome.range_of[2] = 3;
    cr_assert(!wire::decode_welcome(encode(welcome), 4), "there are three addresses");
    welcome = sample_welcome(4);
    welcome.address_scheme = wire::kAddressSchemes;
    cr_assert(!wire::decode_welcome(encode(welcome), 4));
    welcome = sample_welcome(4);
    welcome.group_addresses.clear();
    cr_assert(!wire::decode_welcome(encode(welcome), 4), "members listen to addresses that are not there");
    welcome.range_of.assign(4, 0);
    cr_assert(wire::decode_welcome(encode(welcome), 4).has_value(), "without multicast");
}

Test(wire_join, damaged_messages_are_refused) {
    refuse_all_damage(encode(sample_hello()));
    refuse_all_damage(encode(sample_welcome(3)));
    const wire::MessageHead message{{7, 9}, 3, ByteString(16, std::byte{4})};
    refuse_all_damage(encode(wire::WelcomePart{message, 5, 9, ByteString(4, std::byte{8})}));
    refuse_all_damage(encode(wire::HostWelcome{message, ByteString(20), sample_welcome(1)}));
    refuse_all_damage(wire::encode_collect(message));
    refuse_all_damage(encode(wire::GatheredHellos{{7, 3}, rank_of(32), {sample_hello(), sample_hello()}}));
    refuse_all_damage(encode(wire::Answer{JoinKind::abort, {1, 2}, 110}));
    refuse_all_damage(encode(wire::Ended{{1, 2}, 110, Rank{3}}));
    const wire::SurveyHead head{{1, 2}, 3, Rank{4}};
    refuse_all_damage(encode(wire::Survey{head, {{Rank{1}, 2}, {Rank{3}, 4}}}));
    refuse_all_damage(encode(wire::Echo{head, 99, true}));
    refuse_all_damage(encode(wire::Surveyed{head, {5000, wire::kNotMeasured}}));
}

Test(wire_join, address_lists_hash_apart) {
    const auto a = string_of(4, 1), b = string_of(4, 2), ab = [&] {
        auto both = a;
        both.insert(both.end(), b.begin(), b.end());
        return both;
    }();
    const auto hash = wire::hash_addresses({a, b});
    cr_assert_eq(hash, wire::hash_addresses({a, b}));
    cr_assert_neq(hash, wire::hash_addresses({b, a}));
    cr_assert_neq(hash, wire::hash_addresses({ab}));
    cr_assert_neq(hash, wire::hash_addresses({a, b, ByteString{}}));
}
