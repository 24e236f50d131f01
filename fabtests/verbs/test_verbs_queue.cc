// One queue pair: which datagrams pass, which do not, and waiting.
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>

#include "verbs_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using namespace mcastcoll::transport;

TestSuite(verbs_queue, .timeout = 120);

namespace {

struct Pair {
    VerbsOptions here = options_of_device(0), there = options_of_device(1);
    VerbsOwner a = open_or_fail(here), b = open_or_fail(there);
    SocketAddress group = group_number(0);
    Membership of_a = join_or_fail(*a, group), of_b = join_or_fail(*b, group);
};

bool readable(int descriptor, int milliseconds) {
    pollfd ready{descriptor, POLLIN, 0};
    return poll(&ready, 1, milliseconds) == 1;
}

}  // namespace

Test(verbs_queue, all_sizes_arrive_unchanged) {
    Pair pair;
    const std::size_t max = pair.a->max_payload();
    cr_assert_geq(max, 1024);
    const std::size_t sizes[] = {0, 1, 23, 24, 25, 127, 128, 129, 1000, max - 1, max};
    unsigned seed = 0;
    for (const std::size_t size : sizes) {
        const std::string sent = bytes_of(size, ++seed);
        say(*pair.a, pair.group, sent);
        const auto received = receive(*pair.b, 1);
        cr_assert_eq(received.size(), 1, "%zu bytes do not come", size);
        cr_assert(received[0].text == sent, "%zu bytes", size);
        cr_assert(received[0].source == pair.a->local_address(), "from %s",
                  received[0].source.to_string().c_str());
    }
    cr_assert_eq(pair.a->counters().datagrams_sent, std::size(sizes));
}

Test(verbs_queue, what_is_too_long_is_an_error) {
    Pair pair;
    const std::string fits = bytes_of(100, 1), too_long = bytes_of(pair.a->max_payload() + 1, 2);
    const Datagram datagrams[] = {{std::as_bytes(std::span(fits)), {}},
                                  {{}, std::as_bytes(std::span(too_long))},
                                  {std::as_bytes(std::span(fits)), {}}};
    const Sent first = pair.a->send(datagrams, {pair.group, false});
    cr_assert_eq(first.accepted, 1);
    cr_assert_eq(first.error, EMSGSIZE);
    const Sent second = pair.a->send(std::span(datagrams + 2, 1), {pair.group, false});
    cr_assert_eq(second.accepted, 1);
    cr_assert_eq(second.error, 0);
    cr_assert_eq(receive(*pair.b, 2).size(), 2);
}

Test(verbs_queue, own_copies_are_dropped) {
    Pair pair;
    for (unsigned i = 0; i < 10; ++i) say(*pair.a, pair.group, bytes_of(40, i));
    say(*pair.b, pair.group, "mark");
    cr_assert(receive_until(*pair.a, "mark").empty());
    cr_assert_geq(receive(*pair.b, 10).size(), 10);
}

// Sends more datagrams than all rings hold. They arrive in order and without loss, since the receiver keeps
// up.
Test(verbs_queue, rings_go_round) {
    Pair pair;
    constexpr unsigned kCount = 1500;
    unsigned next = 0;
    for (unsigned i = 0; i < kCount; ++i) {
        say(*pair.a, pair.group, bytes_of(i % 3 == 0 ? 60 : 700, i));
        if (i % 50 != 49) continue;
        for (const Received& received : receive(*pair.b, 50)) {
            cr_assert(received.text == bytes_of(next % 3 == 0 ? 60 : 700, next), "datagram %u", next);
            ++next;
        }
        cr_assert_eq(next, i + 1);
    }
}

Test(verbs_queue, without_receives_posted_datagrams_are_lost_and_no_more) {
    VerbsOptions few = options_of_device(1);
    few.receives = 64;
    const VerbsOwner a = open_or_fail(options_of_device(0)), b = open_or_fail(few);
    const SocketAddress group = group_number(0);
    const Membership of_a = join_or_fail(*a, group), of_b = join_or_fail(*b, group);
    cr_assert_eq(b->receives(), 64);
    for (unsigned i = 0; i < 300; ++i) say(*a, group, bytes_of(64, i));
    // The loss is not reported: the first datagrams arrive, then later datagrams as room becomes free.
    const auto received = receive(*b, 64);
    cr_assert_geq(received.size(), 64);
    for (unsigned i = 0; i < 64; ++i) cr_assert(received[i].text == bytes_of(64, i), "datagram %u", i);
    say(*a, group, "after");
    cr_assert_leq(receive_until(*b, "after").size() + received.size(), 300);
}

Test(verbs_queue, waiting_rings_for_what_comes) {
    Pair pair;
    receive(*pair.b, 0);
    cr_assert(eventually([&] {
        receive(*pair.b, 0);
        return pair.b->prepare_wait();
    }));
    cr_assert_not(readable(pair.b->descriptor(), 50));
    say(*pair.a, pair.group, "ring");
    cr_assert(readable(pair.b->descriptor(), 10000));
    // A datagram that has already arrived is reported instead of waiting, and the query does not lose the
    // datagram.
    cr_assert_not(pair.b->prepare_wait());
    cr_assert_not(pair.b->prepare_wait());
    cr_assert_eq(receive(*pair.b, 1).size(), 1);
    cr_assert(pair.b->prepare_wait());
}

// Two queue pairs of one device receive each other's datagrams, like two processes of one host.
Test(verbs_queue, queue_pairs_of_one_device_receive_each_other) {
    Pair pair;
    const VerbsOwner other = open_or_fail(pair.here);
    const Membership of_other = join_or_fail(*other, pair.group);
    say(*pair.a, pair.group, "neighbour");
    const auto received = receive(*other, 1);
    cr_assert_eq(received.size(), 1);
    cr_assert(received[0].source == pair.a->local_address());
    cr_assert_neq(other->local_address().port(), pair.a->local_address().port());
}

Test(verbs_queue, a_run_longer_than_the_ring_is_taken_bit_by_bit) {
    VerbsOptions small = options_of_device(0);
    small.sends = 32;
    const VerbsOwner a = open_or_fail(small), b = open_or_fail(options_of_device(1));
    const SocketAddress group = group_number(0);
    const Membership of_a = join_or_fail(*a, group), of_b = join_or_fail(*b, group);
    std::vector<std::string> texts;
    std::vector<Datagram> datagrams;
    for (unsigned i = 0; i < 200; ++i) texts.push_back(bytes_of(900, i));
    for (const std::string& text : texts) datagrams.push_back({{}, std::as_bytes(std::span(text))});
    std::size_t sent = 0, received = 0;
    cr_assert(eventually([&] {
        const Sent more = a->send(std::span(datagrams).subspan(sent), {group, false});
        sent += more.accepted;
        cr_assert_eq(more.error, 0);
        b->receive(Nanoseconds{}, [&](Bytes bytes, const SocketAddress&) {
            cr_assert(
                texts[received].size() == bytes.size() &&
                std::equal(bytes.begin(), bytes.end(), std::as_bytes(std::span(texts[received])).begin()));
            ++received;
        });
        return received == texts.size();
    }));
    cr_assert_eq(sent, texts.size());
}
