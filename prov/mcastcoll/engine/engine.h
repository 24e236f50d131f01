// The protocol of one group, for one member. Pure: it is given packets, messages, times and deaths, and
// returns effects. It never looks at a clock, a socket or the environment, and allocates only until its join
// is over.
//
// One file per idea:
//   engine.cc     operations: submit, begin, finish, the pending queue, timers; slots.h
//   admission.cc  the join; readiness.h: who listens
//   elections.cc  elections about the multicast, now and then; poll.h holds one, ballots.h counts and judges,
//                 verdicts.h keeps what came of them, doubts.h says when another one is wanted
//   broadcast.cc  multicasting fragments, taking them in, progress reports
//   stream.cc     roots that have only a prefix yet, and what prefix has arrived
//   relay.cc      several addresses: chained, or onward through leaders
//   repair.cc     asks, remembered questions, data, pushes; deadlines.h: when
//   policy.h      which of them, when: one plan per operation
//   sync.cc       repair by the root's multicast; channels
//   root_sync.cc  what a root waits for before it multicasts
//   gather.cc     barriers and reductions: what goes up the tree to rank 0, whose release is a broadcast
//   reduce.cc     vectors that are too long for a gather
//   checkpoint.cc what everybody has finished, and leaving; watermark.h, departure.h agree on them
//   failure.cc    watching those we wait for (watch_list.h), ending everything when one is lost
//   effects.cc    what goes out, in which order; turns.h: among operations, notices.h: to the caller
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/ring.h"
#include "engine/config.h"
#include "engine/deadlines.h"
#include "engine/departure.h"
#include "engine/doubts.h"
#include "engine/effects.h"
#include "engine/failure.h"
#include "engine/notices.h"
#include "engine/policy.h"
#include "engine/poll.h"
#include "engine/pool.h"
#include "engine/readiness.h"
#include "engine/root_sync.h"
#include "engine/round_trip.h"
#include "engine/slots.h"
#include "engine/supply_graph.h"
#include "engine/timing.h"
#include "engine/turns.h"
#include "engine/verdicts.h"
#include "engine/watch_list.h"
#include "engine/watermark.h"

namespace mcastcoll::engine {

class Engine {
  public:
    explicit Engine(const GroupConfig& config);

    // Begins the join. Every member calls it once; Effect::joined follows.
    void start(Nanoseconds now);
    // Appends an operation. Errors: EAGAIN when pending_operations are queued, ESHUTDOWN after close(), the
    // group's own error once it has failed. An accepted operation ends with exactly one Effect::complete,
    // which has the number that this returns.
    Result<OperationId> submit(const Collective& operation, Nanoseconds now);
    // The number of the operation that is submitted next.
    OperationId next_operation() const { return operation_of(slots_.next() + pending_.size()); }
    // Of an operation that was submitted with less than all of it ready: so many bytes, from the start, may
    // be sent or combined now. Less than before changes nothing, an operation that is over neither.
    void advance(OperationId operation, std::uint64_t ready, Nanoseconds now);
    // How many bytes of the message or result, from its start, are in the caller's buffer: what may be passed
    // on, and never less than before. Small ones arrive when they complete. Of a reduction at rank 0: what is
    // combined, released or not. 0 when the operation has not begun, or is over and forgotten.
    std::uint64_t arrived(OperationId operation) const;
    // After Effect::gathered: the buffer is as everybody is to have it. False when the operation does not
    // wait for it; the group may have failed meanwhile.
    bool release(OperationId operation, Nanoseconds now);
    // No more operations will come. Effect::left follows when all have closed and nobody needs this one.
    void close(Nanoseconds now);

    void on_packet(Bytes datagram, Nanoseconds now);
    void on_message(Bytes message, Nanoseconds now);
    // The process of this rank is gone, or was asked to be ignored; error is a positive FI_E* code.
    void on_peer_lost(Rank rank, int error, Nanoseconds now);
    // Ends the group for everybody, as if this member were lost.
    void abort(int error, Nanoseconds now) { fail(config_.self, error, true, now); }

    // The same, for what happened outside this engine's members.
    void give_up(int error, Nanoseconds now) { fail(kNoRank, error, true, now); }

    // Writes the next effect and returns true, or returns false when there is none that is allowed.
    bool poll_effects(Allowed allowed, Effect& effect);

    // When on_timeout() wants to be called; kNever when nothing waits.
    Nanoseconds next_deadline() const;
    void on_timeout(Nanoseconds now);

    Phase phase() const { return phase_; }
    // After a failure: everybody who is to know has been sent word.
    bool failure_told() const { return failure_.told(); }
    bool idle() const { return slots_.first_open() == slots_.next() && pending_.empty(); }
    // Operations posted and not completed.
    std::uint64_t outstanding() const {
        return counters_.operations_submitted - counters_.operations_completed - counters_.operations_failed;
    }
    const Counters& counters() const { return counters_; }
    const SupplyGraph& graph() const { return verdicts_.latest(); }
    std::uint32_t verdict_version() const { return verdicts_.version(); }
    const GroupConfig& config() const { return config_; }
    // What the repair policy and the root synchronisation are at present, and the numbers behind it.
    PolicyState policy() const { return policy_.state(); }
    RootSyncState root_sync() const { return root_sync_.state(); }
    Nanoseconds round_trip() const { return round_trip_.mean(); }
    // Throws nothing; aborts by assert when an invariant is broken. For tests and debug builds.
    void check_invariants() const;

  private:
    // engine.cc
    Slot* claim(OperationId id);
    void begin_pending(Nanoseconds now);
    void begin(const Collective& operation, Nanoseconds now);
    void begin_receiving(Slot& slot, Nanoseconds now);
    bool later_was_heard(Slot& slot);
    void finish(Slot& slot, int status);
    void complete(OperationId operation, int status);
    void mark_ready(const Slot& slot) { turns_.mark(number_of(slot.id)); }
    bool is_large(const Slot& slot) const { return config_.large(slot.bytes); }
    std::uint32_t arity(const Slot& slot) const {
        return is_large(slot) ? config_.large_tree_arity : config_.tree_arity;
    }

    // admission.cc
    std::uint32_t child_index(Rank rank) const;
    void on_ready(const wire::Header& header, Nanoseconds now);
    void check_ready(Nanoseconds now);
    bool next_admission_message(Effect& effect);

    // elections.cc
    const SupplyGraph& graph_of(const Slot& slot) const { return verdicts_.of(number_of(slot.id)); }
    void on_go(const wire::Header& header, Nanoseconds now);
    void begin_election(std::uint64_t number, Nanoseconds now);
    void on_probe(const wire::Header& header, Nanoseconds now);
    void follow_poll(Nanoseconds now);
    void on_vote(const wire::Header& header, Bytes payload, Nanoseconds now);
    void decide(Verdict verdict, Nanoseconds now);
    void on_verdict(const wire::Header& header, Bytes payload, Nanoseconds now);
    void take_first_verdict(Verdict verdict, Nanoseconds now);
    void take_verdict(Verdict verdict, std::uint64_t from, Nanoseconds now);
    void note_heard(const wire::Header& header, Nanoseconds now);
    void note_finished(const Slot& slot, Nanoseconds now);
    void want_beacon(Nanoseconds now);
    void request_election(Nanoseconds now);
    void on_election_request(const wire::Header& header, Nanoseconds now);
    Rank member_before() const;
    void on_pong(const wire::Header& header, Nanoseconds now);
    bool next_election_multicast(Effect& effect);
    bool next_election_message(Effect& effect);

    // broadcast.cc
    void on_fragment(const wire::Header& header, Bytes payload, Nanoseconds now);
    void note_multicast(Slot& slot, std::uint32_t fragment, Nanoseconds now);
    void reveal_earlier(Rank sender, std::uint64_t before, Nanoseconds now);
    bool learn_length(Slot& slot, std::uint64_t bytes);
    bool cannot_come(const Slot& slot, std::uint32_t index) const;
    void adopt_early(Slot& slot, bool keep);
    std::byte* data_of(const Slot& slot) const;
    bool store(Slot& slot, std::uint32_t fragment, Bytes payload);
    void after_store(Slot& slot, Nanoseconds now);
    void on_all_here(Slot& slot, Nanoseconds now);
    void check_large_finished(Slot& slot);
    std::uint32_t window_limit(const Slot& slot) const;
    bool window_is_full(const Slot& slot) const;
    bool next_fragment(Slot& slot, Effect& effect);
    void make_fragment(const Slot& slot, std::uint32_t index, Effect& effect);
    void on_report(const wire::Header& header, Nanoseconds now);
    void update_report(Slot& slot);
    Bytes fragment_bytes(const Slot& slot, std::uint32_t from, std::uint32_t to) const;

    // stream.cc
    void advance_root(Slot& slot, Nanoseconds now);
    bool awaits_bytes(const Slot& slot) const;
    std::uint64_t announced_total(const Slot& slot) const;
    static bool is_partial(const wire::Header& header) { return (header.total & wire::kPartialFlag) != 0; }
    static std::uint64_t length_of(const wire::Header& header) { return header.total & ~wire::kPartialFlag; }
    static void note_partial(Slot& slot, bool partial);

    // relay.cc
    static std::vector<std::uint32_t> other_ranges(const GroupConfig& config);
    bool relays(const Slot& slot) const {
        return slot.state >= SlotState::active && slot.operation.kind != CollectiveKind::reduce &&
               graph_of(slot).relays(slot.operation.root, config_.self);
    }
    bool may_relay(Rank sender) const {
        return config_.relay && config_.range(sender) == config_.range(config_.self);
    }
    std::uint32_t multicast_limit(const Slot& slot) const;
    bool take_target(std::uint32_t& next, Effect& effect) const;
    bool next_relay(Slot& slot, Effect& effect);
    std::uint32_t supply_limit(const Slot& slot) const;

    // repair.cc
    bool in_first_window(const Slot& slot) const;
    std::uint32_t expected_to(const Slot& slot) const;
    void request(Slot& slot, std::uint32_t to);
    void arm_gap(Slot& slot, Nanoseconds now);
    void on_ask_timer(Slot& slot, Nanoseconds now);
    void ask_supplier(Slot& slot, Nanoseconds now);
    void ask_onward(Slot& slot, Nanoseconds now);
    void note_supplied(Slot& slot, Nanoseconds now);
    void poll_supplier(Slot& slot);
    void note_poll(Slot& slot, Nanoseconds now);
    bool keeps(const Slot& slot, const Client& client, std::uint32_t fragment) const;
    void continue_chain(Slot& slot);
    void supply_all(Slot& slot, bool hearing);
    void on_ask(const wire::Header& header, Bytes payload, Nanoseconds now);
    void on_data(const wire::Header& header, Bytes payload, Nanoseconds now);
    void on_done(const wire::Header& header);
    bool next_ask(Slot& slot, Effect& effect);
    bool next_data(Slot& slot, Effect& effect);

    // sync.cc
    Nanoseconds nack_delay(const Slot& slot) const;
    bool asks_root(const Slot& slot) const;
    static void forget_said(Nacks& nacks, Nanoseconds now);
    void nack(Slot& slot, std::uint32_t to, Nanoseconds now);
    void on_nack(const wire::Header& header, Bytes payload, Nanoseconds now);
    bool next_nack(Slot& slot, Effect& effect);
    bool resends(const Slot& slot) const;
    bool next_resend(Slot& slot, Effect& effect);
    void note_answer(Slot& slot, std::uint32_t index, Nanoseconds now);
    void await_watermark(Nanoseconds now);
    void on_watermark_ask(const wire::Header& header);
    void on_watermark_cast(const wire::Header& header, Nanoseconds now);
    void take_watermark(const wire::Header& header, Nanoseconds now);
    bool hears_watermark(Rank child) const;

    // root_sync.cc
    void hold(Slot& slot, Nanoseconds now);
    void release_holds(Nanoseconds now);
    Nanoseconds next_release() const;
    void tell_entered(Slot& slot);
    void on_entered(const wire::Header& header, Nanoseconds now);

    // gather.cc
    std::uint64_t vector_total(const Slot& slot) const;
    bool agrees(Slot& slot, const wire::Header& header, Nanoseconds now);
    void begin_gather(Slot& slot, Nanoseconds now);
    void on_gather(const wire::Header& header, Bytes payload, Nanoseconds now);
    void check_gather(Slot& slot, Nanoseconds now);
    const std::byte* contribution_of(const Slot& slot) const;
    bool combine_at_once(Slot& slot, std::uint32_t child, Bytes vector);
    void keep_vector(Contribution& contribution, Bytes vector);
    void take_own(Slot& slot);
    void all_gathered(Slot& slot, Nanoseconds now);
    void let_go(Slot& slot, Nanoseconds now);
    bool next_gather(Slot& slot, Effect& effect);
    std::uint64_t combined_bytes(const Slot& slot) const;

    // reduce.cc
    Result<void> check_reduction(const Collective& operation) const;
    std::uint32_t own_pieces(const Slot& slot) const;
    std::uint32_t combined_pieces(const Slot& slot) const;
    void update_grants(Slot& slot);
    void note_combined(Slot& slot, Nanoseconds now);
    void combine(Slot& slot, std::uint32_t child, std::uint32_t from, Bytes vector);
    void on_contribution(const wire::Header& header, Bytes payload, Nanoseconds now);
    void on_credit(const wire::Header& header, Nanoseconds now);
    bool awaits_credit(const Slot& slot) const;
    void announce(Slot& slot);
    bool next_contribution(Slot& slot, Effect& effect);
    bool next_credit(Slot& slot, Effect& effect);

    // checkpoint.cc
    std::uint64_t finished_here() const {  // operations, in whole checkpoints
        return slots_.first_open() - slots_.first_open() % config_.checkpoint_interval();
    }
    void release_below(std::uint64_t id);
    void raise_watermark(std::uint64_t watermark, Nanoseconds now);
    void learn_from(const Slot& slot);
    void check_watermark(Nanoseconds now);
    void on_watermark_up(const wire::Header& header, Nanoseconds now);
    void on_watermark_down(const wire::Header& header, Nanoseconds now);
    void check_leave();
    void on_leave_up(const wire::Header& header);
    void on_leave_down(const wire::Header& header, Nanoseconds now);
    bool next_checkpoint_message(Effect& effect);

    // failure.cc
    void fail(Rank lost, int error, bool tell, Nanoseconds now);
    void on_fail(const wire::Header& header, Nanoseconds now);
    void watch(Rank rank);
    void scan_watches(Nanoseconds now);
    Rank missing_child(const Slot& slot) const;
    Rank waits_for(const Slot& slot) const;
    void check_stall(Nanoseconds now);
    void watch_slot(const Slot& slot);
    bool waits_for_somebody() const;
    bool owes_report(const Slot& slot) const;
    bool next_failure_message(Effect& effect);
    bool next_watch(Effect& effect);

    // effects.cc
    bool next_multicast(Effect& effect);
    bool next_message(Effect& effect);
    bool next_slot_message(Slot& slot, Effect& effect);
    bool next_notice(Effect& effect) {
        return notices_.next_of_group(effect, failure_.lost(), failure_.error());
    }
    void make_message(Effect& effect, wire::Kind kind, Rank to, OperationId operation, std::uint32_t fragment,
                      std::uint64_t total, Bytes payload);
    void make_packet(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment,
                     std::uint64_t total, Bytes payload);
    bool accept_header(const wire::Decoded& decoded);

    const GroupConfig config_;
    const RankList tree_children_;  // of gathers, watermarks and leaving
    const Rank tree_parent_;
    const std::vector<std::uint32_t> targets_;            // ranges that somebody else listens to
    std::uint32_t probe_target_ = 0, beacon_target_ = 0;  // of those, where the next copy goes
    std::uint32_t watermark_cast_target_ = 0;
    Policy policy_;
    RootSynchronizer root_sync_;
    Readiness readiness_;  // of the join
    Poll poll_;
    Verdicts verdicts_;
    Doubts doubts_;
    Watermark watermark_;  // its operations up to a window above it may be begun
    Departure departure_;
    Failure failure_;
    Counters counters_;
    Phase phase_ = Phase::forming;

    Slots slots_;
    Pool early_buffers_;            // for the first window of large operations that are not posted
    Pool vectors_;                  // for one of each child in each slot
    std::vector<std::byte> piece_;  // one, where a message has it at an address that is not aligned
    Ring<Collective> pending_;
    bool beginning_ = false;  // begin_pending() is at work
    Notices notices_;
    Turns turns_;
    std::uint64_t in_flight_ = 0;  // multicast fragments of own large operations that are not acknowledged

    // Admission.
    bool ping_due_ = false;
    Ring<wire::Header> pongs_;

    // Timing.
    RoundTrip round_trip_;
    Deadlines deadlines_;
    Ring<Timed> pushes_;  // when small messages are handed on
    Ring<Timed> holds_;   // until when own broadcasts wait at most, in order
    std::vector<std::byte> ask_bytes_;

    // Failure.
    WatchList watches_;
    Nanoseconds watch_at_ = kNever;
    Nanoseconds moved_at_{};  // when an operation last began or ended here, or the watermark rose
    bool lingered_ = false;   // has failed with nothing to lose: leaves when everybody has been told
    Nanoseconds now_{};       // of the call being served
};

}  // namespace mcastcoll::engine
