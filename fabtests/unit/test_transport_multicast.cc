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

#include "transport/multicast_hub.h"
#include "transport_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;

TestSuite(transport_multicast, .timeout = 300);

namespace {

Bytes bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::unique_ptr<OneGroup> open_or_fail(const OneGroupOptions& options) {
    auto opened = OneGroup::open(options);
    cr_assert(opened.ok(), "%s", opened.ok() ? "" : opened.error().message.c_str());
    return std::move(opened).value();
}

bool send_text(OneGroup& transport, const std::string& header, const std::string& payload) {
    const Datagram datagram{bytes_of(header), bytes_of(payload)};
    return transport.send(std::span(&datagram, 1)).accepted == 1;
}

// What comes until `count` datagrams have come.
std::vector<std::string> receive_texts(OneGroup& transport, std::size_t count,
                                       SocketAddress* source = nullptr) {
    std::vector<std::string> texts;
    eventually(kPatienceMs, [&] {
        transport.receive(now(), [&](Bytes bytes, const SocketAddress& from) {
            texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            if (source != nullptr) *source = from;
        });
        return texts.size() >= count;
    });
    return texts;
}

void round_trip(const std::string& interface, int family) {
    auto options = multicast_options(interface, family);
    auto sender = open_or_fail(options);
    auto other = open_or_fail(options);
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
    const MulticastCounters counters = sender->counters();
    cr_assert_eq(counters.datagrams_sent, 2);
    cr_assert_eq(counters.bytes_sent, 8);
    cr_assert_eq(counters.datagrams_received, 2);
    cr_assert_eq(counters.socket_drops, 0);
    cr_assert_eq(sender->receive(now(), [](Bytes, const SocketAddress&) {}), 0);
}

// A member process: takes `count` numbered datagrams of `root` in order, others are none of its business.
int member(const OneGroupOptions& options, const SocketAddress& root, int count, const Pipe& ready) {
    auto opened = OneGroup::open(options);
    if (!opened) return 2;
    ready.put('r');
    int next = 0;
    bool in_order = true;
    eventually(kPatienceMs, [&] {
        opened.value()->receive(now(), [&](Bytes bytes, const SocketAddress& source) {
            int number = -1;
            if (!(source == root) || bytes.size() != sizeof number) return;
            std::memcpy(&number, bytes.data(), sizeof number);
            in_order = in_order && number == next++;
        });
        return next == count;
    });
    return next == count && in_order ? 0 : 1;
}

// A process on the far end of the cable, which takes mc1 along. There must be no other.
class FarHost {
  public:
    using Body = std::function<int(const OneGroupOptions&, const SocketAddress& root, const Pipe& ready)>;

    FarHost(const OneGroupOptions& options, const Body& body) : child_([&] { return live(options, body); }) {
        cr_assert_eq(ready_.get(kPatienceMs), 'n');
        shell("ip link set mc1 netns " + std::to_string(child_.pid()));
        go_.put('g');
        cr_assert_eq(ready_.get(kPatienceMs), 'u');
        // The kernel passes nothing on until it has seen, in its own time, that both ends of the cable are
        // up.
        shell(
            "for i in $(seq 500); do ip link show mc0 | grep -q 'state UP' && exec sleep 0.1; sleep 0.02; "
            "done; exit 1");
    }
    // Names the root, and waits until the body is ready for it.
    void start(const OneGroup& root) {
        cr_assert_eq(go_.put_all(&root.local_address(), sizeof(SocketAddress)), 0);
        cr_assert_eq(ready_.get(kPatienceMs), 'r');
    }
    int get() const { return ready_.get(kPatienceMs); }
    int wait() { return child_.wait(); }

  private:
    int live(OneGroupOptions options, const Body& body) const {
        if (::unshare(CLONE_NEWNET) != 0) return 3;
        ready_.put('n');
        if (go_.get(kPatienceMs) != 'g') return 4;
        if (::system("ip addr add 10.77.0.2/24 dev mc1 && ip link set mc1 up") != 0) return 5;
        options.interface = find_interface("mc1").value();
        SocketAddress root;
        ready_.put('u');
        if (!go_.get_all(&root, sizeof root, kPatienceMs)) return 6;
        return body(options, root, ready_);
    }

    Pipe go_, ready_;
    Child child_;
};

Sent send_texts(OneGroup& transport, const std::vector<std::string>& texts) {
    std::vector<Datagram> datagrams;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const Bytes bytes = bytes_of(texts[i]);
        const std::size_t header = std::min(bytes.size(), i % 5 * 8);
        datagrams.push_back({bytes.first(header), bytes.subspan(header)});
    }
    return transport.send(datagrams);
}

// A datagram with a content of its own.
std::string numbered(std::size_t number, std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(number * 31 + i * 7 + i / 256);
    return text;
}

// Batches of 1 to 100 datagrams: equal sizes, a short last one, a short or an empty one inside or last, and
// sizes that grow.
std::vector<std::vector<std::string>> run_shapes(std::size_t max_payload) {
    const std::size_t full = std::min<std::size_t>(max_payload, 1472);
    std::vector<std::vector<std::string>> shapes;
    for (const std::size_t count :
         std::initializer_list<std::size_t>{1, 2, 3, 31, 32, 33, 44, 45, 64, 65, 96, 97, 100}) {
        using SizeOf = std::size_t (*)(std::size_t at, std::size_t count, std::size_t full);
        for (const SizeOf size_of : std::initializer_list<SizeOf>{
                 [](std::size_t, std::size_t, std::size_t most) { return most; },
                 [](std::size_t, std::size_t, std::size_t) -> std::size_t { return 1; },
                 [](std::size_t at, std::size_t all, std::size_t most) { return at + 1 < all ? most : 1; },
                 [](std::size_t at, std::size_t all, std::size_t most) { return at + 1 < all ? most : 0; },
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
    auto root = open_or_fail(options);
    const Pipe ready;
    const auto body = [&] { return member(options, root->local_address(), kCount, ready); };
    Child first(body), second(body), third(body);
    for (int i = 0; i < 3; ++i) cr_assert_eq(ready.get(kPatienceMs), 'r');
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
    FarHost far(options, [](const OneGroupOptions& there, const SocketAddress& root, const Pipe& ready) {
        return member(there, root, 1, ready);
    });
    auto root = open_or_fail(options);
    far.start(*root);
    const int zero = 0;
    const Datagram datagram{{}, std::as_bytes(std::span(&zero, 1))};
    cr_assert_eq(root->send(std::span(&datagram, 1)).accepted, 1);
    cr_assert_eq(far.wait(), 0);
}

// Every shape of a run, and what only looks like one: after each, receivers that take runs and receivers that
// do not have got the same datagrams.
void runs_arrive(const std::string& interface, int family, bool offload) {
    auto options = multicast_options(interface, family);
    auto taking = open_or_fail(options);
    options.offload = false;
    auto plain = open_or_fail(options);
    options.offload = offload;
    auto sender = open_or_fail(options);
    std::uint64_t sent = 0, bytes = 0;
    for (const auto& shape : run_shapes(sender->max_payload())) {
        cr_assert_eq(send_texts(*sender, shape).accepted, shape.size());
        for (OneGroup* receiver : {taking.get(), plain.get(), sender.get()})
            cr_assert(receive_texts(*receiver, shape.size()) == shape, "%zu datagrams", shape.size());
        sent += shape.size();
        for (const std::string& text : shape) bytes += text.size();
    }
    cr_assert_eq(sender->counters().datagrams_sent, sent);
    cr_assert_eq(sender->counters().bytes_sent, bytes);
    for (OneGroup* receiver : {taking.get(), plain.get()}) {
        cr_assert_eq(receiver->counters().datagrams_received, sent);
        cr_assert_eq(receiver->counters().bytes_received, bytes);
        cr_assert_eq(receiver->counters().truncated, 0);
    }
    cr_assert_eq(plain->counters().runs_received, 0);
    cr_assert_eq(sender->counters().runs_sent > 0, sender->sends_runs());
    cr_assert_eq(taking->counters().runs_received > 0, sender->sends_runs() && taking->receives_runs());
    if (!offload) cr_assert_not(sender->sends_runs());
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
    FarHost far(options, [&](OneGroupOptions there, const SocketAddress&, const Pipe& ready) {
        there.offload = far_takes_runs;
        auto receiver = OneGroup::open(there);
        if (!receiver) return 2;
        ready.put('r');
        for (const auto& shape : run_shapes(receiver.value()->max_payload())) {
            if (receive_texts(*receiver.value(), shape.size()) != shape) return 1;
            ready.put('k');
        }
        const bool runs = receiver.value()->counters().runs_received > 0;
        return runs == receiver.value()->receives_runs() ? 0 : 7;
    });
    auto root = open_or_fail(options);
    far.start(*root);
    for (const auto& shape : run_shapes(root->max_payload())) {
        cr_assert_eq(send_texts(*root, shape).accepted, shape.size());
        cr_assert_eq(far.get(), 'k', "%zu datagrams", shape.size());
    }
    cr_assert_eq(far.wait(), 0);
}

Test(transport_multicast, runs_cross_a_cable) {
    runs_cross_a_cable(true);
}

Test(transport_multicast, runs_cross_a_cable_to_who_takes_datagrams) {
    runs_cross_a_cable(false);
}

Test(transport_multicast, a_kernel_that_refuses_runs_gets_datagrams) {
    auto options = multicast_options("lo", 4);
    auto transport = open_or_fail(options);
    if (!transport->sends_runs()) cr_skip_test("this kernel takes no runs");
    // A run needs the checksums that this turns off.
    const int on = 1;
    cr_assert_eq(::setsockopt(transport->send_descriptor(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
    const std::vector<std::string> texts(40, std::string(100, 'x'));
    const Sent sent = send_texts(*transport, texts);
    cr_assert_eq(sent.accepted, texts.size());
    cr_assert_eq(sent.error, 0);
    cr_assert(receive_texts(*transport, texts.size()) == texts);
    cr_assert_not(transport->sends_runs());
    cr_assert_eq(transport->counters().runs_sent, 0);
    cr_assert_eq(transport->counters().send_errors, 0);
}

Test(transport_multicast, an_mtu_that_shrank_is_an_error_of_the_first_too_long) {
    enter_network_namespace();
    auto transport = open_or_fail(multicast_options("mc0", 4));
    shell("ip link set mc0 mtu 600");
    const std::vector<std::string> small(4, std::string(100, 's'));
    std::vector<std::string> mixed = small;
    mixed.resize(8, std::string(1000, 'b'));
    const Sent sent = send_texts(*transport, mixed);
    cr_assert_eq(sent.accepted, small.size());
    cr_assert_eq(sent.error, EMSGSIZE);
    cr_assert_eq(transport->counters().send_errors, 1);
    cr_assert_eq(send_texts(*transport, small).accepted, small.size());
    std::vector<std::string> expected(8, small[0]);
    cr_assert(receive_texts(*transport, expected.size()) == expected);
}

Test(transport_multicast, only_what_is_too_long_of_a_run_is_dropped) {
    auto options = multicast_options("lo", 4);
    auto sender = open_or_fail(options);
    options.payload_limit = 100;
    auto receiver = open_or_fail(options);
    std::vector<std::string> texts(5, std::string(101, 'x'));
    texts.emplace_back(100, 'y');
    cr_assert_eq(send_texts(*sender, texts).accepted, texts.size());
    cr_assert(receive_texts(*receiver, 1) == std::vector<std::string>{std::string(100, 'y')});
    cr_assert_eq(receiver->counters().truncated, 5);
    cr_assert_eq(receiver->counters().datagrams_received, 6);
}

Test(transport_multicast, without_loop_the_host_does_not_hear_itself) {
    enter_network_namespace();
    for (const int family : {4, 6}) {
        auto options = multicast_options("mc0", family);
        auto looping = open_or_fail(options);
        options.loop = false;
        auto silent = open_or_fail(options);
        cr_assert(send_text(*silent, "", "silent"));
        cr_assert(send_text(*looping, "", "looping"));
        for (OneGroup* receiver : {silent.get(), looping.get()})
            cr_assert(receive_texts(*receiver, 1) == std::vector<std::string>{"looping"});
    }
}

Test(transport_multicast, other_groups_on_the_same_port_are_not_heard) {
    auto options = multicast_options("lo", 4);
    auto mine = open_or_fail(options);
    auto other_options = multicast_options("lo", 4);
    other_options.group = other_options.group.with_port(options.group.port());
    auto other = open_or_fail(other_options);
    cr_assert(send_text(*other, "not", "yours"));
    cr_assert(send_text(*mine, "", "mine"));
    const auto texts = receive_texts(*mine, 1);
    cr_assert_eq(texts.size(), 1);
    cr_assert_eq(texts[0], "mine");
}

Test(transport_multicast, respects_the_mtu) {
    enter_network_namespace();
    for (const int family : {4, 6}) {
        auto transport = open_or_fail(multicast_options("mc0", family));
        const std::size_t fits = transport->max_payload();
        cr_assert_eq(fits, family == 4 ? 1472 : 1452);
        cr_assert(send_text(*transport, "12345678", std::string(fits - 8, 'x')));
        cr_assert_eq(receive_texts(*transport, 1).at(0).size(), fits);
        const Sent too_long = send_texts(*transport, {std::string(fits + 1, 'x')});
        cr_assert_eq(too_long.accepted, 0);
        cr_assert_eq(too_long.error, EMSGSIZE);
        cr_assert_eq(transport->counters().send_errors, 1);
    }
}

Test(transport_multicast, an_error_within_a_batch_is_not_lost) {
    auto options = multicast_options("lo", 4);
    auto transport = open_or_fail(options);
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
    auto sender = open_or_fail(options);
    options.payload_limit = 100;
    auto receiver = open_or_fail(options);
    cr_assert_eq(receiver->max_payload(), 100);
    cr_assert(send_text(*sender, "", std::string(101, 'x')));
    cr_assert(send_text(*sender, "", std::string(100, 'y')));
    const auto texts = receive_texts(*receiver, 1);
    cr_assert_eq(texts.size(), 1);
    cr_assert_eq(texts[0], std::string(100, 'y'));
    cr_assert_eq(receiver->counters().truncated, 1);
}

Test(transport_multicast, drops_of_a_full_socket_are_counted) {
    auto options = multicast_options("lo", 4);
    options.receive_buffer_bytes = 4096;
    auto transport = open_or_fail(options);
    cr_assert_gt(transport->receive_buffer_bytes(), 0);
    cr_assert_lt(transport->receive_buffer_bytes(), 65536);
    for (int i = 0; i < 200; ++i) cr_assert(send_text(*transport, "", std::string(1000, 'x')));
    const std::uint64_t dropped = transport->counters().socket_drops;
    cr_assert_gt(dropped, 0);
    cr_assert_eq(receive_texts(*transport, 200 - dropped).size(), 200 - dropped);
}

Test(transport_multicast, receives_in_bounded_batches) {
    auto transport = open_or_fail(multicast_options("lo", 4));
    for (int i = 0; i < 40; ++i) cr_assert(send_text(*transport, "", "x"));
    std::size_t delivered = 0;
    const auto count = [&](Bytes, const SocketAddress&) { ++delivered; };
    cr_assert_eq(transport->receive(now(), count), MulticastTransport::kBatch);
    cr_assert_eq(transport->receive(now(), count), 40 - MulticastTransport::kBatch);
    cr_assert_eq(transport->receive(now(), count), 0);
    cr_assert_eq(delivered, 40);
}

Test(transport_multicast, descriptors_do_not_leak_into_programs_and_never_block) {
    auto transport = open_or_fail(multicast_options("lo", 4));
    for (const int descriptor : {transport->descriptor(), transport->send_descriptor()})
        cr_assert(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    cr_assert(::fcntl(transport->send_descriptor(), F_GETFL) & O_NONBLOCK);
    cr_assert_eq(transport->receive(now(), [](Bytes, const SocketAddress&) {}), 0);
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
