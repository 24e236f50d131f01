// One collective group of an endpoint, behind the fid_mc that fi_join_collective hands out.
//
// Before the welcome it only greets its leader (rank 0), or, as the leader, counts greetings. From the
// welcome on it owns the group's engine and multicast socket, feeds the one from the other, and carries the
// engine's effects out. When the application closes it, it stays with the station until every member has
// closed too: somebody may still need a repair.
#pragma once

#include <rdma/fi_collective.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "transport/multicast_transport.h"
#include "wire/join.h"

namespace mcastcoll::ofi {

class LiveStation;

struct JoinPlan {
    wire::JoinId id;
    Rank self{};
    std::vector<wire::ByteString> members;  // inner addresses in rank order, normalised
    fi_addr_t token = 0;                    // what fi_mc_addr() shall say
    void* context = nullptr;
    Nanoseconds deadline = kNever;  // of the join
};

class Group {
  public:
    Group(LiveStation& station, JoinPlan plan);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    fid_mc* mc() { return &mc_.fid; }
    fi_addr_t token() const { return plan_.token; }
    const wire::JoinId& id() const { return plan_.id; }
    bool greeting() const { return !engine_ && !ended_; }
    bool leads() const { return plan_.self == rank_of(0); }
    std::size_t size() const { return plan_.members.size(); }
    std::optional<GroupKey> key() const;

    // Begins to greet; a group of one is complete at once.
    void start(Nanoseconds now);
    void on_hello(const wire::Hello& hello, Nanoseconds now);
    void on_ack() { acknowledged_ = true; }
    void on_welcome(const wire::Welcome& welcome, Nanoseconds now);
    void on_abort(int error, Nanoseconds now);
    void on_message(Bytes message, Nanoseconds now) {
        touched_ = true;
        if (engine_) engine_->on_message(message, now);
    }
    // The process behind this private address is gone, or cannot be reached any more. Acted upon by the next
    // pump().
    void on_peer_lost(fi_addr_t messenger_peer, int error);

    // 0 or -FI_E*.
    ssize_t submit(engine::OperationKind kind, Rank root, void* buffer, std::size_t bytes,
                   std::uint64_t flags, void* context, Nanoseconds now);
    // fi_close() by the application: -FI_EBUSY while operations are open. The group lingers until done().
    int close(Nanoseconds now);
    bool closed() const { return closed_; }
    bool done() const;

    // Receives, runs timers, carries out effects.
    void pump(Nanoseconds now);
    bool busy() const;
    // Something came for this group since the last pump().
    bool touched() const { return touched_; }
    Nanoseconds next_deadline() const;
    // The multicast socket, or -1.
    int descriptor() const { return transport_ ? transport_->descriptor() : -1; }
    // Adds this group's counters to the sums.
    void add_counters(engine::Counters& sum, MulticastCounters& wire_sum) const;

  private:
    struct McFid {
        fid_mc fid{};
        Group* group = nullptr;
    };
    struct Member {
        fi_addr_t messenger_peer = FI_ADDR_UNSPEC;
        wire::ByteString watch_point;
        SocketAddress source;  // of its multicasts; port 0 until a probe told it
    };
    struct Pending {
        void* context = nullptr;
        std::uint64_t flags = 0;
    };

    static int close_mc(fid* fid);
    void greet(Nanoseconds now);
    void send_welcome(Nanoseconds now);
    void begin(const wire::Welcome& welcome, Nanoseconds now);
    void open_transport(const wire::Welcome& welcome);
    void receive(Nanoseconds now);
    void on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds now);
    void carry_out(Nanoseconds now);
    void carry_out(const engine::Effect& effect, Nanoseconds now);
    void flush_multicasts();
    void explain_join();
    void end_join(int error);
    std::string name() const;

    LiveStation& station_;
    McFid mc_;
    JoinPlan plan_;

    // Greeting.
    Nanoseconds greet_at_{};
    std::uint32_t attempt_ = 0;
    bool touched_ = false;
    bool acknowledged_ = false, joined_ = false, ended_ = false;
    std::vector<std::optional<wire::Hello>> hellos_;  // leader
    std::size_t hello_count_ = 0;

    // Running.
    std::unique_ptr<engine::Engine> engine_;
    std::unique_ptr<MulticastTransport> transport_;
    std::string no_multicast_;  // why this member has no socket
    std::vector<Member> members_;
    std::vector<Pending> pending_;
    std::vector<std::uint32_t> free_pending_;
    std::uint64_t outstanding_ = 0;
    bool closed_ = false;
    std::uint64_t wrong_source_ = 0;
    std::vector<std::pair<Rank, int>> lost_;  // to be told to the engine

    // Multicasts that are on their way to the kernel, in order; payloads are copied when it cannot take them
    // at once.
    struct Outgoing {
        wire::HeaderBytes header{};
        Bytes payload;
    };
    std::array<Outgoing, MulticastTransport::kBatch> outgoing_{};
    std::array<Datagram, MulticastTransport::kBatch> batch_{};
    std::size_t outgoing_count_ = 0, outgoing_sent_ = 0;
    std::unique_ptr<std::byte[]> backlog_;
    bool backlog_in_use_ = false, send_error_told_ = false;
};

}  // namespace mcastcoll::ofi
