// UDP multicast over real sockets.
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using namespace mcastcoll::transport;

TestSuite(transport_multicast, .timeout = 300);

namespace {

Bytes bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

bool send_text(OneGroup& transport, const std::string& header, const std::string& payload) {
    const Datagram datagram{bytes_of(header), bytes_of(payload)};
    return transport.send(std::span(&datagram, 1)).accepted == 1;
}

// Receives `count` datagrams and returns their texts.
std::vector<std::string> receive_texts(OneGroup& transport, std::size_t count,
                                       SocketAddress* source = nullptr) {
    std::vector<std::string> texts;
    eventually(kEventTimeoutMs, [&] {
        transport.hub->receive(now(), [&](Bytes bytes, const SocketAddress& from) {
            texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            if (source != nullptr) *source = from;
        });
        return texts.size() >= count;
    });
    return texts;
}

void round_trip(const std::string& interface, int family) {
    auto options = multicast_options(interface, family);
    auto sender = must(OneGroup::open(options));
    auto other = must(OneGroup::open(options));
    cr_assert(send_text(*sender, "head", "body"));
    cr_assert(send_text(*sender, "", ""));
    for (OneGroup* receiver : {sender.get(), other.get()}) {
        SocketAddress source;
        const auto texts = receive_texts(*receiver, 2, &source);
        cr_assert_eq(texts.size(), 2);
        cr_assert_eq(texts[0], "headbody");
        cr_assert_eq(texts[1], "");
        cr_assert(source == sender->local_address(), "the source names the sender");
    }
    cr_assert_not(sender->local_address() == other->local_address());
    const MulticastCounters counters = sender->hub->counters();
    cr_assert_eq(counters.datagrams_sent, 2);
    cr_assert_eq(counters.bytes_sent, 8);
    cr_assert_eq(counters.datagrams_received, 2);
    cr_assert_eq(counters.socket_drops, 0);
    cr_assert_eq(sender->hub->receive(now(), [](Bytes, const SocketAddress&) {}), 0);
}

// A member process: receives `count` numbered datagrams of `root` in order, and ignores datagrams of other
// senders.
int member(const OneGroupOptions& options, const SocketAddress& root, int count, const Pipe& ready) {
    auto opened = OneGroup::open(options);
    if (!opened) return 2;
    ready.put('r');
    int next = 0;
    bool in_order = true;
    eventually(kEventTimeoutMs, [&] {
        opened.value()->hub->receive(now(), [&](Bytes bytes, const SocketAddress& source) {
            int number = -1;
            if (!(source == root) || bytes.size() != sizeof number) return;
            std::memcpy(&number, bytes.data(), sizeof number);
            in_order = in_order && number == next++;
        });
        return next == count;
    });
    return next == count && in_order ? 0 : 1;
}

// A function that runs in a process at the far end of the cable, and gets the root's address.
using FarBody = std::function<int(const OneGroupOptions&, const SocketAddress& root, const Pipe& ready)>;

FarHost::Body far_body(OneGroupOptions options, const FarBody& body) {
    return [=](const FarHost& self) mutable {
        SocketAddress root;
        options.interface = find_interface("mc1").value();
        if (!self.go.get_all(&root, sizeof root, kEventTimeoutMs)) return 6;
        return body(options, root, self.ready);
    };
}

// Sends the root's address to the far host, and waits until its function is ready to receive from the root.
void start(const FarHost& far, const OneGroup& root) {
    const SocketAddress address = root.local_address();
    cr_assert_eq(far.go.put_all(&address, sizeof address), 0);
    cr_assert_eq(far.ready.get(kEventTimeoutMs), 'r');
}

// Whether this kernel supports runs when sending (UDP_SEGMENT) or receiving (UDP_GRO).
bool kernel_has(int option) {
    const auto socket = open_datagram_socket(AF_INET);
    return set_option(socket.value().get(), IPPROTO_UDP, option, 1, "an option of UDP").ok();
}

Sent send_texts(OneGroup& transport, const std::vector<std::string>& texts) {
    std::vector<Datagram> datagrams;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const Bytes bytes = bytes_of(texts[i]);
        const std::size_t header = std::min(bytes.size(), i % 5 * 8);
        datagrams.push_back({bytes.first(header), bytes.subspan(header)});
    }
    return transport.send(datagrams);
}

// Returns a datagram with contents that depend on its number.
std::string numbered(std::size_t number, std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(number * 31 + i * 7 + i / 256);
    return text;
}

// Returns batches of 1 to 100 datagrams: equal sizes, a short last datagram, a short or an empty datagram
// inside or last, and growing sizes.
std::vector<std::vector<std::string>> run_shapes(std::size_t max_payload) {
    const std::size_t full = std::min<std::size_t>(max_payload, 1472);
    std::vector<std::vector<std::string>> shapes;
    for (const std::size_t count :
         std::initializer_list<std::size_t>{1, 2, 3, 31, 32, 33, 44, 45, 64, 65, 96, 97, 100}) {
        using SizeOf = std::size_t (*)(std::size_t at, std::size_t count, std::size_t full);
        for (const SizeOf size_of : std::initializer_list<SizeOf>{
                 [](std::size_t, std::size_t, std::size_t max) { return max; },
                 [](std::size_t, std::size_t, std::size_t) -> std::size_t { return 1; },
                 [](std::size_t at, std::size_t all, std::size_t max) { return at + 1 < all ? max : 1; },
                 [](std::size_t at, std::size_t all, std::size_t max) { return at + 1 < all ? max : 0; },
                 [](std::size_t at, std::size_t all, std::size_t) -> std::size_t {
                     return at == all / 2 ? 0 : 200;
                 },
                 [](std::size_t at, std::size_t, std::size_t) -> std::size_t {
                     return at % 7 == 6 ? 63 : 64;
                 },
                 [](std::size_t at, std::size_t, std::size_t) { return at / 3; },
             }) {
            std::vector<std::string> shape;
            for (std::size_t at = 0; at < count; ++at)
                shape.push_back(numbered(shapes.size() + at, size_of(at, count, full)));
            shapes.push_back(std::move(shape));
        }
    }
    return shapes;
}

}  // namespace

Test(transport_multicast, loopback_v4) {
    round_trip("lo", 4);
}

Test(transport_multicast, interface_v4) {
    enter_network_namespace();
    round_trip("mc0", 4);
}

Test(transport_multicast, interface_v6) {
    enter_network_namespace();
    round_trip("mc0", 6);
}

Test(transport_multicast, every_process_of_a_host_gets_its_copy) {
    constexpr int kCount = 100;
    const auto options = multicast_options("lo", 4);
    auto root = must(OneGroup::open(options));
    const Pipe ready;
    const auto body = [&] { return member(options, root->local_address(), kCount, ready); };
    Child first(body), second(body), third(body);
    for (int i = 0; i < 3; ++i) cr_assert_eq(ready.get(kEventTimeoutMs), 'r');
    std::vector<int> numbers(kCount);
    std::vector<Datagram> datagrams(kCount);
    for (int i = 0; i < kCount; ++i) {
        const auto at = static_cast<std::size_t>(i);
        numbers[at] = i;
        datagrams[at].payload = std::as_bytes(std::span(&numbers[at], 1));
    }
    cr_assert_eq(root->send(datagrams).accepted, kCount);
    cr_assert_eq(first.wait(), 0);
    cr_assert_eq(second.wait(), 0);
    cr_assert_eq(third.wait(), 0);
    cr_assert_eq(receive_texts(*root, kCount).size(), kCount,
                 "own copies come too, to be filtered by their source");
}

Test(transport_multicast, crosses_a_cable) {
    enter_network_namespace();
    const auto options = multicast_options("mc0", 4);
    FarHost far(far_body(options, [](const OneGroupOptions& there, const SocketAddress& root,
                                     const Pipe& ready) { return member(there, root, 1, ready); }));
    auto root = must(OneGroup::open(options));
    start(far, *root);
    const int zero = 0;
    const Datagram datagram{{}, std::as_bytes(std::span(&zero, 1))};
    cr_assert_eq(root->send(std::span(&datagram, 1)).accepted, 1);
    cr_assert_eq(far.wait(), 0);
}

// Sends every shape of a run (datagrams in one system call), and sequences that only look like a run: after
// each, receivers with and without support for runs have got the same datagrams.
void runs_arrive(const std::string& interface, int family, bool offload) {
    auto options = multicast_options(interface, family);
    auto taking = must(OneGroup::open(options));
    options.offload = false;
    auto plain = must(OneGroup::open(options));
    options.offload = offload;
    auto sender = must(OneGroup::open(options));
    std::uint64_t sent = 0, bytes = 0;
    for (const auto& shape : run_shapes(sender->hub->max_payload())) {
        cr_assert_eq(send_texts(*sender, shape).accepted, shape.size());
        for (OneGroup* receiver : {taking.get(), plain.get(), sender.get()})
            cr_assert(receive_texts(*receiver, shape.size()) == shape, "%zu datagrams", shape.size());
        sent += shape.size();
        for (const std::string& text : shape) bytes += text.size();
    }
    cr_assert_eq(sender->hub->counters().datagrams_sent, sent);
    cr_assert_eq(sender->hub->counters().bytes_sent, bytes);
    for (OneGroup* receiver : {taking.get(), plain.get()}) {
        cr_assert_eq(receiver->hub->counters().datagrams_received, sent);
        cr_assert_eq(receiver->hub->counters().bytes_received, bytes);
        cr_assert_eq(receiver->hub->counters().truncated, 0);
    }
    cr_assert_eq(plain->hub->counters().runs_received, 0);
    const bool sends_runs = offload && kernel_has(UDP_SEGMENT);
    cr_assert_eq(sender->hub->counters().runs_sent > 0, sends_runs);
    cr_assert_eq(taking->hub->counters().runs_received > 0, sends_runs && kernel_has(UDP_GRO));
}

Test(transport_multicast, runs_arrive_on_loopback) {
    runs_arrive("lo", 4, true);
    runs_arrive("lo", 4, false);
}

Test(transport_multicast, runs_arrive_on_an_interface_v4) {
    enter_network_namespace();
    runs_arrive("mc0", 4, true);
    runs_arrive("mc0", 4, false);
}

Test(transport_multicast, runs_arrive_on_an_interface_v6) {
    enter_network_namespace();
    runs_arrive("mc0", 6, true);
    runs_arrive("mc0", 6, false);
}

void runs_cross_a_cable(bool far_takes_runs) {
    enter_network_namespace();
    auto options = multicast_options("mc0", 4);
    options.loop = false;
    FarHost far(far_body(options, [&](OneGroupOptions there, const SocketAddress&, const Pipe& ready) {
        there.offload = far_takes_runs;
        auto receiver = OneGroup::open(there);
        if (!receiver) return 2;
        ready.put('r');
        for (const auto& shape : run_shapes(receiver.value()->hub->max_payload())) {
            if (receive_texts(*receiver.value(), shape.size()) != shape) return 1;
            ready.put('k');
        }
        const bool runs = receiver.value()->hub->counters().runs_received > 0;
        return runs == (far_takes_runs && kernel_has(UDP_GRO)) ? 0 : 7;
    }));
    auto root = must(OneGroup::open(options));
    start(far, *root);
    for (const auto& shape : run_shapes(root->hub->max_payload())) {
        cr_assert_eq(send_texts(*root, shape).accepted, shape.size());
        cr_assert_eq(far.ready.get(kEventTimeoutMs), 'k', "%zu datagrams", shape.size());
    }
    cr_assert_eq(far.wait(), 0);
}

Test(transport_multicast, runs_cross_a_cable) {
    runs_cross_a_cable(true);
}

Test(transport_multicast, runs_cross_a_cable_to_receivers_of_datagrams) {
    runs_cross_a_cable(false);
}

Test(transport_multicast, a_kernel_that_refuses_runs_gets_datagrams) {
    auto options = multicast_options("lo", 4);
    auto transport = must(OneGroup::open(options));
    if (!kernel_has(UDP_SEGMENT)) cr_skip_test("this kernel takes no runs");
    // A run needs the checksums that this option turns off.
    const int on = 1;
    cr_assert_eq(::setsockopt(transport->sender->descriptor(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
    const std::vector<std::string> texts(40, std::string(100, 'x'));
    const Sent sent = send_texts(*transport, texts);
    cr_assert_eq(sent.accepted, texts.size());
    cr_assert_eq(sent.error, 0);
    cr_assert(receive_texts(*transport, texts.size()) == texts);
    cr_assert_eq(transport->hub->counters().runs_sent, 0);
    cr_assert_eq(transport->hub->counters().send_errors, 0);
}

Test(transport_multicast, an_mtu_that_shrank_is_an_error_of_the_first_too_long) {
    enter_network_namespace();
    auto transport = must(OneGroup::open(multicast_options("mc0", 4)));
    shell("ip link set mc0 mtu 600");
    const std::vector<std::string> small(4, std::string(100, 's'));
    std::vector<std::string> mixed = small;
    mixed.resize(8, std::string(1000, 'b'));
    const Sent sent = send_texts(*transport, mixed);
    cr_assert_eq(sent.accepted, small.size());
    cr_assert_eq(sent.error, EMSGSIZE);
    cr_assert_eq(transport->hub->counters().send_errors, 1);
    cr_assert_eq(send_texts(*transport, small).accepted, small.size());
    std::vector<std::string> expected(8, small[0]);
    cr_assert(receive_texts(*transport, expected.size()) == expected);
}

Test(transport_multicast, only_what_is_too_long_of_a_run_is_dropped) {
    auto options = multicast_options("lo", 4);
    auto sender = must(OneGroup::open(options));
    options.payload_limit = 100;
    auto receiver = must(OneGroup::open(options));
    std::vector<std::string> texts(5, std::string(101, 'x'));
    texts.emplace_back(100, 'y');
    cr_assert_eq(send_texts(*sender, texts).accepted, texts.size());
    cr_assert(receive_texts(*receiver, 1) == std::vector<std::string>{std::string(100, 'y')});
    cr_assert_eq(receiver->hub->counters().truncated, 5);
    cr_assert_eq(receiver->hub->counters().datagrams_received, 6);
}

Test(transport_multicast, without_loop_the_host_does_not_receive_itself) {
    enter_network_namespace();
    for (const int family : {4, 6}) {
        auto options = multicast_options("mc0", family);
        auto looping = must(OneGroup::open(options));
        options.loop = false;
        auto silent = must(OneGroup::open(options));
        cr_assert(send_text(*silent, "", "silent"));
        cr_assert(send_text(*looping, "", "looping"));
        for (OneGroup* receiver : {silent.get(), looping.get()})
            cr_assert(receive_texts(*receiver, 1) == std::vector<std::string>{"looping"});
    }
}

Test(transport_multicast, respects_the_mtu) {
    enter_network_namespace();
    for (const int family : {4, 6}) {
        auto transport = must(OneGroup::open(multicast_options("mc0", family)));
        const std::size_t fits = transport->hub->max_payload();
        cr_assert_eq(fits, family == 4 ? 1472 : 1452);
        cr_assert(send_text(*transport, "12345678", std::string(fits - 8, 'x')));
        cr_assert_eq(receive_texts(*transport, 1).at(0).size(), fits);
        const Sent too_long = send_texts(*transport, {std::string(fits + 1, 'x')});
        cr_assert_eq(too_long.accepted, 0);
        cr_assert_eq(too_long.error, EMSGSIZE);
        cr_assert_eq(transport->hub->counters().send_errors, 1);
    }
}

Test(transport_multicast, an_error_within_a_batch_is_not_lost) {
    auto options = multicast_options("lo", 4);
    auto transport = must(OneGroup::open(options));
    const std::string small = "small";
    const std::string huge(70000, 'x');
    const std::array<Datagram, 3> batch{Datagram{bytes_of(small), {}},
                                        Datagram{bytes_of(small), bytes_of(huge)},
                                        Datagram{bytes_of(small), {}}};
    const Sent sent = transport->send(batch);
    cr_assert_eq(sent.accepted, 1);
    cr_assert_eq(sent.error, EMSGSIZE);
    cr_assert_eq(receive_texts(*transport, 1).size(), 1);
}

Test(transport_multicast, what_is_too_long_for_the_receiver_is_dropped) {
    auto options = multicast_options("lo", 4);
    auto sender = must(OneGroup::open(options));
    options.payload_limit = 100;
    auto receiver = must(OneGroup::open(options));
    cr_assert_eq(receiver->hub->max_payload(), 100);
    cr_assert(send_text(*sender, "", std::string(101, 'x')));
    cr_assert(send_text(*sender, "", std::string(100, 'y')));
    const auto texts = receive_texts(*receiver, 1);
    cr_assert_eq(texts.size(), 1);
    cr_assert_eq(texts[0], std::string(100, 'y'));
    cr_assert_eq(receiver->hub->counters().truncated, 1);
}

Test(transport_multicast, drops_of_a_full_socket_are_counted) {
    auto options = multicast_options("lo", 4);
    options.receive_buffer_bytes = 4096;
    auto transport = must(OneGroup::open(options));
    cr_assert_gt(transport->hub->receive_buffer_bytes(), 0);
    cr_assert_lt(transport->hub->receive_buffer_bytes(), 65536);
    for (int i = 0; i < 200; ++i) cr_assert(send_text(*transport, "", std::string(1000, 'x')));
    const std::uint64_t dropped = transport->hub->counters().socket_drops;
    cr_assert_gt(dropped, 0);
    cr_assert_eq(receive_texts(*transport, 200 - dropped).size(), 200 - dropped);
}

Test(transport_multicast, receives_in_bounded_batches) {
    auto transport = must(OneGroup::open(multicast_options("lo", 4)));
    for (int i = 0; i < 40; ++i) cr_assert(send_text(*transport, "", "x"));
    std::size_t delivered = 0;
    const auto count = [&](Bytes, const SocketAddress&) { ++delivered; };
    cr_assert_eq(transport->hub->receive(now(), count), MulticastTransport::kBatch);
    cr_assert_eq(transport->hub->receive(now(), count), 40 - MulticastTransport::kBatch);
    cr_assert_eq(transport->hub->receive(now(), count), 0);
    cr_assert_eq(delivered, 40);
}

Test(transport_multicast, descriptors_do_not_leak_into_programs_and_never_block) {
    auto transport = must(OneGroup::open(multicast_options("lo", 4)));
    for (const int descriptor : {transport->hub->descriptor(), transport->sender->descriptor()})
        cr_assert(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    cr_assert(::fcntl(transport->sender->descriptor(), F_GETFL) & O_NONBLOCK);
    cr_assert_eq(transport->hub->receive(now(), [](Bytes, const SocketAddress&) {}), 0);
}

Test(transport_multicast, bad_options_are_refused) {
    const auto good = multicast_options("lo", 4);
    const auto code = [](const OneGroupOptions& options) {
        auto opened = OneGroup::open(options);
        return opened ? 0 : opened.error().code;
    };
    cr_assert_eq(code(good), 0);
    auto bad = good;
    bad.family = 5;
    cr_assert_eq(code(bad), EINVAL);
    bad = good;
    bad.group = SocketAddress::parse("10.0.0.1:5000").value();
    cr_assert_eq(code(bad), EINVAL);
    bad = good;
    bad.group = good.group.with_port(0);
    cr_assert_eq(code(bad), EINVAL);
    bad = good;
    bad.family = 6;
    cr_assert_eq(code(bad), EINVAL, "an IPv4 group is no IPv6 group");
    bad = good;
    bad.ttl = 256;
    cr_assert_eq(code(bad), EINVAL);
    bad = good;
    bad.interface.index = 0;
    cr_assert_eq(code(bad), EINVAL);
    bad = good;
    bad.interface.up = false;
    cr_assert_eq(code(bad), ENETDOWN);
    bad = good;
    bad.interface.v4.reset();
    cr_assert_eq(code(bad), EADDRNOTAVAIL);
    bad = good;
    bad.interface.mtu = 20;
    cr_assert_eq(code(bad), EMSGSIZE);
}
