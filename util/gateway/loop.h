// The gateway's single thread waits here for every socket. Events are edge-triggered: the receiver of an
// event must remember the event until a system call on the socket returns EAGAIN.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/types.h"
#include "gateway/watched.h"

namespace mcastcoll::gateway {

// The number of reads from one socket before other sockets get their turn.
inline constexpr unsigned kReadsInARow = 4;

class Loop {
  public:
    Result<void> open();
    Result<void> add(int descriptor, Watched& watched,
                     std::uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    // Removes a descriptor that stays open; close() removes a descriptor by itself.
    void remove(int descriptor);
    // Waits until an event arrives or the time `until` comes, and dispatches events. Before it sleeps, it
    // polls for the time `spin`, and yields the core between polls.
    void run_once(Nanoseconds until, Nanoseconds spin);
    // Destroys `watched` after the pending events have been dispatched, since some of them may refer to it.
    void delete_later(std::unique_ptr<Watched> watched) { deferred_.push_back(std::move(watched)); }

    // Time of the last return from the kernel.
    Nanoseconds now() const { return now_; }
    // How late the last wait ended, after the requested time or the previous wait: if long, this process was
    // suspended.
    Nanoseconds overslept() const { return overslept_; }

  private:
    int sleep(std::span<epoll_event> events, std::int64_t longest_ns);

    FileDescriptor epoll_;
    bool fine_ = true;  // the kernel supports waits in nanoseconds
    Nanoseconds now_{0}, overslept_{0};
    std::vector<std::unique_ptr<Watched>> deferred_;
};

}  // namespace mcastcoll::gateway
