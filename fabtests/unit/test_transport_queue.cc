// Multicasts queued for a transport that accepts few at a time: each is sent once, complete and in order.
#include <criterion/criterion.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "transport/multicast_queue.h"

using namespace mcastcoll;
using namespace mcastcoll::transport;

namespace {

constexpr std::size_t kPayload = 64;

// A transport that accepts `room` datagrams, until the test adds room.
struct Narrow final : MulticastTransport {
    std::size_t room = 0;
    std::string poison;                                       // a payload that can never be sent
    std::vector<std::pair<std::uint16_t, std::string>> sent;  // port and payload

    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override {
        for (std::size_t i = 0; i < datagrams.size(); ++i) {
            const Bytes payload = datagrams[i].payload;
            const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
            if (!poison.empty() && text == poison) return {i, EMSGSIZE};
            if (room == 0) return {i, 0};
            --room;
            sent.emplace_back(to.group.port(), text);
        }
        return {datagrams.size(), 0};
    }
    std::size_t receive(Nanoseconds, DeliverDatagram) override { return 0; }
    int descriptor() const override { return -1; }
    std::size_t max_payload() const override { return kPayload; }
    MulticastCounters counters() const override { return {}; }
};

std::vector<Outlet> outlets(std::size_t count) {
    std::vector<Outlet> result;
    for (std::size_t i = 0; i < count; ++i)
        result.push_back({SocketAddress(in_addr{}, static_cast<std::uint16_t>(1000 + i)), false});
    return result;
}

}  // namespace

Test(multicast_queue, everything_goes_out_once_in_order_whatever_the_room) {
    constexpr std::size_t kMax = MulticastQueue::kMax;
    for (const std::size_t room : {std::size_t{1}, std::size_t{2}, kMax - 1, kMax, kMax + 1})
        for (const std::size_t addresses : {1U, 3U}) {
            const auto to = outlets(addresses);
            Narrow transport;
            MulticastQueue queue;
            std::vector<std::string> payloads;
            for (std::size_t i = 0; i < kMax; ++i) payloads.push_back("payload " + std::to_string(i));
            for (std::size_t i = 0; i < payloads.size(); ++i) {
                cr_assert_not(queue.full());
                queue.add({}, std::as_bytes(std::span(payloads[i])),
                          static_cast<std::uint32_t>(i % addresses));
            }
            cr_assert(queue.full());
            transport.room = room;
            cr_assert_eq(queue.flush(transport, to, kPayload), 0);
            cr_assert_eq(queue.blocked(), room < kMax);
            // The memory belongs to the application again.
            const std::vector<std::string> expected = payloads;
            for (std::string& payload : payloads) std::memset(payload.data(), '#', payload.size());
            while (queue.blocked()) {
                transport.room = room;
                cr_assert_eq(queue.flush(transport, to, kPayload), 0);
            }
            cr_assert_eq(transport.sent.size(), expected.size());
            std::vector<std::size_t> last(addresses, 0);
            for (const auto& [port, text] : transport.sent) {
                const std::size_t address = port - 1000U, at = address + addresses * last[address]++;
                cr_assert_str_eq(text.c_str(), expected[at].c_str(), "room %zu", room);
            }
            cr_assert_not(queue.full());
        }
}

Test(multicast_queue, packets_that_cannot_be_sent_are_reported_and_left_out) {
    const auto to = outlets(1);
    Narrow transport;
    transport.room = 100;
    transport.poison = "poison";
    MulticastQueue queue;
    const std::string before = "before", poison = "poison", after = "after";
    for (const std::string* text : {&before, &poison, &after})
        queue.add({}, std::as_bytes(std::span(*text)), 0);
    cr_assert_eq(queue.flush(transport, to, kPayload), EMSGSIZE);
    cr_assert(queue.blocked(), "what is behind it waits");
    cr_assert_eq(queue.flush(transport, to, kPayload), 0);
    cr_assert_not(queue.blocked());
    cr_assert_eq(transport.sent.size(), 2U);
    cr_assert_str_eq(transport.sent[1].second.c_str(), "after");
}

Test(multicast_queue, payloads_that_are_gone_are_not_sent_but_copies_are) {
    const auto to = outlets(1);
    Narrow transport;
    MulticastQueue queue;
    const std::string text = "text";
    queue.add({}, std::as_bytes(std::span(text)), 0);
    queue.forget_payloads();
    transport.room = 10;
    cr_assert_eq(queue.flush(transport, to, kPayload), 0);
    cr_assert(transport.sent.empty());
    queue.add({}, std::as_bytes(std::span(text)), 0);
    transport.room = 0;
    (void)queue.flush(transport, to, kPayload);
    queue.forget_payloads();
    transport.room = 10;
    (void)queue.flush(transport, to, kPayload);
    cr_assert_eq(transport.sent.size(), 1U);
}
