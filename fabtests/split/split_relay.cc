#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>

#include "gateway/preface.h"
#include "sites/sites.h"
#include "split_cases.h"
#include "split_net.h"

namespace mcastcoll::fabtest {
namespace {

void sleep_ms(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

void carry(int from, int to) {
    std::array<std::byte, 65536> block;
    for (;;) {
        const ssize_t n = recv(from, block.data(), block.size(), 0);
        if (n <= 0) break;
        for (ssize_t done = 0; done < n;) {
            const ssize_t sent =
                send(to, block.data() + done, static_cast<std::size_t>(n - done), MSG_NOSIGNAL);
            if (sent <= 0) return;
            done += sent;
        }
    }
    shutdown(to, SHUT_WR);
}

void serve(int near, const char* other_gateway, RelayFaults faults) {
    std::array<std::byte, gateway::kPrefaceSize> bytes;
    if (receive_all(near, bytes.data(), bytes.size()) != bytes.size()) return;
    const auto preface = gateway::decode_preface(bytes);
    MUST(preface.has_value());
    const int far = bound_socket(other_gateway);
    if (connect_to(far, preface->target) != 0) {
        const linger reset{1, 0};
        MUST(setsockopt(near, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
        close(near);
        return;
    }
    sleep_ms(faults.preface_after_ms);
    if (faults.unknown_version) bytes[5] = std::byte{99};
    if (!faults.no_preface) {
        const std::size_t step = faults.byte_by_byte ? 1 : bytes.size();
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            send_all(far, bytes.data() + at, step);
            // In total a little under the library's timeout, or over it: both must work.
            if (faults.byte_by_byte) sleep_ms(3);
        }
    }
    std::thread back([near, far] { carry(far, near); });
    carry(near, far);
    back.join();
    close(near);
    close(far);
}

// Serves a connection. If the preface's target is in the own site, the preface comes from another gateway:
// connects to the target. Otherwise connects to the gateway of the target's site.
void serve_between(int near, const sites::Sites& sites, const sites::Site& own) {
    std::array<std::byte, gateway::kPrefaceSize> bytes;
    const std::size_t got = receive_all(near, bytes.data(), bytes.size());
    const auto preface = gateway::decode_preface(std::span(bytes).first(got));
    const sites::Site* const to = preface ? sites.site_of(preface->target) : nullptr;
    const int one = 1;
    const int far = socket(own.gateway.family == sites::Family::v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);
    if (to == nullptr || connect_to(far, to == &own ? preface->target : to->wan) != 0) {
        const linger reset{1, 0};
        setsockopt(near, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    } else {
        setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        send_all(far, bytes.data(), bytes.size());
        std::thread back([near, far] { carry(far, near); });
        carry(near, far);
        back.join();
    }
    close(near);
    close(far);
}

}  // namespace

void run_gateway(const std::string& sites_file, const std::string& site) {
    const auto sites = sites::read_sites(sites_file);
    MUST(sites.ok());
    const sites::Site* const own = sites.value().named(site);
    MUST(own != nullptr);
    const int listener =
                  socket(own->gateway.family == sites::Family::v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0),
              one = 1;
    MUST(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
    sockaddr_storage address;
    const auto length = static_cast<socklen_t>(own->gateway.to(address));
    MUST(bind(listener, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
         listen(listener, 4096) == 0);
    for (;;) {
        const int near = accept(listener, nullptr, nullptr);
        if (near >= 0) std::thread([&, near] { serve_between(near, sites.value(), *own); }).detach();
    }
}

void run_relay(const RelayFaults& faults, int report_fd) {
    const int backlog = faults.accept_after_ms > 0 ? 0 : 4096;
    const std::array<int, 2> listeners{listening(kGatewayA, AF_INET, backlog),
                                       listening(kGatewayB, AF_INET, backlog)};
    const std::array<std::uint16_t, 2> ports{own(listeners[0]).port, own(listeners[1]).port};
    std::array<int, 4> fillers{-1, -1, -1, -1};
    if (faults.accept_after_ms > 0)  // fills the queue, so that the next connection is not answered
        for (int& one : fillers) {
            one = bound_socket(kGatewayA, AF_INET, SOCK_NONBLOCK);
            connect_to(one, own(listeners[0]));
        }
    MUST(write(report_fd, ports.data(), sizeof ports) == sizeof ports);
    close(report_fd);
    sleep_ms(faults.accept_after_ms);
    for (const int one : fillers)
        if (one >= 0) close(one);
    for (;;) {
        std::array<pollfd, 2> polled{{{listeners[0], POLLIN, 0}, {listeners[1], POLLIN, 0}}};
        MUST(poll(polled.data(), polled.size(), -1) > 0);
        for (std::size_t i = 0; i < 2; i++) {
            if (polled[i].revents == 0) continue;
            const int near = accept(listeners[i], nullptr, nullptr);
            if (near >= 0) std::thread(serve, near, i == 0 ? kGatewayB : kGatewayA, faults).detach();
        }
    }
}

}  // namespace mcastcoll::fabtest
