// Messages waiting for room: none is lost, whatever the room, and the order is kept.
#include <criterion/criterion.h>

#include <functional>
#include <numeric>
#include <utility>

#include "group/outbox.h"

using namespace mcastcoll;
using namespace mcastcoll::group;

namespace {

constexpr std::size_t kSmall = 16;  // bytes of a small message

// Room for a number of messages of each size, which only acknowledge() frees.
struct Peers final : Outbox::Port {
    std::size_t small_room = 0, large_room = 0;
    std::size_t small_out = 0, large_out = 0;
    std::vector<std::pair<Outbox::Peer, wire::ByteString>> received;
    std::function<void(Outbox::Peer)> on_send;

    bool has_room(std::size_t bytes) const override {
        return bytes <= kSmall ? small_out < small_room : large_out < large_room;
    }
    void send_join_message(Outbox::Peer to, Bytes message) override {
        cr_assert(has_room(message.size()), "sent without room");
        ++(message.size() <= kSmall ? small_out : large_out);
        if (on_send) on_send(to);
        // The message is still stored, whatever the send caused.
        received.emplace_back(to, wire::ByteString(message.begin(), message.end()));
    }
    void acknowledge() { small_out = large_out = 0; }
};

wire::ByteString message_of(std::size_t bytes, int content) {
    return wire::ByteString(bytes, static_cast<std::byte>(content));
}

std::vector<Outbox::Peer> first_peers(std::size_t count) {
    std::vector<Outbox::Peer> peers(count);
    std::iota(peers.begin(), peers.end(), Outbox::Peer{1});
    return peers;
}

}  // namespace

Test(outbox, a_message_for_255_reaches_each_once_through_room_for_one_less_exactly_and_one_more) {
    for (const std::size_t room : {1, 31, 32, 33, 254, 255, 256}) {
        Outbox outbox;
        Peers peers;
        peers.large_room = room;
        outbox.post(first_peers(255), message_of(20000, 7));
        std::size_t rounds = 0;
        for (; outbox.flush(peers); ++rounds) peers.acknowledge();
        cr_assert_eq(rounds, (255 + room - 1) / room);
        cr_assert(outbox.empty());
        cr_assert_eq(peers.received.size(), 255);
        for (std::size_t i = 0; i < 255; ++i) {
            cr_assert_eq(peers.received[i].first, i + 1);
            cr_assert_eq(peers.received[i].second, message_of(20000, 7));
        }
    }
}

Test(outbox, without_room_nothing_goes_and_nothing_is_lost) {
    Outbox outbox;
    Peers peers;
    outbox.post({1, 2}, message_of(8, 1));
    cr_assert_not(outbox.flush(peers));
    cr_assert_not(outbox.empty());
    cr_assert_eq(outbox.next_bytes(), 8);
    peers.small_room = 8;
    cr_assert(outbox.flush(peers));
    cr_assert_eq(peers.received.size(), 2);
}

Test(outbox, a_small_message_does_not_overtake_a_large_one) {
    Outbox outbox;
    Peers peers;
    peers.small_room = 8;
    outbox.post({1}, message_of(1000, 1));
    outbox.post({1}, message_of(8, 2));
    cr_assert_not(outbox.flush(peers));
    peers.large_room = 1;
    cr_assert(outbox.flush(peers));
    cr_assert_eq(peers.received.size(), 2);
    cr_assert_eq(peers.received[0].second.size(), 1000);
}

Test(outbox, a_withdrawn_message_is_sent_no_further) {
    Outbox outbox;
    Peers peers;
    peers.large_room = 2;
    peers.small_room = 8;
    outbox.post(first_peers(3), message_of(1000, 1), 5);
    outbox.post({9}, message_of(8, 2), 6);
    cr_assert(outbox.flush(peers));
    outbox.withdraw(5);
    outbox.post(first_peers(3), message_of(8, 3), 5);
    cr_assert(outbox.flush(peers));
    cr_assert(outbox.empty());
    cr_assert_eq(peers.received.size(), 2 + 1 + 3);
    cr_assert_eq(peers.received[2].first, 9);
}

Test(outbox, sending_may_post_and_withdraw) {
    Outbox outbox;
    Peers peers;
    peers.large_room = peers.small_room = 100;
    peers.on_send = [&](Outbox::Peer to) {
        if (to != 2) return;
        outbox.withdraw(5);
        outbox.post(first_peers(2), message_of(8, 3));
        peers.on_send = nullptr;
    };
    outbox.post(first_peers(50), message_of(1000, 1), 5);
    cr_assert(outbox.flush(peers));
    cr_assert(outbox.empty());
    cr_assert_eq(peers.received.size(), 2 + 2);
    cr_assert_eq(peers.received[1].second, message_of(1000, 1));
    cr_assert_eq(peers.received[3].second, message_of(8, 3));
}

Test(outbox, a_message_without_receivers_is_dropped) {
    Outbox outbox;
    outbox.post({}, message_of(8, 1));
    cr_assert(outbox.empty());
}
