// Shared by the transport tests: a network namespace with a real multicast interface, helper processes that
// end with the test, and bounded waits.
#pragma once

#include <criterion/criterion.h>
#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <string>

#include "base/types.h"
#include "transport/membership.h"
#include "transport/multicast_hub.h"
#include "transport/multicast_transport.h"
#include "transport/udp_sender.h"

namespace mcastcoll::test {

// Moves this test (Criterion runs each in a process of its own) into a new network namespace where mc0 and
// mc1 are the two ends of a cable: mc0 is 10.77.0.1/24 and fd77::1/64 with an MTU of 1500. Skips the test
// without the privilege to do so.
void enter_network_namespace();
// Runs a shell command; fails the test when it fails.
void shell(const std::string& command);

// Returns the value of a call that must not fail.
template <typename Value>
Value must(Result<Value> result) {
    cr_assert(result.ok(), "%s", result.ok() ? "" : result.error().message.c_str());
    return std::move(result).value();
}

Nanoseconds now();
// Timeout for expected events, reached only if an event never comes.
inline constexpr int kEventTimeoutMs = 60'000;
// Calls `ready` until it is true, sleeping a little, for at most `milliseconds`.
bool eventually(int milliseconds, const std::function<bool()>& ready);

// A child process: runs `body`, exits with the result of `body`, and is killed when the parent dies. The
// destructor kills and reaps the process.
class Child {
  public:
    explicit Child(const std::function<int()>& body);
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();
    pid_t pid() const { return pid_; }
    void signal(int number) const;
    // Returns the exit status, or -1 if a signal ended the process.
    int wait();

  private:
    pid_t pid_;
};

// A pipe for short messages between processes.
class Pipe {
  public:
    Pipe();
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe();
    void put(char word) const;
    // Returns the next byte, or -1 if none arrived in time.
    int get(int milliseconds) const;
    int put_all(const void* data, std::size_t size) const;
    bool get_all(void* data, std::size_t size, int milliseconds) const;

  private:
    int ends_[2];
};

// A process at the far end of the cable, in a namespace that has mc1 as 10.77.0.2/24. At most one may exist.
class FarHost {
  public:
    using Body = std::function<int(const FarHost& self)>;
    // Returns when the body has started and the cable works.
    explicit FarHost(const Body& body);
    pid_t pid() const { return child_.pid(); }
    int wait() { return child_.wait(); }

    const Pipe go, ready;

  private:
    int live(const Body& body) const;
    Child child_;
};

struct OneGroupOptions : transport::UdpMulticastOptions {
    transport::SocketAddress group;
    bool loop = true;
};

// Returns options with a random multicast group on this interface.
OneGroupOptions multicast_options(const std::string& interface, int family);

// A hub (the sockets for many groups) that has joined one group, and sends to it.
struct OneGroup {
    static Result<std::unique_ptr<OneGroup>> open(const OneGroupOptions& options);

    transport::Sent send(std::span<const transport::Datagram> datagrams) { return hub->send(datagrams, to); }
    // The source address of the packets sent here.
    transport::SocketAddress local_address() const {
        return transport::SocketAddress::of_socket(sender->descriptor()).value();
    }

    std::unique_ptr<transport::MulticastHub> hub;
    transport::Membership membership;
    transport::Outlet to;
    transport::UdpSender* sender = nullptr;
};

}  // namespace mcastcoll::test
