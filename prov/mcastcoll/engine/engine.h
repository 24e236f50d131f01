// The protocol of one group, for one member. Pure: it is given packets, messages, times and a peer's death,
// and returns effects. It never looks at a clock, a socket or the environment, and allocates only when it is
// made.
//
// One file per idea:
//   engine.cc     operations: submit, begin, finish, the slots and the pending queue, timers
//   admission.cc  the join's probe and vote
//   broadcast.cc  multicasting fragments, taking them in, progress reports
//   repair.cc     asks, remembered questions, data, pushes
//   barrier.cc    gather; the release is a broadcast of no bytes from rank 0
//   checkpoint.cc what everybody has finished, and leaving
//   failure.cc    watching those we wait for, ending everything when one is lost
//   effects.cc    what goes out, in which order
#pragma once

#include <cstdint>
#include <vector>

#include "engine/config.h"
#include "engine/effects.h"
#include "engine/slot.h"
#include "engine/supply_graph.h"
#include "engine/timing.h"
#include "wire/result.h"

namespace mcastcoll::engine {

enum class Phase : std::uint8_t {
    forming,  // waiting until every member listens
    probing,  // multicasting probes and listening to the others'
    voting,   // the vote is sent, the verdict is not in
    active,
    failed,
    left,
};

// A queue of fixed capacity.
template <typename T>
class Ring {
  public:
    explicit Ring(std::size_t capacity) : items_(capacity) {}
    bool empty() const { return count_ == 0; }
    bool full() const { return count_ == items_.size(); }
    std::size_t size() const { return count_; }
    T& front() { return items_[head_]; }
    const T& front() const { return items_[head_]; }
    bool push(T item) {
        if (full()) return false;
        items_[(head_ + count_++) % items_.size()] = std::move(item);
        return true;
    }
    void pop() {
        head_ = (head_ + 1) % items_.size();
        --count_;
    }

  private:
    std::vector<T> items_;
    std::size_t head_ = 0, count_ = 0;
};

// A group whose member has seen this many broadcasts in a row without hearing one asks its supplier at once.
inline constexpr std::uint32_t kSilentEnough = 8;
// Why a group fails for the others when a member closes it before the join is over: ECANCELED.
inline constexpr int kClosedEarly = 125;

class Engine {
  public:
    explicit Engine(const GroupConfig& config);

    // Begins the join. Every member calls it once; Effect::joined follows.
    void start(Nanoseconds now);
    // Appends an operation. Errors: EAGAIN when pending_operations are queued, ESHUTDOWN after close(), the
    // group's own error once it has failed. An accepted operation ends with exactly one Effect::complete.
    Result<void> submit(const Operation& operation, Nanoseconds now);
    // No more operations will come. Effect::left follows when every member has closed and nobody needs this
    // one.
    void close(Nanoseconds now);

    void on_packet(Bytes datagram, Nanoseconds now);
    void on_message(Bytes message, Nanoseconds now);
    // The process of this rank is gone, or was asked to be ignored; error is a positive FI_E* code.
    void on_peer_lost(Rank rank, int error, Nanoseconds now);
    // Ends the group for everybody, as if this member were lost.
    void abort(int error, Nanoseconds now) { fail(config_.self, error, true, now); }

    // Writes the next effect and returns true, or returns false when there is none that is allowed.
    bool poll_effects(Allowed allowed, Effect& effect);

    // When on_timeout() wants to be called; kNever when nothing waits.
    Nanoseconds next_deadline() const;
    void on_timeout(Nanoseconds now);

    Phase phase() const { return phase_; }
    // After a failure: everybody who is to know has been sent word.
    bool failure_told() const { return !fail_tell_ || fail_next_ >= config_.members; }
    bool idle() const { return first_open_ == next_id_ && pending_.empty(); }
    // Operations posted and not completed.
    std::uint64_t outstanding() const {
        return counters_.operations_submitted - counters_.operations_completed - counters_.operations_failed;
    }
    const Counters& counters() const { return counters_; }
    const SupplyGraph& graph() const { return graph_; }
    const GroupConfig& config() const { return config_; }
    Nanoseconds round_trip() const { return round_trip_.mean(); }
    // Throws nothing; aborts by assert when an invariant is broken. For tests and debug builds.
    void check_invariants() const;

  private:
    // engine.cc
    Slot& slot_at(std::uint64_t id) { return slots_[id % slots_.size()]; }
    const Slot& slot_at(std::uint64_t id) const { return slots_[id % slots_.size()]; }
    Slot* claim(OperationId id);
    void begin_pending(Nanoseconds now);
    void begin(const Operation& operation, Nanoseconds now);
    void begin_receiving(Slot& slot, Nanoseconds now);
    void finish(Slot& slot, int status);
    void complete(std::uint64_t cookie, int status);
    void mark_ready(const Slot& slot) {
        ready_.set(static_cast<std::uint32_t>(number_of(slot.id) % slots_.size()));
    }
    bool is_large(const Slot& slot) const { return config_.large(slot.bytes); }
    std::uint32_t arity(const Slot& slot) const {
        return is_large(slot) ? config_.large_tree_arity : config_.tree_arity;
    }

    // admission.cc
    void on_ready(const wire::Header& header, Nanoseconds now);
    void begin_probing(Nanoseconds now);
    void on_probe(Rank sender, Nanoseconds now);
    void on_vote(const wire::Header& header, Bytes payload, Nanoseconds now);
    void on_verdict(Bytes payload, Nanoseconds now);
    void decide(Nanoseconds now);
    void vote_when_all_heard(Nanoseconds now);
    void cast_vote(Nanoseconds now);
    bool next_admission_message(Effect& effect);

    // broadcast.cc
    void on_fragment(const wire::Header& header, Bytes payload, Nanoseconds now);
    void note_multicast(Slot& slot, std::uint32_t fragment, Nanoseconds now);
    void reveal_earlier(Rank sender, std::uint64_t before, Nanoseconds now);
    bool learn_length(Slot& slot, const wire::Header& header);
    void adopt_early(Slot& slot, bool keep);
    std::byte* data_of(const Slot& slot) const;
    bool store(Slot& slot, std::uint32_t fragment, Bytes payload);
    void after_store(Slot& slot, Nanoseconds now);
    void on_all_here(Slot& slot, Nanoseconds now);
    void check_large_finished(Slot& slot);
    std::uint32_t multicast_limit(const Slot& slot) const;
    bool next_fragment(Slot& slot, Effect& effect);
    void on_report(const wire::Header& header, Nanoseconds now);
    void update_report(Slot& slot);
    Bytes fragment_bytes(const Slot& slot, std::uint32_t from, std::uint32_t to) const;

    // repair.cc
    Nanoseconds gap_delay() const;
    Nanoseconds silence_delay() const;
    void request(Slot& slot, std::uint32_t to);
    void arm_gap(Slot& slot, Nanoseconds now);
    void on_ask_timer(Slot& slot, Nanoseconds now);
    void continue_chain(Slot& slot);
    void supply_all(Slot& slot, bool hearing);
    void on_ask(const wire::Header& header, Bytes payload, Nanoseconds now);
    void on_data(const wire::Header& header, Bytes payload, Nanoseconds now);
    void on_done(const wire::Header& header);
    bool next_ask(Slot& slot, Effect& effect);
    bool next_data(Slot& slot, Effect& effect);

    // barrier.cc
    void on_gather(const wire::Header& header, Nanoseconds now);
    void check_gather(Slot& slot, Nanoseconds now);

    // checkpoint.cc
    void advance_floor(std::uint64_t floor, Nanoseconds now);
    void check_floor(Nanoseconds now);
    void on_floor_up(const wire::Header& header, Nanoseconds now);
    void on_floor_down(const wire::Header& header, Nanoseconds now);
    void check_leave();
    void on_leave_up(const wire::Header& header);
    void on_leave_down(const wire::Header& header, Nanoseconds now);
    bool next_checkpoint_message(Effect& effect);

    // failure.cc
    void fail(Rank lost, int error, bool tell, Nanoseconds now);
    void on_fail(const wire::Header& header, Nanoseconds now);
    void watch(Rank rank);
    void scan_watches(Nanoseconds now);
    void watch_slot(const Slot& slot);
    bool waits_for_somebody() const;
    bool next_failure_message(Effect& effect);
    bool next_watch(Effect& effect);

    // effects.cc
    bool next_multicast(Effect& effect);
    bool next_message(Effect& effect);
    bool next_slot_message(Slot& slot, Effect& effect);
    bool next_notice(Effect& effect);
    void make_message(Effect& effect, wire::Kind kind, Rank to, OperationId operation, std::uint32_t fragment,
                      std::uint64_t total, Bytes payload);
    void make_packet(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment,
                     std::uint64_t total, Bytes payload);
    bool accept_header(const wire::Decoded& decoded);

    struct Completion {
        std::uint64_t cookie = 0;
        int status = 0;
    };

    const GroupConfig config_;
    const RankList tree_children_;  // of gathers, floors and leaving
    const Rank tree_parent_;
    SupplyGraph graph_;
    Counters counters_;
    Phase phase_ = Phase::forming;
    bool closing_ = false;
    int error_ = 0;

    // Operations [floor_, floor_ + slots) have a slot; those below first_open_ are finished here, those below
    // floor_ everywhere.
    std::vector<std::byte> stash_;
    std::vector<std::byte> early_memory_;
    std::vector<std::byte*> free_early_;
    std::vector<Slot> slots_;
    std::uint64_t floor_ = 0, first_open_ = 0, next_id_ = 0;
    Ring<Operation> pending_;
    Ring<Completion> completions_;
    WindowBitmap ready_;           // slots that may have something to send
    std::uint32_t turn_ = 0;       // the slot whose turn it is to send
    std::uint64_t in_flight_ = 0;  // multicast fragments of own large operations that are not acknowledged

    // Checkpoints: the tree children's finished counts; what was told to the parent and to the children.
    std::array<std::uint64_t, kMaxArity> child_floor_{};
    std::array<bool, kMaxArity> child_left_{};
    std::uint64_t floor_told_up_ = 0, floor_to_tell_up_ = 0, floor_to_tell_down_ = 0;
    std::uint32_t floor_down_next_ = 0;  // children of the present floor_down round already told
    bool leave_up_due_ = false, leave_up_sent_ = false, everybody_left_ = false;
    std::uint32_t leave_down_next_ = 0;

    // Admission.
    bool ready_due_ = false, vote_due_ = false, notice_joined_ = false, go_ = false, verdict_known_ = false;
    std::uint32_t ready_count_ = 0, vote_count_ = 0, probes_due_ = 0, probes_sent_ = 0;
    std::uint32_t go_next_ = 0, verdict_next_ = 0;  // leader: members already told
    std::vector<bool> is_ready_, has_voted_, heard_;
    std::vector<std::vector<bool>> votes_;  // leader: who heard whom
    std::vector<std::byte> vote_bytes_, verdict_bytes_;
    Nanoseconds probe_at_ = kNever, vote_at_ = kNever;
    bool ping_due_ = false;
    Ring<wire::Header> pongs_;

    // Timing.
    SmoothedTime round_trip_, first_arrival_, arrival_gap_;
    std::uint32_t silent_operations_ = 0;  // in a row that no multicast was heard of
    struct Push {
        OperationId operation{};
        Nanoseconds at{};
    };
    Ring<Push> pushes_;
    std::vector<std::byte> ask_bytes_;

    // Failure.
    std::vector<bool> watched_;
    Ring<Rank> watches_;
    Nanoseconds watch_at_ = kNever;
    Rank lost_ = kNoRank;
    std::uint32_t fail_next_ = 0;  // members already told
    bool fail_tell_ = false, notice_failed_ = false, notice_left_ = false, lingered_ = false;
    Nanoseconds now_{};  // of the call being served
};

}  // namespace mcastcoll::engine
