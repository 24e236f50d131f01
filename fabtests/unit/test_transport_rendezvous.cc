// The rendezvous socket: a process that knows only the inner address finds the endpoint, collisions included.
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/system.h"
#include "transport/rendezvous.h"
#include "transport/rendezvous_source.h"
#include "transport_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using namespace mcastcoll::transport;

TestSuite(transport_rendezvous, .timeout = 300);

namespace {

Bytes text_bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
}

// A TCP listener like an inner provider's.
struct Listener {
    explicit Listener(const char* host) {
        const SocketAddress any = SocketAddress::parse(host).value();
        socket = FileDescriptor(::socket(any.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
        cr_assert_eq(::bind(socket.get(), any.data(), any.size()), 0);
        cr_assert_eq(::listen(socket.get(), 4), 0);
        address = SocketAddress::of_socket(socket.get()).value();
    }
    FileDescriptor socket;
    SocketAddress address;
};

std::vector<std::string> receive_texts(Rendezvous& at, std::size_t count, RendezvousSource* from = nullptr) {
    std::vector<std::string> texts;
    eventually(kEventTimeoutMs, [&] {
        at.receive([&](Bytes bytes, const RendezvousSource& source) {
            texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            if (from != nullptr) *from = source;
        });
        return texts.size() >= count;
    });
    return texts;
}

RendezvousSource place(Bytes address, unsigned attempt) {
    return RendezvousSource::candidate(address, attempt).value();
}

// Returns which of the candidate ports of its address a rendezvous socket is bound to.
unsigned candidate_of(const Rendezvous& bound, Bytes own_address) {
    unsigned i = 0;
    while (i < kRendezvousCandidates && bound.local() != place(own_address, i)) ++i;
    return i;
}

void request_and_reply(Bytes first_address, Bytes second_address) {
    Rendezvous first = must(Rendezvous::open(first_address));
    Rendezvous second = must(Rendezvous::open(second_address));
    cr_assert_eq(first.send(second_address, candidate_of(second, second_address), text_bytes("who?")), 0);
    RendezvousSource source;
    const auto request = receive_texts(second, 1, &source);
    cr_assert_eq(request.size(), 1);
    cr_assert_eq(request[0], "who?");
    cr_assert(source == first.local(), "%s", source.to_string().c_str());
    cr_assert_eq(second.reply(source, text_bytes("me")), 0);
    const auto answer = receive_texts(first, 1);
    cr_assert_eq(answer.size(), 1);
    cr_assert_eq(answer[0], "me");
}

}  // namespace

Test(transport_rendezvous, candidates_are_pure_and_differ) {
    for (unsigned port = 1; port <= 65535; port += 13) {
        const auto ports = rendezvous_ports(static_cast<std::uint16_t>(port));
        cr_assert(ports == rendezvous_ports(static_cast<std::uint16_t>(port)));
        cr_assert_eq(ports[0], port);
        for (std::size_t i = 0; i < ports.size(); ++i) {
            cr_assert_neq(ports[i], 0);
            cr_assert_eq(std::count(ports.begin(), ports.end(), ports[i]), 1);
            if (i > 0) cr_assert(ports[i] >= 10000 && ports[i] < 20000);
        }
    }
    // Peers of other builds and machines must derive the same ports.
    const auto known = rendezvous_ports(40000);
    cr_assert_eq(known[1], 17401, "%d", known[1]);
}

Test(transport_rendezvous, names_ignore_trailing_zeros_only) {
    const std::string name("fi_shm://0:42");
    const std::string terminated = name + std::string(3, '\0');
    cr_assert(place(text_bytes(name), 0) == place(text_bytes(terminated), 0));
    cr_assert(place(text_bytes(name), 1) == place(text_bytes(name), 5));
    cr_assert(place(text_bytes(name), 0) != place(text_bytes(name), 1));
    cr_assert(place(text_bytes(name), 0) != place(text_bytes("fi_shm://0:43"), 0));
    // Peers of other builds and machines must derive the same name.
    cr_assert_eq(place(text_bytes(name), 3).to_string(), "@mcastcoll-707bbd27ced16221929820010d831eae-3");
}

Test(transport_rendezvous, ipv4) {
    const Listener first("127.0.0.1:0"), second("127.0.0.1:0");
    request_and_reply(first.address.bytes(), second.address.bytes());
}

Test(transport_rendezvous, ipv6) {
    const Listener first("[::1]:0"), second("[::1]:0");
    request_and_reply(first.address.bytes(), second.address.bytes());
}

Test(transport_rendezvous, names) {
    const std::string tag = "fi_shm://test:" + std::to_string(::getpid());
    const std::string first = tag + ":a", second = tag + ":b";
    request_and_reply(text_bytes(first), text_bytes(second));
}

Test(transport_rendezvous, a_taken_port_moves_it_to_the_next_candidate) {
    const Listener listener("127.0.0.1:0");
    std::vector<Rendezvous> owners;
    for (unsigned i = 0; i < kRendezvousCandidates; ++i) {
        owners.push_back(must(Rendezvous::open(listener.address.bytes())));
        cr_assert_eq(candidate_of(owners.back(), listener.address.bytes()), i);
    }
    auto fifth = Rendezvous::open(listener.address.bytes());
    cr_assert_not(fifth.ok());
    cr_assert_eq(fifth.error().code, EADDRINUSE);
    cr_assert_neq(fifth.error().message.find(std::to_string(listener.address.port())), std::string::npos);
    // Trying the candidates in turn reaches each of them.
    const Listener requesting("127.0.0.1:0");
    Rendezvous requester = must(Rendezvous::open(requesting.address.bytes()));
    for (unsigned attempt = 0; attempt < 2 * kRendezvousCandidates; ++attempt)
        cr_assert_eq(requester.send(listener.address.bytes(), attempt, text_bytes("x")), 0);
    for (Rendezvous& owner : owners) cr_assert_eq(receive_texts(owner, 2).size(), 2);
}

Test(transport_rendezvous, a_wildcard_endpoint_is_found_by_its_real_address) {
    const Listener listener("0.0.0.0:0");
    Rendezvous blocker = must(Rendezvous::open(listener.address.bytes()));
    Rendezvous owner = must(Rendezvous::open(listener.address.bytes()));
    cr_assert_eq(candidate_of(owner, listener.address.bytes()), 1);
    const Listener requesting("127.0.0.1:0");
    Rendezvous requester = must(Rendezvous::open(requesting.address.bytes()));
    const SocketAddress real = SocketAddress::parse("127.0.0.1").value().with_port(listener.address.port());
    cr_assert_eq(requester.send(real.bytes(), 1, text_bytes("x")), 0);
    cr_assert_eq(receive_texts(owner, 1).size(), 1);
}

Test(transport_rendezvous, bad_input_is_refused) {
    cr_assert_not(Rendezvous::open({}).ok());
    cr_assert_not(Rendezvous::open(SocketAddress::parse("127.0.0.1").value().bytes()).ok(), "no port");
    auto foreign = Rendezvous::open(SocketAddress::parse("203.0.113.9:4000").value().bytes());
    cr_assert_not(foreign.ok());
    cr_assert_eq(foreign.error().code, EADDRNOTAVAIL);
    const Listener listener("127.0.0.1:0");
    Rendezvous at = must(Rendezvous::open(listener.address.bytes()));
    const std::string longest(kRendezvousMaxBytes, 'x');
    cr_assert_eq(at.send(listener.address.bytes(), 0, text_bytes(longest)), 0);
    cr_assert_eq(receive_texts(at, 1).at(0), longest);
    cr_assert_eq(at.send(listener.address.bytes(), 0, text_bytes(longest + "x")), EMSGSIZE);
    cr_assert_eq(at.send(text_bytes("fi_shm://0:1"), 0, text_bytes("x")), EAFNOSUPPORT);
    cr_assert_eq(at.send({}, 0, text_bytes("x")), EINVAL);
    const std::string lonely = "fi_shm://test:lonely:" + std::to_string(::getpid());
    Rendezvous local = must(Rendezvous::open(text_bytes(lonely)));
    cr_assert_eq(local.send(text_bytes(lonely + "none"), 0, text_bytes("x")), ECONNREFUSED);
}

Test(transport_rendezvous, datagrams_too_long_are_dropped) {
    const Listener listener("127.0.0.1:0");
    Rendezvous at = must(Rendezvous::open(listener.address.bytes()));
    const FileDescriptor foreign_socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const std::string longer(kRendezvousMaxBytes + 1, 'x');
    cr_assert_gt(::sendto(foreign_socket.get(), longer.data(), longer.size(), 0, listener.address.data(),
                          listener.address.size()),
                 0);
    cr_assert_gt(::sendto(foreign_socket.get(), "ok", 2, 0, listener.address.data(), listener.address.size()),
                 0);
    const auto texts = receive_texts(at, 1);
    cr_assert_eq(texts.size(), 1);
    cr_assert_eq(texts[0], "ok");
}

// All members of the largest welcome send hellos to rank 0, which has not called the join yet.
Test(transport_rendezvous, the_hellos_of_a_thousand_members_fit) {
    std::size_t limit = 0;
    std::ifstream("/proc/sys/net/core/rmem_max") >> limit;
    const std::size_t members = limit >= std::size_t{2} << 20 ? 1023 : 400;
    const Listener leader("127.0.0.1:0"), other("127.0.0.1:0");
    Rendezvous to = must(Rendezvous::open(leader.address.bytes()));
    Rendezvous from = must(Rendezvous::open(other.address.bytes()));
    const unsigned candidate = candidate_of(to, leader.address.bytes());
    const std::string hello(300, 'x');
    for (std::size_t i = 0; i < members; ++i)
        cr_assert_eq(from.send(leader.address.bytes(), candidate, text_bytes(hello)), 0);
    cr_assert_eq(receive_texts(to, members).size(), members);
}

Test(transport_rendezvous, reads_no_more_than_the_limit) {
    const Listener listener("127.0.0.1:0");
    Rendezvous bound = must(Rendezvous::open(listener.address.bytes()));
    const unsigned own = candidate_of(bound, listener.address.bytes());
    for (int i = 0; i < 5; ++i) cr_assert_eq(bound.send(listener.address.bytes(), own, text_bytes("x")), 0);
    unsigned delivered = 0;
    const auto count = [&](Bytes, const RendezvousSource&) { ++delivered; };
    cr_assert_eq(bound.receive(count, 0), 0);
    cr_assert_eq(bound.receive(count, 2), 2);
    cr_assert_eq(delivered, 2);
    cr_assert_eq(bound.receive(count), 3, "as many as there are");
    cr_assert_eq(delivered, 5);
}
