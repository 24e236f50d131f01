// Two processes connect to each other at once, with the same calls as Open MPI's btl/tcp: each process sends
// its name on the opened connection; the process with the lesser name keeps the opened connection and ends
// the accepted connection, the process with the greater name drops the opened connection and answers on the
// accepted connection. Neither may see a reset, and each peer's address must be true as soon as its name was
// read.
#include <fcntl.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "split_cases.h"
#include "split_net.h"

namespace mcastcoll::fabtest {
namespace {

using sites::Endpoint;

constexpr int kRounds = 100;
constexpr std::size_t kNameSize = 24;  // as long as Open MPI's
using Name = std::array<char, kNameSize>;
constexpr Name kLesser{"lesser"}, kGreater{"greater"};

class Side {
  public:
    Side(int listener, const Endpoint& other, bool greater)
        : listener_(listener), other_(other), greater_(greater) {}

    // Establishes the one connection that remains, on which both processes have the peer's name.
    int meet() {
        mine_ = bound_socket(greater_ ? kServerHost : kClientHost, AF_INET, SOCK_NONBLOCK);
        MUST(connect_to(mine_, other_) == 0 || errno == EINPROGRESS);
        said_ = known_ = false;
        for (met_ = -1; !done();) look();
        if (mine_ >= 0 && mine_ != met_) end(mine_);
        return met_;
    }

  private:
    bool done() const { return greater_ ? met_ >= 0 : met_ >= 0 && known_; }

    void look() {
        const short events = said_ ? POLLIN : POLLOUT;
        // take() waits for the other's name.  If both waited before sending their own, neither would
        // continue; so the lesser sends first.  poll() ignores -1.
        const int listener = greater_ || said_ ? listener_ : -1;
        std::array<pollfd, 2> polled{{{listener, POLLIN, 0}, {mine_, events, 0}}};
        if (met_ >= 0) polled[1].fd = -1;
        MUST(poll(polled.data(), polled.size(), 30000) > 0);
        if (polled[0].revents != 0) take();
        if (polled[1].revents == 0 || mine_ < 0 || met_ >= 0) return;
        if (said_)
            await_answer();
        else
            send_name();
    }

    void send_name() {
        int error = -1;
        socklen_t length = sizeof error;
        MUST(getsockopt(mine_, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
        const Name& name = greater_ ? kGreater : kLesser;
        send_all(mine_, name.data(), name.size());
        said_ = true;
    }

    // Waits for the answer on the own connection, or for its end, which only the greater process gets.
    void await_answer() {
        Name answer{};
        const std::size_t size = receive_all(mine_, answer.data(), answer.size());  // no reset
        if (size == 0) {
            MUST(greater_);
            return end(mine_);
        }
        MUST(!greater_ && size == answer.size() && answer == kGreater);
        met_ = mine_;
    }

    void take() {
        Endpoint from;
        const int fd = accept_from(listener_, from);
        MUST(fd >= 0);
        const timeval limit{2, 0};
        MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
        Name name{};
        const std::size_t size = receive_all(fd, name.data(), name.size());
        int accepted = fd;
        known_ = true;
        // The greater process may drop its connection before sending anything.
        MUST(size == name.size() || (!greater_ && size == 0));
        if (size == 0) return end(accepted);
        MUST(name == (greater_ ? kLesser : kGreater));
        MUST(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
        MUST(peer(fd).same_host(other_));
        if (!greater_) return end(accepted);
        if (mine_ >= 0) end(mine_);
        send_all(fd, kGreater.data(), kGreater.size());
        met_ = fd;
    }

    static void end(int& fd) {
        shutdown(fd, SHUT_RDWR);
        close(fd);
        fd = -1;
    }

    const int listener_;
    const Endpoint other_;
    const bool greater_;
    int mine_ = -1, met_ = -1;
    bool said_ = false;   // our name was sent, on our own connection
    bool known_ = false;  // the other's connection has arrived, too
};

// Runs the rounds of one process. A round begins when both processes have announced it on a permanent
// connection, with a short random offset.
void cross(int listener, const Endpoint& other, int control, bool greater) {
    Side side(listener, other, greater);
    for (int round = 0; round < kRounds; round++) {
        std::byte one{1};
        send_all(control, &one, 1);
        MUST(receive_all(control, &one, 1) == 1);
        if (round % 3 != 0) usleep(static_cast<unsigned>((round % 3 == 1) == greater ? round * 14 : 0));
        const int met = side.meet();
        send_all(met, &one, 1);
        MUST(receive_all(met, &one, 1) == 1);
        close(met);
    }
}

}  // namespace

void client_crosses(const Endpoint& server) {
    const int control = bound_socket(kClientHost), listener = listening(kClientHost);
    MUST(connect_to(control, server) == 0);
    const Endpoint here = own(listener);
    send_all(control, &here, sizeof here);
    cross(listener, server, control, false);
}

void server_crosses(int listener) {
    Endpoint from, other;
    const int control = accept_from(listener, from);
    MUST(control >= 0 && receive_all(control, &other, sizeof other) == sizeof other);
    cross(listener, other, control, true);
}

}  // namespace mcastcoll::fabtest
