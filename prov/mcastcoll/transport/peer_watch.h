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
    // For tests: watch neighbours over TCP as well.
    bool tcp_only = false;
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
    Nanoseconds next_deadline() const;
    // An epoll descriptor that polls readable when poll() may have news.
    int descriptor() const { return epoll_.get(); }
    std::size_t watched() const { return slot_of_.size(); }
    std::size_t neighbours() const { return neighbours_; }

  private:
    enum class State { kFree, kConnecting, kConnected, kProcess };
    struct Ways {
        bool neighbour = false, reachable = false;
    };
    struct Slot {
        State state = State::kFree;
        Ways ways;
        std::uint32_t generation = 0;  // of the slot: an event of an earlier watch is not this one's
        Id id = 0;
        WatchPoint point;
        FileDescriptor descriptor;
        Nanoseconds give_up;    // connecting: dead by then
        Nanoseconds try_again;  // connecting: a lost request is sent afresh
        int unanswered = 0;     // connecting: what the last attempt met, an errno
        bool dead = false;
        int error = ECONNRESET;
        std::string reason;
    };

    PeerWatch() = default;
    Result<void> open_listener(const SocketAddress& local);
    Result<void> begin(Slot& slot, const WatchPoint& point, Ways ways, Nanoseconds now);
    int watch_process(Slot& slot);
    void enter(Slot& slot, State state);
    int connect_to(Slot& slot);
    int restart(Slot& slot, Nanoseconds now);
    void note_unanswered(Slot& slot, int code);
    void give_up(Slot& slot);
    int subscribe(const Slot& slot, std::uint32_t events);
    void mark_dead(Slot& slot, std::string reason);
    void mark_process_dead(Slot& slot);
    void release(Slot& slot);
    void on_event(Slot& slot, std::uint32_t events);
    void on_connecting(Slot& slot);
    void on_connected(Slot& slot);
    void check_deadlines(Nanoseconds now);
    void thin_backlog();

    PeerWatchOptions options_;
    WatchPoint local_point_;
    FileDescriptor epoll_;
    FileDescriptor listener_;
    Nanoseconds backlog_check_{0};
    std::vector<FileDescriptor> accepted_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::unordered_map<Id, std::uint32_t> slot_of_;
    std::size_t connecting_ = 0;
    std::size_t neighbours_ = 0;
    std::size_t dead_ = 0;
};

}  // namespace mcastcoll
