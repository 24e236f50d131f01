// WatchListener: the listening TCP socket through which other hosts watch this process for its death
// (peer_watch.h).
//
// Watchers connect, send the token of this process's watch point, and wait for the end of the connection. The
// kernel serves watchers without this process's help: connections wait in the backlog. When the backlog is a
// quarter full, connections with the token are accepted and held, up to kMaxHeld, and all others are closed
// at once, so that foreign connections cannot keep watchers out. A watcher whose connection is closed before
// it could send the token connects again.
//
// A child of fork() without exec would keep the connections open after the death of this process and so hide
// the death. In every child the sockets are therefore replaced by other descriptors with the same numbers,
// because the child may later close these numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/file_descriptor.h"
#include "transport/socket_address.h"

namespace mcastcoll::transport {

class WatchListener {
  public:
    static constexpr std::size_t kMaxHeld = 1024;

    WatchListener() = default;
    WatchListener(const WatchListener&) = delete;
    WatchListener& operator=(const WatchListener&) = delete;
    ~WatchListener();

    // Returns the listening address: `local` with a port that the kernel chooses.
    Result<SocketAddress> open(const SocketAddress& local, std::uint32_t token);
    // Makes room in the backlog; does so at most once a second.
    void look_after(Nanoseconds now);

  private:
    void make_room(std::uint32_t waiting);
    bool is_watcher(const FileDescriptor& connection) const;
    // Called in a child of fork().
    void let_go() const;
    friend struct ForkedListeners;

    std::uint32_t token_ = 0;
    FileDescriptor listener_;
    std::vector<FileDescriptor> held_;
    Nanoseconds look_at_{};
};

// Sends the token to a listener; returns 0 or an errno value.
int send_watch_token(int connection, std::uint32_t token);
// False once the other side has closed the connection. Discards received data.
bool is_connection_open(int descriptor);

}  // namespace mcastcoll::transport
