// PeerWatch: notices the death of a peer process without its help. A peer that computes for minutes, or is
// stopped, is alive: only kernels are asked, never the peer.
//
// Neighbours (same boot, pid and network namespace) are watched through a pidfd, which reads when the process
// ends; the start time guards against a reused number. Other peers are watched through a TCP connection to a
// listening socket that the peer's kernel serves by itself (watch_listener.h). What says that a peer is dead:
//
//     its process has ended    the connection was closed or reset, as its kernel does at once, and another
//                              request to connect is refused: nobody listens there any more. Or, where
//                              gateways accept for others, the next connections are closed, too
//     its host is gone         for the host timeout, minutes, neither that port nor another port of the
//                              host has answered anything
//
// So silence alone, be it of the network or of the host, ends nothing before the host timeout, and neither
// does a listener that takes no connection while its host lives. Keepalive counts whole seconds and asks
// every ten seconds at most, so a host's death may take so much longer.
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

namespace mcastcoll {

struct PeerWatchOptions {
    // Our own address (the inner endpoint's; its port is not used), or none when the inner provider has no
    // IP.
    SocketAddress local;
    // A peer whose host answers nothing for so long is dead. A peer that cannot even be asked, for want of
    // descriptors or memory here, counts as lost.
    std::int64_t host_timeout_ms = 120'000;
    // A gateway may accept a connection to a process that has ended, and close the connection again.
    bool has_gateways = false;
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
    // Whether the kernel of a watched peer leaves a question unanswered. A caller that needs the answer soon
    // calls look_at_all() a second or two before.
    bool any_silent(Nanoseconds now) const;
    void look_at_all(Nanoseconds now);
    // Ends a watch; unknown ids are ignored.
    void unwatch(Id id);

    struct Death {
        Id id = 0;
        // ECONNRESET: its process has ended. EHOSTDOWN: its host was silent for the host timeout. Else what
        // this process was short of for the whole timeout.
        int error = 0;
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
        // While it is connecting.
        FileDescriptor other_port;  // asks whether the host lives
        Nanoseconds since;          // nothing has answered since then
        Nanoseconds give_up;        // dead by then
        Nanoseconds try_again;      // a lost request is sent afresh
        bool asks_host = false;     // an earlier request was not answered
        int unanswered = 0;         // what the last attempt met, an errno
        unsigned closings = 0;      // connections that have ended one after the other
        // Of its death.
        int error = ECONNRESET;
        std::string reason;
    };

    PeerWatch() = default;
    int watch_process(Watch& watch);
    int request(const SocketAddress& to, FileDescriptor& connection, Id id);
    int restart(Watch& watch, Nanoseconds now);
    void reconnect(Watch& watch, Nanoseconds silent_since, Nanoseconds limit, Nanoseconds pause,
                   Nanoseconds now);
    void ask_host(Watch& watch);
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
    // When a watch has something to do or to tell that no event announces; never too late.
    Nanoseconds due_ = kNever;
};

}  // namespace mcastcoll
