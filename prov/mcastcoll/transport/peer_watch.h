// PeerWatch: detects the death of a peer process without the peer's help. A peer that computes for minutes,
// or is stopped, counts as alive: only kernels answer, never the peer itself.
//
// Neighbours (same boot, pid namespace and network namespace) are watched through a pidfd, which polls
// readable when the process ends; the start time guards against a reused pid. Other peers are watched through
// a TCP connection to a listening socket served by the peer's kernel alone (watch_listener.h). A peer is dead
// if
//
//     its process has ended    its kernel has closed or reset the connection, and refuses another connection
//                              because no socket listens any more; or, if gateways accept connections for
//                              other hosts, the next connections are closed as well
//     its host is gone         neither this port nor another port of the host has answered for the host
//                              timeout, which is minutes
//
// Silence of the network or the host thus ends no watch before the host timeout. A listener that accepts no
// connection while its host is alive ends no watch at all. Keepalive counts whole seconds and probes at
// intervals of up to ten seconds, so the death of a host may be detected that much later.
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
#include "transport/watch_listener.h"
#include "transport/watch_point.h"

namespace mcastcoll::transport {

struct PeerWatchOptions {
    // This process's address (the inner endpoint's; the port is ignored). Empty if the inner provider does
    // not use IP.
    SocketAddress local;
    // A peer whose host answers nothing for this time is dead. A peer also counts as lost if descriptors or
    // memory for checking were lacking in this process for this time.
    std::int64_t host_timeout_ms = 120'000;
    // A gateway may accept a connection to a process that has ended, and then close the connection.
    bool has_gateways = false;
};

class PeerWatch {
  public:
    using Id = std::uint64_t;
    static constexpr std::size_t kMaxWatches = 1024;

    static Result<std::unique_ptr<PeerWatch>> open(const PeerWatchOptions& options);

    // The watch point for watching this process.
    const WatchPoint& local_point() const { return local_point_; }

    // Starts a watch. An error means that the peer cannot be watched, not that it is dead; poll() reports
    // dead peers. EEXIST: the id is in use. ENOSPC: there are kMaxWatches watches. EOPNOTSUPP: the peer has
    // no listener and is not a neighbour.
    Result<void> watch(Id id, const WatchPoint& point, Nanoseconds now);
    // Checks a watched peer's kernel at once, because the caller suspects the peer's death. poll() reports
    // the peer if it is dead. Has no effect on a process of this host, whose end is reported in any case, or
    // on unknown ids.
    void look(Id id, Nanoseconds now);
    // Whether the kernel of a watched peer has left a request unanswered. For a quick answer, look_at_all()
    // must be called one or two seconds before.
    bool any_silent(Nanoseconds now) const;
    void look_at_all(Nanoseconds now);
    // Ends a watch; unknown ids are ignored.
    void unwatch(Id id);

    struct Death {
        Id id = 0;
        // ECONNRESET: the peer's process has ended. EHOSTDOWN: the peer's host was silent for the host
        // timeout. Any other errno: the shortage (descriptors, memory) that prevented checks in this process
        // during the whole timeout.
        int error = 0;
        std::string reason;  // text for the user: the evidence, and the peer
    };
    // Fills `dead` with peers found dead and returns their number. Each dead peer is reported once, and its
    // watch ends. If `dead` is full, call poll() again.
    std::size_t poll(Nanoseconds now, std::span<Death> dead);
    // The time when poll() is due although descriptor() does not poll readable.
    Nanoseconds next_deadline() const { return due_; }
    // An epoll descriptor, readable when poll() may have results.
    int descriptor() const { return epoll_.get(); }
    std::size_t watched() const { return watches_.size(); }

  private:
    enum class State { kConnecting, kConnected, kProcess, kDead };
    struct Watch {
        Id id = 0;
        WatchPoint point;
        bool neighbour = false, reachable = false;  // can be watched through a pidfd, through TCP
        State state = State::kConnecting;
        FileDescriptor descriptor;
        // While connecting:
        FileDescriptor other_port;  // tests whether the host is alive
        Nanoseconds since;          // no answer since then
        Nanoseconds give_up;        // counts as dead at this time
        Nanoseconds try_again;      // repeats a lost request
        bool checks_host = false;   // an earlier request was not answered
        int unanswered = 0;         // errno of the last attempt
        unsigned closings = 0;      // number of consecutive connections that ended
        // After the peer's death:
        int error = ECONNRESET;
        std::string reason;
    };

    PeerWatch() = default;
    int watch_process(Watch& watch);
    int request(const SocketAddress& to, FileDescriptor& connection, Id id);
    int restart(Watch& watch, Nanoseconds now);
    void reconnect(Watch& watch, Nanoseconds silent_since, Nanoseconds limit, Nanoseconds pause,
                   Nanoseconds now);
    void check_host(Watch& watch);
    void note_unanswered(Watch& watch, int code);
    void give_up(Watch& watch, Nanoseconds now);
    int subscribe(const FileDescriptor& descriptor, Id id, std::uint32_t events);
    void drop(FileDescriptor& descriptor);
    void drop(Watch& watch);
    void mark_dead(Watch& watch, int error, std::string reason);
    void on_event(Watch& watch, Nanoseconds now);
    void on_connecting(Watch& watch, Nanoseconds now);
    void on_host_answer(Watch& watch, Nanoseconds now);
    void on_connected(Watch& watch, Nanoseconds now);
    void on_closed(Watch& watch, Nanoseconds now);
    std::size_t look_after(Nanoseconds now, std::span<Death> dead);

    Nanoseconds timeout_;
    bool has_gateways_ = false;
    WatchPoint local_point_;
    const pid_t opener_ = ::getpid();
    FileDescriptor epoll_;
    WatchListener listener_;
    std::unordered_map<Id, Watch> watches_;
    // Time of the next action or report without an event; never too late.
    Nanoseconds due_ = kNever;
};

}  // namespace mcastcoll::transport
