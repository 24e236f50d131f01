#include "transport/multicast_paths.h"

#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>

#include "base/system.h"

namespace mcastcoll {

Result<std::unique_ptr<MulticastPaths>> MulticastPaths::open(std::unique_ptr<JoinableTransport> udp,
                                                             std::unique_ptr<JoinableTransport> verbs) {
    std::unique_ptr<MulticastPaths> paths(new MulticastPaths(std::move(udp), std::move(verbs)));
    paths->both_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    if (!paths->both_.valid()) return system_error(errno, "cannot watch multicasts");
    for (const JoinableTransport* one : {paths->udp_.get(), paths->verbs_.get()})
        if (::epoll_ctl(paths->both_.get(), EPOLL_CTL_ADD, one->descriptor(), &event) != 0)
            return system_error(errno, "cannot watch multicasts");
    return paths;
}

std::size_t MulticastPaths::receive(Nanoseconds now, DeliverDatagram deliver) {
    const std::size_t taken = verbs_->receive(now, deliver);
    return std::max(taken, udp_->receive(now, deliver));
}

bool MulticastPaths::prepare_wait() {
    const bool verbs = verbs_->prepare_wait();
    return udp_->prepare_wait() && verbs;
}

std::size_t MulticastPaths::max_payload() const {
    return std::max(verbs_->max_payload(), udp_->max_payload());
}

MulticastCounters MulticastPaths::counters() const {
    MulticastCounters sum = udp_->counters();
    const MulticastCounters more = verbs_->counters();
    using Counters = MulticastCounters;
    for (const auto counter :
         {&Counters::datagrams_sent, &Counters::bytes_sent, &Counters::datagrams_received,
          &Counters::bytes_received, &Counters::truncated, &Counters::send_would_block,
          &Counters::send_errors, &Counters::receive_errors, &Counters::own_copies, &Counters::revivals})
        sum.*counter += more.*counter;
    return sum;
}

}  // namespace mcastcoll
