#include "transport_fixture.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system.h"
#include "transport/socket_address.h"

namespace mcastcoll::test {

void shell(const std::string& command) {
    cr_assert_eq(::system(command.c_str()), 0, "failed: %s", command.c_str());
}

void enter_network_namespace() {
    if (::geteuid() != 0 || ::unshare(CLONE_NEWNET) != 0)
        cr_skip_test("a network namespace of our own takes root");
    shell(
        "ip link set lo up && ip link add mc0 mtu 1500 type veth peer name mc1 mtu 1500 &&"
        " ip addr add 10.77.0.1/24 dev mc0 && ip -6 addr add fd77::1/64 dev mc0 nodad &&"
        " ip link set mc0 up && ip link set mc1 up");
    // The kernel adds the multicast route when it has detected the carrier, a moment after the commands.
    shell(
        "for i in $(seq 200); do ip -6 route show table all dev mc0 | grep -q 'multicast ff00::/8' && exit 0;"
        " sleep 0.02; done; exit 1");
}

Nanoseconds now() {
    timespec time;
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return {std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec};
}

bool eventually(int milliseconds, const std::function<bool()>& ready) {
    const Nanoseconds end = now() + Nanoseconds::from_ms(milliseconds);
    for (;;) {
        if (ready()) return true;
        if (now() >= end) return false;
        ::usleep(1000);
    }
}

Child::Child(const std::function<int()>& body) : pid_(::fork()) {
    cr_assert_geq(pid_, 0, "cannot fork");
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::_exit(body());
    }
}

Child::~Child() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        wait();
    }
}

void Child::signal(int number) const {
    ::kill(pid_, number);
}

int Child::wait() {
    int status = 0;
    const pid_t waited = ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return waited > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Pipe::Pipe() {
    cr_assert_eq(::pipe(ends_), 0);
}

Pipe::~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
}

void Pipe::put(char word) const {
    put_all(&word, 1);
}

int Pipe::get(int milliseconds) const {
    char word = 0;
    return get_all(&word, 1, milliseconds) ? word : -1;
}

int Pipe::put_all(const void* data, std::size_t size) const {
    return ::write(ends_[1], data, size) == static_cast<ssize_t>(size) ? 0 : -1;
}

bool Pipe::get_all(void* data, std::size_t size, int milliseconds) const {
    pollfd entry{ends_[0], POLLIN, 0};
    return ::poll(&entry, 1, milliseconds) == 1 && ::read(ends_[0], data, size) == static_cast<ssize_t>(size);
}

FarHost::FarHost(const Body& body) : child_([&] { return live(body); }) {
    cr_assert_eq(ready.get(kEventTimeoutMs), 'n');
    shell("ip link set mc1 netns " + std::to_string(pid()));
    go.put('g');
    cr_assert_eq(ready.get(kEventTimeoutMs), 'u');
    // The kernel forwards no packet before both ends of the cable are detected as up.
    shell(
        "for i in $(seq 500); do ip link show mc0 | grep -q 'state UP' && exec sleep 0.1; sleep 0.02; "
        "done; exit 1");
}

int FarHost::live(const Body& body) const {
    if (::unshare(CLONE_NEWNET) != 0) return 3;
    ready.put('n');
    if (go.get(kEventTimeoutMs) != 'g') return 4;
    if (::system("ip addr add 10.77.0.2/24 dev mc1 && ip link set mc1 up") != 0) return 5;
    ready.put('u');
    return body(*this);
}

Result<std::unique_ptr<OneGroup>> OneGroup::open(const OneGroupOptions& options) {
    auto one = std::make_unique<OneGroup>();
    auto hub = transport::MulticastHub::open(options);
    if (!hub) return hub.error();
    one->hub = std::move(hub).value();
    auto membership = one->hub->join(options.group);
    if (!membership) return membership.error();
    one->membership = std::move(membership).value();
    one->to = {options.group, options.loop};
    auto sender = one->hub->sender(options.loop);
    if (!sender) return sender.error();
    one->sender = sender.value();
    return one;
}

OneGroupOptions multicast_options(const std::string& interface, int family) {
    OneGroupOptions options;
    options.interface = must(transport::find_interface(interface));
    options.family = family;
    std::array<std::byte, transport::kGroupRandomBytes> random;
    cr_assert(kernel_random(random).ok());
    options.group = transport::random_group_address(family, random);
    options.receive_buffer_bytes = 1 << 20;
    return options;
}

}  // namespace mcastcoll::test
