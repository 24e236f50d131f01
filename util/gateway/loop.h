// The gateway's one thread waits here for all of its sockets.  Events are edge-triggered: whoever gets one
// remembers it until the kernel has said that there is no more.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::gateway {

// So many reads in a row, then it is others' turn.
inline constexpr unsigned kReadsInARow = 4;

class Watched {
  public:
    virtual ~Watched() = default;
    virtual void on_events(std::uint32_t events) = 0;
};

class Loop {
  public:
    Result<void> open();
    Result<void> add(int descriptor, Watched& watched,
                     std::uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    // A descriptor that lives on; one that is closed needs none of this.
    void remove(int descriptor);
    // Waits until something happens or the time comes, and hands out what there is.  spin: looks again and
    // again for so long, with others' turns between, before it sleeps.
    void run_once(Nanoseconds until, Nanoseconds spin);
    // Events for it may still be at hand: it goes when they are handed out.
    void bury(std::unique_ptr<Watched> watched) { graveyard_.push_back(std::move(watched)); }

    // As of the last return of the kernel.
    Nanoseconds now() const { return now_; }
    // How much longer than asked for the last wait and what came before took: this process did not run.
    Nanoseconds overslept() const { return overslept_; }

  private:
    int sleep(std::span<epoll_event> events, std::int64_t longest_ns);

    FileDescriptor epoll_;
    bool fine_ = true;  // the kernel sleeps to the nanosecond
    Nanoseconds now_{0}, overslept_{0};
    std::vector<std::unique_ptr<Watched>> graveyard_;
};

}  // namespace mcastcoll::gateway
