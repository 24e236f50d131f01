#include "split_cases.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "split/connections.h"
#include "split_net.h"

namespace mcastcoll::fabtest {
namespace {

using sites::Endpoint;
using Bytes = std::vector<std::byte>;

Bytes stream(std::uint64_t number, std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; i++) bytes[i] = pattern(number, i);
    return bytes;
}

void expect(int fd, std::uint64_t number, std::size_t size) {
    Bytes got(size);
    MUST(receive_all(fd, got.data(), size) == size);
    MUST(got == stream(number, size));
}

void expect_end(int fd) {
    std::byte one;
    MUST(receive_all(fd, &one, 1) == 0);
}

// The client sends its true address, which must equal the peer's address at the server.
void send_name(int fd) {
    const Endpoint me = own(fd);
    send_all(fd, &me, sizeof me);
}
void expect_name(int fd, const Endpoint& from) {
    Endpoint received;
    MUST(receive_all(fd, &received, sizeof received) == sizeof received);
    MUST(received == from);
    MUST(peer(fd) == from);
    MUST(from.same_host(endpoint(kClientHost, 0)));
}

// Checks the same at the server if the preface (gateway/preface.h) arrives after accept() has returned.
void expect_name_late(int fd) {
    Endpoint received;
    MUST(receive_all(fd, &received, sizeof received) == sizeof received);
    MUST(received == peer(fd));
}

int client_socket(int flags = 0, int domain = AF_INET) {
    return bound_socket(kClientHost, domain, flags);
}

void finish_nonblocking(int fd, const Endpoint& server) {
    MUST(connect_to(fd, server) == -1 && errno == EINPROGRESS);
    MUST(comes(fd, POLLOUT));
    int error = -1;
    socklen_t length = sizeof error;
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
}

void client_echo(const Endpoint& server) {
    const int fd = client_socket();
    MUST(connect_to(fd, server) == 0);
    MUST(peer(fd) == server);
    send_name(fd);
    send_all(fd, stream(1, 100000).data(), 100000);
    expect(fd, 2, 100000);
    MUST(shutdown(fd, SHUT_WR) == 0);
    expect_end(fd);
}
void server_echo(int listener) {
    Endpoint from;
    const int fd = accept_from(listener, from);
    MUST(fd >= 0);
    expect_name(fd, from);
    expect(fd, 1, 100000);
    send_all(fd, stream(2, 100000).data(), 100000);
    expect_end(fd);
}

void client_nonblocking(const Endpoint& server) {
    const int fd = client_socket(SOCK_NONBLOCK), poller = epoll_create1(0);
    epoll_event wanted{EPOLLIN | EPOLLOUT | EPOLLET, {.fd = fd}}, event{};
    MUST(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &wanted) == 0);
    MUST(connect_to(fd, server) == -1 && errno == EINPROGRESS);
    // An edge-triggered poller added before the connection gets the event; a hang-up event may come first.
    for (int i = 0; i < 5 && (event.events & EPOLLOUT) == 0; i++)
        MUST(epoll_wait(poller, &event, 1, 30000) == 1);
    MUST((event.events & EPOLLOUT) != 0);
    // Some programs connect again to query the result: success, then EISCONN.
    const int again = connect_to(fd, server);
    MUST(again == 0 || errno == EISCONN);
    MUST(connect_to(fd, server) == -1 && errno == EISCONN);
    MUST(peer(fd) == server);
    send_name(fd);
    send_all(fd, stream(1, 100000).data(), 100000);
    expect(fd, 2, 100000);
    MUST(shutdown(fd, SHUT_WR) == 0);
    expect_end(fd);
}
void server_nonblocking(int listener) {
    MUST(fcntl(listener, F_SETFL, O_NONBLOCK) == 0);
    Endpoint from;
    int fd = -1;
    while ((fd = accept_from(listener, from, SOCK_NONBLOCK)) < 0) MUST(comes(listener, POLLIN));
    expect_name(fd, from);
    expect(fd, 1, 100000);
    send_all(fd, stream(2, 100000).data(), 100000);
    expect_end(fd);
}

// The connecting side receives first: the preface must not wait for its first byte.
void client_listens(const Endpoint& server) {
    const int fd = client_socket();
    MUST(connect_to(fd, server) == 0);
    expect(fd, 3, 1000);
    send_name(fd);
}
void client_listens_late(const Endpoint& server) {
    const int fd = client_socket(SOCK_NONBLOCK);
    MUST(connect_to(fd, server) == -1 && errno == EINPROGRESS);
    const int other = dup(fd);
    close(fd);
    MUST(comes(other, POLLIN));
    MUST(peer(other) == server);
    expect(other, 3, 1000);
    send_name(other);
}
void server_speaks(int listener) {
    Endpoint from;
    const int fd = accept_from(listener, from);
    MUST(fd >= 0);
    send_all(fd, stream(3, 1000).data(), 1000);
    expect_name(fd, from);
}

// Until the gateway answers, a write behaves as on any connection in progress.
void client_writes_early(const Endpoint& server) {
    const int fd = client_socket(SOCK_NONBLOCK);
    MUST(connect_to(fd, server) == -1 && errno == EINPROGRESS);
    std::byte one{7};
    MUST(send(fd, &one, 1, MSG_NOSIGNAL) == -1 && errno == EAGAIN);
    MUST(fcntl(fd, F_SETFL, 0) == 0);  // now the write blocks, and waits
    send_name(fd);
    send_all(fd, stream(1, 100000).data(), 100000);
    expect(fd, 2, 100000);
    MUST(shutdown(fd, SHUT_WR) == 0);
    expect_end(fd);
}

void client_many_calls(const Endpoint& server) {
    const int fd = client_socket();
    MUST(connect_to(fd, server) == 0);
    send_name(fd);
    Bytes bytes = stream(4, 60000);
    const std::array<iovec, 2> parts{{{bytes.data(), 10000}, {bytes.data() + 10000, 10000}}};
    MUST(writev(fd, parts.data(), 2) == 20000);
    iovec third{bytes.data() + 20000, 10000};
    msghdr message{};
    message.msg_iov = &third;
    message.msg_iovlen = 1;
    MUST(sendmsg(fd, &message, 0) == 10000);
    MUST(sendto(fd, bytes.data() + 30000, 10000, 0, nullptr, 0) == 10000);
    MUST(write(fd, bytes.data() + 40000, 10000) == 10000);
    std::FILE* const file = std::tmpfile();
    MUST(std::fwrite(bytes.data() + 50000, 1, 10000, file) == 10000 && std::fflush(file) == 0);
    off_t offset = 0;
    MUST(sendfile(fd, fileno(file), &offset, 10000) == 10000);
    MUST(shutdown(fd, SHUT_WR) == 0);
    expect_end(fd);
}
void server_many_calls(int listener) {
    const int fd = accept(listener, nullptr, nullptr);
    MUST(fd >= 0);
    expect_name_late(fd);
    Bytes got(60000);
    std::size_t done = 0;
    for (unsigned turn = 0; done < got.size(); turn++) {
        iovec part{got.data() + done, std::min<std::size_t>(got.size() - done, 7000)};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        ssize_t n = 0;
        switch (turn % 4) {
            case 0:
                n = readv(fd, &part, 1);
                break;
            case 1:
                n = recvmsg(fd, &message, 0);
                break;
            case 2:
                n = recvfrom(fd, part.iov_base, part.iov_len, 0, nullptr, nullptr);
                break;
            case 3:
                n = read(fd, part.iov_base, part.iov_len);
                break;
        }
        MUST(n > 0);
        done += static_cast<std::size_t>(n);
    }
    MUST(got == stream(4, 60000));
    expect_end(fd);
}

// The preface arrives late, and the server reads before: it must not read bytes of the preface, nor an end.
void server_reads_early(int listener) {
    Endpoint from;
    const int fd = accept_from(listener, from, SOCK_NONBLOCK);
    MUST(fd >= 0);
    std::byte one;
    MUST(recv(fd, &one, 1, 0) == -1 && errno == EAGAIN);
    MUST(comes(fd, POLLIN));
    expect_name_late(fd);
    expect(fd, 1, 100000);
    send_all(fd, stream(2, 100000).data(), 100000);
    expect_end(fd);
}
void server_blocks_early(int listener) {
    Endpoint from;
    const int fd = accept_from(listener, from);
    MUST(fd >= 0);
    expect_name_late(fd);
    expect(fd, 1, 100000);
    send_all(fd, stream(2, 100000).data(), 100000);
    expect_end(fd);
}

void client_six(const Endpoint& server) {
    const int fd = bound_socket(kClientHost, AF_INET6);
    MUST(connect_to(fd, server, AF_INET6) == 0);
    MUST(peer(fd) == server);
    sockaddr_storage address;
    socklen_t length = 3;  // too short a buffer: the call returns the necessary length
    MUST(getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
         length == sizeof(sockaddr_in6));
    send_name(fd);
    send_all(fd, stream(1, 100000).data(), 100000);
    expect(fd, 2, 100000);
    MUST(shutdown(fd, SHUT_WR) == 0);
    expect_end(fd);
}

void client_forks(const Endpoint& server) {
    const int fd = client_socket();
    MUST(connect_to(fd, server) == 0);
    const int child = fork();
    MUST(child >= 0);
    if (child == 0) {
        MUST(peer(fd) == server);
        send_name(fd);
        std::_Exit(0);
    }
    close(fd);
    int status = -1;
    MUST(waitpid(child, &status, 0) == child && status == 0);
}
void server_names(int listener) {
    Endpoint from;
    const int fd = accept_from(listener, from);
    MUST(fd >= 0);
    expect_name(fd, from);
    expect_end(fd);
}

// Descriptor numbers are reused: state of an old connection must not apply to the next one.
void client_reuses(const Endpoint& server) {
    const int fd = client_socket();
    MUST(connect_to(fd, server) == 0);
    send_name(fd);
    MUST(close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0) == 0);
    const int local = listening(kClientHost), again = client_socket();
    MUST(local == fd || again == fd);
    MUST(connect_to(again, own(local)) == 0);
    MUST(peer(again) == own(local));
    Endpoint from;
    const int accepted = accept_from(local, from);
    MUST(accepted >= 0 && from == own(again) && peer(accepted) == own(again));
}

constexpr int kMany = 1100;  // more connections than the library records without cleaning up
// Makes kMany connections; a connection that stays open meanwhile must not be affected.
void client_many(const Endpoint& server) {
    const int kept = client_socket();
    MUST(connect_to(kept, server) == 0);
    send_name(kept);
    expect(kept, 5, 1);
    for (int i = 0; i < kMany; i++) {
        const int fd = client_socket();
        MUST(connect_to(fd, server) == 0);
        close(fd);
    }
    MUST(peer(kept) == server);
    send_name(kept);
}
void server_many(int listener) {
    Endpoint first, from;
    const int kept = accept_from(listener, first);
    MUST(kept >= 0);
    expect_name(kept, first);
    send_all(kept, stream(5, 1).data(), 1);
    for (int i = 0; i < kMany; i++) {
        const int fd = accept_from(listener, from);
        MUST(fd >= 0);
        close(fd);
    }
    expect_name(kept, first);
}

// A connection without a preface is an ordinary connection from the gateway's own host.
void client_plain(const Endpoint& server) {
    const int fd = client_socket();
    MUST(connect_to(fd, server) == 0);
    send_all(fd, "MCCQ and more", 13);
    MUST(shutdown(fd, SHUT_WR) == 0);
    expect_end(fd);
}
void server_plain(int listener) {
    Endpoint from;
    const int fd = accept_from(listener, from);
    MUST(fd >= 0 && from.same_host(endpoint(kGatewayB, 0)) && peer(fd) == from);
    char text[14] = "";
    MUST(receive_all(fd, text, 13) == 13 && std::strcmp(text, "MCCQ and more") == 0);
    expect_end(fd);
}

void client_unheard(const Endpoint& server) {
    const int fd = client_socket();
    MUST(connect_to(fd, server) == 0);
    std::byte one;
    const ssize_t n = recv(fd, &one, 1, 0);
    MUST(n == 0 || (n < 0 && errno == ECONNRESET));
}
void server_aborts(int listener) {
    Endpoint from;
    MUST(accept_from(listener, from) == -1 && errno == ECONNABORTED);
}

void client_refused_far(const Endpoint& server) {
    Endpoint closed = server;
    const int unused = bound_socket(kServerHost);
    closed.port = own(unused).port;
    const int fd = client_socket();
    // connect() succeeds at the gateway, which cannot report the refusal; the first read reports it.
    MUST(connect_to(fd, closed) == 0);
    std::byte one;
    MUST(recv(fd, &one, 1, 0) == -1 && errno == ECONNRESET);
}
void server_nothing(int) {}

// A connection closed before its preface arrived must not cost every later call of the process a lookup.
void client_leaves(const Endpoint& server) {
    const int fd = client_socket();
    MUST(connect_to(fd, server) == 0);
    std::byte one;
    recv(fd, &one, 1, 0);
}
void server_leaves(int listener) {
    Endpoint from;
    const int fd = accept_from(listener, from);
    MUST(fd >= 0);
    close(fd);
    int ends[2];
    std::byte one{1};
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    MUST(split::unsettled.load() == 1);
    for (int i = 0; i < 5000 && split::unsettled.load() != 0; i++)
        MUST(write(ends[0], &one, 1) == 1 && read(ends[1], &one, 1) == 1);
    MUST(split::unsettled.load() == 0);
}

// A connection inside the own site goes direct, not through the gateway.
void client_local(const Endpoint&) {
    const int listener = listening(kClientHost);
    const int fd = client_socket(SOCK_NONBLOCK);
    finish_nonblocking(fd, own(listener));
    MUST(peer(fd) == own(listener));
    Endpoint from;
    MUST(accept_from(listener, from) >= 0 && from == own(fd));
}

constexpr RelayFaults kLateAccept{.accept_after_ms = 300}, kLatePreface{.preface_after_ms = 300},
    kLaterPreface{.preface_after_ms = 70}, kByteByByte{.byte_by_byte = true}, kNoPreface{.no_preface = true},
    kUnknown{.unknown_version = true};

constexpr std::array kCases{
    Case{"echo", client_echo, server_echo},
    Case{"nonblocking", client_nonblocking, server_nonblocking},
    Case{"server speaks first", client_listens, server_speaks},
    Case{"server speaks first, gateway is late", client_listens_late, server_speaks, AF_INET, kLateAccept},
    Case{"writing before the gateway answers", client_writes_early, server_echo, AF_INET, kLateAccept},
    Case{"every call", client_many_calls, server_many_calls},
    Case{"every call, preface late", client_many_calls, server_many_calls, AF_INET, kLatePreface},
    Case{"preface late, not blocking", client_echo, server_reads_early, AF_INET, kLatePreface},
    Case{"preface late, blocking", client_echo, server_blocks_early, AF_INET, kLatePreface},
    Case{"preface byte by byte", client_echo, server_blocks_early, AF_INET, kByteByByte},
    Case{"IPv6 sockets", client_six, server_echo, AF_INET6},
    Case{"fork", client_forks, server_names},
    Case{"descriptor used again", client_reuses, server_names},
    Case{"many connections", client_many, server_many},
    Case{"crossing", client_crosses, server_crosses},
    Case{"crossing, preface late", client_crosses, server_crosses, AF_INET, kLaterPreface},
    Case{"no preface", client_plain, server_plain, AF_INET, kNoPreface},
    Case{"unknown preface", client_unheard, server_aborts, AF_INET, kUnknown},
    Case{"refused at the far end", client_refused_far, server_nothing},
    Case{"closed before the preface", client_leaves, server_leaves, AF_INET, kLatePreface},
    Case{"inside the site", client_local, server_nothing},
};

}  // namespace

std::span<const Case> all_cases() {
    return kCases;
}

}  // namespace mcastcoll::fabtest
