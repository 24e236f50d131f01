// PeerWatch: sees a peer process die without its help. A peer that computes for minutes, or is stopped, is
// alive: only the kernels are asked, never the peer.
//
// Neighbours (same boot, pid and network namespace) are watched through a pidfd, which reads when the process
// ends; the start time guards against a reused number. Others through a TCP connection to a listening socket
// that the peer's kernel serves by itself: the end of the process resets or ends the connection, and
// keepalive with a user timeout finds a dead host. Keepalive counts whole seconds, so that a host's death
// takes the timeout rounded up, two seconds at the least.
//
// Our own listener never needs to accept: connections wait in its backlog, deep enough for any group. They
// are only taken out when the backlog gets half full, to throw away those whose watchers are gone, because a
// full one would make us look dead.
//
// A child of fork() that does not exec keeps its parent's sockets and so makes a dead parent look alive to
// remote watchers.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/types.h"
#include "transport/watch_point.h"

namespace mcastcoll {

struct PeerWatchOptions {
    // Our own address (the inner endpoint's; its port is not used), or none when the inner provider has no
    // IP.
    SocketAddress local;
    // A peer that cannot be reached for so long is dead. One that cannot even be asked, for want of
    // descriptors or memory here, counts as lost.
    std::int64_t peer_timeout_ms = 10000;
};

class PeerWatch {
  public:
    using Id = std::uint64_t;
    static constexpr std::size_t kMaxWatches = 1024;

    static Result<std::unique_ptr<PeerWatch>> open(const PeerWatchOptions& options);

    // What peers need to watch us.
    const WatchPoint& local_point() const { return local_point_; }

    // Begins to watch. Failing means that the peer cannot be watched, not that it is dead; a dead one is told
    // by poll(). EEXIST: the id is taken. ENOSPC: kMaxWatches are watched. EOPNOTSUPP: neither a listener nor
    // a neighbour.
    Result<void> watch(Id id, const WatchPoint& point, Nanoseconds now);
    // Something says that a watched peer is gone: its kernel is asked now instead of when it would be its
    // turn. What comes of it is told by poll(). A process that has ended tells so itself; unknown ids are
    // ignored.
    void look(Id id, Nanoseconds now);
    // Ends a watch; unknown ids are ignored.
    void unwatch(Id id);

    struct Death {
        Id id = 0;
        int error = 0;       // ECONNRESET, or what this process was short of for the whole timeout
        std::string reason;  // for people: what told, and of whom
    };
    // Fills `dead` with the peers found dead, each told once and unwatched by that; returns how many. When it
    // is filled up there may be more for the next call.
    std::size_t poll(Nanoseconds now, std::span<Death> dead);
    // When poll() is due although descriptor() is silent.
    Nanoseconds next_deadline() const { return due_; }
    // An epoll descriptor that polls readable when poll() may have news.
    int descriptor() const { return epoll_.get(); }
    std::size_t watched() const { return watches_.size(); }

  private:
    enum class State { kConnecting, kConnected, kProcess, kDead };
    struct Watch {
        Id id = 0;
        WatchPoint point;
        bool neighbour = false, reachable = false;  // the ways to watch it
        State state = State::kConnecting;
        FileDescriptor descriptor;
        Nanoseconds give_up;    // connecting: dead by then
        Nanoseconds try_again;  // connecting: a lost request is sent afresh
        int unanswered = 0;     // connecting: what the last attempt met, an errno
        // Of its death.
        int error = ECONNRESET;
        std::string reason;
    };

    PeerWatch() = default;
    Result<void> open_listener(const SocketAddress& local);
    int watch_process(Watch& watch);
    int connect_to(Watch& watch);
    int restart(Watch& watch, Nanoseconds now);
    void note_unanswered(Watch& watch, int code);
    void give_up(Watch& watch);
    int subscribe(const Watch& watch, std::uint32_t events);
    void drop(Watch& watch);
    void mark_dead(Watch& watch, std::string reason);
    void mark_process_dead(Watch& watch);
    void on_event(Watch& watch);
    void on_connecting(Watch& watch);
    void on_connected(Watch& watch);
    std::size_t look_after(Nanoseconds now, std::span<Death> dead);
    void thin_backlog();

    std::int64_t timeout_ms_ = 0;
    WatchPoint local_point_;
    const pid_t opener_ = ::getpid();
    FileDescriptor epoll_;
    FileDescriptor listener_;
    Nanoseconds backlog_check_{0};
    std::vector<FileDescriptor> accepted_;
    std::unordered_map<Id, Watch> watches_;
    // When a watch has something to do or to tell that no event announces; never too late.
    Nanoseconds due_ = kNever;
};

}  // namespace mcastcoll
